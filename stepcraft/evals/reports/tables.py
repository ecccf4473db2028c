"""The tables of a report, shared by Markdown and the page, and CSV for other programs."""

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stepcraft.evals.stats import Difference, Interval
from stepcraft.evals.summary import Comparison, Summary
from stepcraft.text.clean import one_line

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
    """Return the non-empty tables: scores and costs, differences, judges."""
    every = [
        _scores(summary),
        differences(
            summary.comparisons,
            f"Against {' and '.join(summary.baselines)} (`--baseline` names another), on the "
            "samples that both have. p: paired t-test, or exact sign test (McNemar's) for scores "
            "of 0 and 1, adjusted for all pairs and scores (Holm); the intervals are not "
            "adjusted. Costs are ratios.",
        ),
        _table(
            "Judges",
            ["judge", "method", "judgements", "unreadable", "position bias"],
            [
                [each.judge, each.method, each.judgements, each.unread, each.position_bias]
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
        "score. Costs are per sample (for seconds, the median); an empty cell means unknown."
    )
    if any(name.startswith("support by") for name in scores):
        note += (
            " support: the share of the claims that the passages support, cited or not "
            "(faithfulness of RAGAS, sentence by sentence); citation recall: the share that the "
            "passages cited with them support (ALCE). Each method is judged on the passages that "
            "it returns; RPG returns only those that it cites."
        )
    return _table(
        "Scores and costs",
        ["method", "model", *scores, *costs, "samples", "unanswered", "failed"],
        [
            [
                each.method,
                each.model,
                *map(each.scores.get, scores),
                *map(each.costs.get, costs),
                each.samples,
                each.unanswered,
                each.failed,
            ]
            for each in summary.methods
        ],
        note,
    )


def differences(comparisons: Sequence[Comparison], note: str) -> Table:
    """Return a table of the given comparisons."""
    costs = [kind for kind in _COSTS if any(kind in each.factors for each in comparisons)]
    return _table(
        "Differences",
        ["method", "against", "score", "difference", "p", "wins", "losses", "samples", *costs],
        [
            [
                each.method,
                each.against,
                each.score,
                each.difference,
                p_text(each.p),
                each.wins,
                each.losses,
                each.samples,
                *map(each.factors.get, costs),
            ]
            for each in comparisons
        ],
        note,
    )


def _table(
    title: str, columns: Sequence[str], rows: Iterable[Iterable[object]], note: str
) -> Table:
    return Table(title, columns, [[*map(_text, row)] for row in rows], note)


def _text(value: object) -> str:
    if isinstance(value, Interval):
        return interval_text(value)
    if isinstance(value, float):
        small = f"{value:.6f}" if 0 < value < 0.001 else f"{value:.3g}"
        return small if value < 10 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value or "")


def interval_text(interval: Interval) -> str:
    """Return a mean with its interval if known; a difference is shown with its sign."""
    sign, to = ("+", " to ") if isinstance(interval, Difference) else ("", "–")
    is_known = math.isfinite(interval.low)
    ends = f" ({interval.low:{sign}.3f}{to}{interval.high:{sign}.3f})" if is_known else ""
    return f"{interval.mean:{sign}.3f}{ends}"


def p_text(p: float) -> str:
    """Format a p-value to three decimal places."""
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def outcome_rows(summary: Summary) -> str:
    """Return CSV with one row per sample and method.

    Text that a spreadsheet would interpret as a formula is prefixed with an apostrophe.
    """
    rows = [
        {
            "directory": method.directory,
            "method": method.name,
            "id": each["id"],
            "question": each["sample"]["question"],
            "answer": each["output"].get("answer") or "\n".join(each["output"].get("steps") or ()),
            **{key: each["usage"].get(key) for key in _TOKENS},
            "seconds": each["seconds"],
            "usd": each.get("usd"),
            "warnings": "; ".join(each["warnings"]),
            "error": each["error"],
            **{f"score: {score}": value for score, value in each["scores"].items()},
        }
        for method in summary.methods
        for each in method.outcomes
    ]
    file = io.StringIO()
    columns = dict.fromkeys(column for row in rows for column in row)
    table = csv.DictWriter(file, columns, lineterminator="\n")
    table.writeheader()
    table.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
    return file.getvalue()


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    line = one_line(value)
    is_formula = line.startswith(("=", "+", "-", "@")) and not _NUMBER.fullmatch(line)
    return f"'{line}" if is_formula else line
