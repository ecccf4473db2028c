"""The tables of a report, shared by Markdown and the page, and CSV for other programs."""

import csv
import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepcraft.evals.stats import Interval
from stepcraft.evals.summary import Comparison, Summary
from stepcraft.evals.votes import judged_outcomes
from stepcraft.text.clean import clean

_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
_TOKENS = ("calls", "input_tokens", "cached_input_tokens", "output_tokens")
_COSTS = ("calls", "tokens in", "cached", "tokens out", "seconds", "USD")


@dataclass(frozen=True)
class Table:
    """A table whose cells are strings."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str


def score_names(summary: Summary) -> list[str]:
    """Return the names of all scores, in the order in which they first occur in the methods."""
    return list(dict.fromkeys(score for method in summary.methods for score in method.scores))


def tables(summary: Summary) -> list[Table]:
    """Return the non-empty tables: scores and costs, differences, votes."""
    every = [
        _scores(summary),
        differences(
            summary.comparisons,
            f"Against {' and '.join(summary.baselines)} (`--baseline` names another), on the "
            "samples that both have. p: paired t-test, or exact sign test (McNemar's) for scores "
            "of 0 and 1, adjusted for all pairs and scores (Holm); the intervals are not "
            "adjusted. Costs are ratios.",
        ),
        Table(
            "Judges",
            ["judge", "method", "judgements", "unreadable", "position bias"],
            [
                [
                    *(each.judge, each.method, f"{each.judgements:,}", f"{each.unread:,}"),
                    interval_text(each.position_bias),
                ]
                for each in summary.judges
                if each.judgements
            ],
            "Votes are counted by majority on each sample. Position bias: the share of the votes "
            "for the answer that was shown first, 0.5 without bias.",
        ),
    ]
    return [table for table in every if table.rows]


def _scores(summary: Summary) -> Table:
    scores = score_names(summary)
    costs = [kind for kind in _COSTS if any(each.costs.get(kind) for each in summary.methods)]
    note = (
        "Means with 95% intervals. A run without an answer counts as wrong, a failed one has no "
        "score. Costs are of a sample, seconds as the median; an empty cell is unknown."
    )
    if any(name.startswith("support by") for name in scores):
        note += (
            " support: the share of the claims that the passages support, cited or not "
            "(faithfulness of RAGAS, sentence by sentence); citation recall: the share that the "
            "passages cited with them support (ALCE). Each method is judged on the passages that "
            "it returns; RPG returns only those that it cites."
        )
    return Table(
        "Scores and costs",
        ["method", "model", *scores, *costs, "samples", "unanswered", "failed"],
        [
            [
                *(each.method, each.model),
                *(interval_text(each.scores.get(name)) for name in scores),
                *(_figure(each.costs.get(kind)) for kind in costs),
                *(f"{count:,}" for count in (each.samples, each.unanswered, each.failed)),
            ]
            for each in summary.methods
        ],
        note,
    )


def differences(comparisons: Sequence[Comparison], note: str) -> Table:
    """Return a table of the given comparisons."""
    costs = [kind for kind in _COSTS if any(kind in each.factors for each in comparisons)]
    return Table(
        "Differences",
        ["method", "against", "score", "difference", "p", "wins", "losses", "samples", *costs],
        [
            [
                *(each.method, each.against, each.score, difference_text(each.difference)),
                p_text(each.p),
                *(f"{count:,}" for count in (each.wins, each.losses, each.samples)),
                *(_figure(each.factors.get(kind)) for kind in costs),
            ]
            for each in comparisons
        ],
        note,
    )


def _figure(value: float | None) -> str:
    if value is None:
        return ""
    if 0 < value < 0.001:
        return f"{value:.6f}"
    return f"{value:.3g}" if value < 10 else f"{value:,.0f}"


def interval_text(interval: Interval | None) -> str:
    """Return a mean with its interval, or only the mean if the interval is unknown."""
    if interval is None:
        return ""
    ends = f" ({interval.low:.3f}–{interval.high:.3f})" if math.isfinite(interval.low) else ""
    return f"{interval.mean:.3f}{ends}"


def difference_text(interval: Interval) -> str:
    """Return a difference with its sign and interval."""
    ends = f" ({interval.low:+.3f} to {interval.high:+.3f})" if math.isfinite(interval.low) else ""
    return f"{interval.mean:+.3f}{ends}"


def p_text(p: float) -> str:
    """Return a p-value with three digits."""
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def outcome_rows(directories: Mapping[str, Path]) -> str:
    """Return CSV with one row per sample and method.

    Text that a spreadsheet would interpret as a formula is prefixed with an apostrophe.

    Args:
        directories: The evaluations' directories, by the names to use in the first column.

    Raises:
        BadInput: A directory contains no evaluation, or is damaged.
    """
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for name, directory in directories.items():
        for each in judged_outcomes(directory):
            method, id_, usage = each["method"], each["id"], each["usage"]
            rows[name, method, id_] = {
                "directory": name,
                "method": method,
                "id": id_,
                "question": each["sample"]["question"],
                "answer": each["output"].get("answer")
                or "\n".join(each["output"].get("steps") or ()),
                **{key: usage.get(key) for key in _TOKENS},
                "seconds": each["seconds"],
                "usd": each.get("usd"),
                "warnings": "; ".join(each["warnings"]),
                "error": each["error"],
                **{f"score: {score}": value for score, value in each["scores"].items()},
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
