"""The tables of a report, which Markdown and the page have alike, and CSV for other programs."""

import csv
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from stepcraft.evals.directory import read_outcomes
from stepcraft.evals.stats import Difference, Interval
from stepcraft.evals.summary import Comparison, MethodSummary, Summary
from stepcraft.evals.votes import Preference, Support
from stepcraft.text.clean import clean

_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")


R = TypeVar("R", MethodSummary, Comparison, Preference, Support)


@dataclass(frozen=True)
class Table:
    """A table of texts."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str


def score_names(summaries: Mapping[str, Summary]) -> list[str]:
    """Return the names of the scores in the order of the methods."""
    methods = [method for summary in summaries.values() for method in summary.methods]
    return list(dict.fromkeys(score for method in methods for score in method.scores))


def label(summaries: Mapping[str, Summary], directory: str, name: str) -> str:
    """Return what a report of these directories calls a method or another thing of one."""
    return f"{directory}: {name}" if len(summaries) > 1 else name


def labelled(summaries: Mapping[str, Summary], items: Callable[[Summary], Sequence[R]]) -> list[R]:
    """Return what the summaries have of a kind, with the names of methods as `label` has them."""
    return [
        replace(each, method=label(summaries, name, each.method))
        for name, summary in summaries.items()
        for each in items(summary)
    ]


def tables(summaries: Mapping[str, Summary]) -> list[Table]:
    """Return the tables that have rows: scores and costs, differences, votes, support."""
    every = [
        _table(
            "Scores and costs",
            labelled(summaries, lambda summary: summary.methods),
            "Means with their 95 % intervals; costs are those of a sample, failed ones among them.",
        ),
        _table(
            "Differences",
            labelled(summaries, lambda summary: summary.comparisons),
            "Against the method with the fewest tokens, on the samples that both have, with 95 % "
            "intervals. p is of the paired t-test, where scores are 0 or 1 of the exact sign test "
            "(McNemar's); sign p is of the sign test on wins and losses. Both are adjusted (Holm). "
            "Costs are those of the method over those of the other.",
        ),
        _table(
            "Votes of judges",
            labelled(summaries, lambda summary: summary.preferences),
            "By majority on each sample. Order bias: the share of the votes for the answer that "
            "was shown first, 0.5 without bias.",
        ),
        _table(
            "Support",
            labelled(summaries, lambda summary: summary.supports),
            "The share of the sentences that their passages bear out, with 95 % intervals. Cut: "
            "answers of which passages were too long to be shown.",
        ),
    ]
    return [table for table in every if table.rows]


def _table(title: str, items: Sequence[object], note: str) -> Table:
    """Return a table with a column for each field; a field with names has one for each name."""
    rows: list[dict[str, str]] = []
    for item in items:
        row: dict[str, str] = {}
        for name, value in vars(item).items():
            cells = value if isinstance(value, Mapping) else {name.replace("_", " "): value}
            row |= {column: _text(cell) for column, cell in cells.items()}
        rows.append(row)
    columns = list(dict.fromkeys(column for row in rows for column in row))
    return Table(
        title, columns, [[row.get(column, "") for column in columns] for row in rows], note
    )


def _text(value: object) -> str:
    if isinstance(value, Difference):
        return difference_text(value)
    if isinstance(value, Interval):
        return interval_text(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3g}" if value < 10 else f"{value:,.0f}"
    return "" if value is None else str(value)


def interval_text(interval: Interval) -> str:
    """Return a mean with its interval, the mean alone where that is unknown."""
    ends = f" ({interval.low:.3f}–{interval.high:.3f})" if math.isfinite(interval.low) else ""
    return f"{interval.mean:.3f}{ends}"


def difference_text(interval: Interval) -> str:
    """Return a difference with its sign and interval."""
    ends = f" ({interval.low:+.3f} to {interval.high:+.3f})" if math.isfinite(interval.low) else ""
    return f"{interval.mean:+.3f}{ends}"


def p_text(p: float) -> str:
    """Return a p value with three digits."""
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def outcome_rows(directories: Mapping[str, Path]) -> str:
    """Return CSV with a row for each sample of each method.

    A text that a spreadsheet would take for a formula begins with an apostrophe.

    Args:
        directories: The directories of evaluations by the names that the first column has.

    Raises:
        BadInput: One is no directory of an evaluation, or damaged.
    """
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for name, directory in directories.items():
        for each in read_outcomes(directory):
            method, id_, usage = each["method"], each["id"], each["usage"]
            rows[name, method, id_] = {
                "directory": name,
                "method": method,
                "id": id_,
                "question": each["sample"]["question"],
                **{key: usage.get(key) for key in ("calls", "input_tokens", "output_tokens")},
                "seconds": each["seconds"],
                "usd": each.get("usd"),
                "warnings": "; ".join(each["warnings"]),
                "error": each["error"],
                **each["scores"],
            }
    file = io.StringIO()
    columns = dict.fromkeys(column for row in rows.values() for column in row)
    table = csv.DictWriter(file, columns, lineterminator="\n")
    table.writeheader()
    table.writerows({key: _cell(value) for key, value in row.items()} for row in rows.values())
    return file.getvalue()


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    line = " ".join(clean(value).split())
    is_formula = line.startswith(("=", "+", "-", "@")) and not _NUMBER.fullmatch(line)
    return f"'{line}" if is_formula else line
