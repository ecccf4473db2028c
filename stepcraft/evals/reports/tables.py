"""The figures of an evaluation for other programs: CSV with a row a sample and method."""

import csv
import io
import re
from collections.abc import Mapping
from pathlib import Path

from stepcraft.evals.directory import Outcome, read_outcomes
from stepcraft.text.clean import clean

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
        [
            "directory",
            "method",
            "id",
            "question",
            *scores,
            *_USAGE,
            "seconds",
            "usd",
            "warnings",
            "error",
        ]
    )
    for name, one in outcomes:
        usage = one["usage"]
        table.writerow(
            [_cell(text) for text in (name, one["method"], one["id"], one["sample"]["question"])]
            + [one["scores"].get(score, "") for score in scores]
            + [usage.get(key, "") for key in _USAGE]
            + [
                one["seconds"],
                one.get("usd", ""),
                _cell("; ".join(one["warnings"])),
                _cell(one["error"]),
            ]
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
    return (
        f"'{line}"
        if line.startswith(("=", "+", "-", "@")) and not _NUMBER.fullmatch(line)
        else line
    )
