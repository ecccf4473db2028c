"""The tables of a report, which Markdown and the page have alike, and CSV for other programs."""

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepcraft.evals.directory import read_outcomes
from stepcraft.evals.stats import Interval
from stepcraft.evals.summary import Comparison, MethodSummary, Summary
from stepcraft.evals.votes import Preference
from stepcraft.text.clean import clean

_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")


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


def labelled(summaries: Mapping[str, Summary]) -> Iterator[tuple[str, MethodSummary]]:
    """Yield each method with its name; with several directories theirs stand before it."""
    for name, summary in summaries.items():
        for method in summary.methods:
            yield label(summaries, name, method.name), method


def label(summaries: Mapping[str, Summary], directory: str, method: str) -> str:
    """Return what a report of these directories calls a method."""
    return f"{directory}: {method}" if len(summaries) > 1 else method


def tables(summaries: Mapping[str, Summary]) -> list[Table]:
    """Return the tables that have rows: scores and costs, differences, votes, support."""
    names = score_names(summaries)
    costs = {"calls": "{:.1f}", "tokens": "{:,.0f}", "seconds": "{:.1f}", "USD": "{:.4f}"}
    if not any("USD" in method.costs for _, method in labelled(summaries)):
        del costs["USD"]
    every = [
        Table(
            "Scores and costs",
            ["method", *names, *costs, "samples", "failed"],
            [
                [
                    name,
                    *(interval_text(method.scores.get(score)) for score in names),
                    *(
                        form.format(method.costs[cost]) if cost in method.costs else ""
                        for cost, form in costs.items()
                    ),
                    f"{method.samples:,}",
                    f"{method.failed:,}",
                ]
                for name, method in labelled(summaries)
            ],
            "Means with their 95 % intervals; costs are those of a sample, failed ones among them.",
        ),
        Table(
            "Differences",
            ["method", "against", "score", "difference", "p", "p, signs", "wins / losses / ties",
             "samples", "tokens"],
            [
                [label(summaries, name, each.method), *_comparison_cells(each)]
                for name, summary in summaries.items()
                for each in summary.comparisons
            ],
            "Against the method with the fewest tokens, on the samples that both have, with 95 % "
            "intervals. p is of the paired t-test, p of the signs of the exact sign test "
            "(McNemar's where scores are 0 or 1); both are adjusted (Holm).",
        ),
        Table(
            "Votes of judges",
            ["judge", "method", "against", "wins / losses / ties", "undecided", "p",
             "for the first", "for the longer", "votes", "unreadable", "failed"],
            [
                [each.judge, label(summaries, name, each.method), *_preference_cells(each)]
                for name, summary in summaries.items()
                for each in summary.preferences
            ],
            "By majority on each sample. For the first: the share of the votes for the answer that "
            "was shown first, 0.50 without bias. For the longer: the correlation of the votes with "
            "the difference in length, about 0 without bias.",
        ),
        Table(
            "Support",
            ["judge", "method", "support", "answers", "cut", "unreadable", "failed"],
            [
                [
                    each.judge,
                    label(summaries, name, each.method),
                    interval_text(each.share),
                    *map(str, (each.answers, each.cut, each.unreadable, each.failed)),
                ]
                for name, summary in summaries.items()
                for each in summary.supports
            ],
            "The share of the sentences that their passages bear out, with 95 % intervals. Cut: "
            "answers of which passages were too long to be shown.",
        ),
    ]  # fmt: skip
    return [table for table in every if table.rows]


def _comparison_cells(each: Comparison) -> list[str]:
    ties = each.samples - each.wins - each.losses
    return [
        each.against,
        each.score,
        difference_text(each.difference),
        p_text(each.p),
        p_text(each.sign_p),
        f"{each.wins} / {each.losses} / {ties}",
        f"{each.samples:,}",
        f"× {each.factors['tokens']:.1f}" if "tokens" in each.factors else "",
    ]


def _preference_cells(each: Preference) -> list[str]:
    return [
        each.against,
        f"{each.wins} / {each.losses} / {each.ties}",
        str(each.undecided),
        p_text(each.p),
        f"{each.order_bias.mean:.2f}" if each.order_bias else "",
        "" if each.length_bias is None else f"{each.length_bias:+.2f}",
        *map(str, (each.votes, each.unreadable, each.failed)),
    ]


def interval_text(interval: Interval | None) -> str:
    """Return a mean with its interval, the mean alone where that is unknown."""
    if interval is None:
        return ""
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
