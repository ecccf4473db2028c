"""The figures of an evaluation for other programs: CSV with a row a sample and method, and a table in LaTeX."""

import csv
import io
import re
from collections.abc import Mapping
from pathlib import Path

from stepcraft.evals.directory import Outcome, read_outcomes
from stepcraft.evals.published import published
from stepcraft.evals.reports.markdown import interval_text, score_names, warnings
from stepcraft.evals.summary import LEVEL, Summary
from stepcraft.text.clean import clean

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
_USAGE = ("calls", "input_tokens", "output_tokens")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")


def outcome_rows(directories: Mapping[str, Path]) -> str:
    """Return CSV with a row for each sample of each method: scores, usage, seconds, warnings and error.

    A text that a spreadsheet would take for a formula begins with an apostrophe.

    Args:
        directories: The directories of evaluations by the names that the first column has.

    Raises:
        BadInput: One is no directory of an evaluation, or damaged.
    """
    outcomes: list[tuple[str, Outcome]] = []
    for name, directory in directories.items():
        last = {(one["method"], one["id"]): one for one in _without_texts(directory)}
        outcomes += [(name, one) for one in last.values()]
    scores = list(dict.fromkeys(score for _, one in outcomes for score in one["scores"]))
    file = io.StringIO()
    table = csv.writer(file, lineterminator="\n")
    table.writerow(
        ["directory", "method", "id", "question", *scores, *_USAGE, "seconds", "usd", "warnings", "error"]
    )
    for name, one in outcomes:
        usage = one["usage"]
        table.writerow(
            [_cell(text) for text in (name, one["method"], one["id"], one["sample"]["question"])]
            + [one["scores"].get(score, "") for score in scores]
            + [usage.get(key, "") for key in _USAGE]
            + [one["seconds"], one.get("usd", ""), _cell("; ".join(one["warnings"])), _cell(one["error"])]
        )
    return file.getvalue()


def _without_texts(directory: Path) -> list[Outcome]:
    return [
        {**one, "output": {}, "sample": {"id": one["id"], "question": one["sample"]["question"]}}
        for one in read_outcomes(directory)
    ]


def _cell(text: str) -> str:
    """A text on one line that no spreadsheet computes."""
    line = " ".join(clean(text).split())
    return f"'{line}" if line.startswith(("=", "+", "-", "@")) and not _NUMBER.fullmatch(line) else line


def latex(summaries: Mapping[str, Summary]) -> str:
    """Return a table for LaTeX with the package booktabs: methods with their scores and costs, then the papers' figures.

    Args:
        summaries: The evaluations by name; with several, each has a line with its name above its methods.
    """
    scores = list(dict.fromkeys(name for one in summaries.values() for name in score_names(one)))
    columns = ["method", *scores, "calls", "tokens", "seconds", "samples"]
    lines = [
        rf"% Means with intervals of {100 * LEVEL:.0f} percent; needs \usepackage{{booktabs}}.",
        *(f"% {' '.join(clean(text).split())}" for one in summaries.values() for text in warnings(one)),
        rf"\begin{{tabular}}{{l{'r' * (len(columns) - 1)}}}",
        r"\toprule",
        _row(columns),
        r"\midrule",
    ]
    for name, summary in summaries.items():
        if len(summaries) > 1:
            lines.append(rf"\multicolumn{{{len(columns)}}}{{l}}{{\textbf{{{_escaped(name)}}}}} \\")
        for method in summary.methods:
            figures = [
                interval_text(method.scores[score]) if score in method.scores else "" for score in scores
            ]
            costs = [
                f"{method.calls:.1f}",
                f"{method.tokens:,.0f}",
                f"{method.seconds:.1f}",
                str(method.samples),
            ]
            lines.append(_row([method.name, *figures, *costs]))
    for one in dict.fromkeys(
        figure for summary in summaries.values() for figure in published(summary.benchmark.get("name", ""))
    ):
        if one.score in scores:
            label = f"{one.method} (paper: {one.paper}{', ' + one.model if one.model else ''})"
            figures = [f"{one.value:.3f}" if score == one.score else "" for score in scores]
            lines.append(
                rf"\textit{{{_escaped(label)}}} & " + " & ".join([*figures, "", "", "", ""]) + r" \\"
            )
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _row(cells: list[str]) -> str:
    return " & ".join(map(_escaped, cells)) + r" \\"


def _escaped(text: str) -> str:
    line = " ".join(clean(text).split()).replace("–", "--")
    return "".join(_LATEX.get(sign, sign) for sign in line)
