"""The page of a build: what each document gave, what was rejected and why, what is flagged, and what it cost.

It fetches nothing and runs no script, like the page of a run; all text of documents and models is escaped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from stepcraft.building.directory import REPORT, Placed, Record, read_records
from stepcraft.errors import Failed
from stepcraft.llm.budget import NodeUsage, add_usage, no_usage
from stepcraft.nodes.extract.drafted import Drafted
from stepcraft.report.rendering import counted, rendered, seconds

_HERE = files("stepcraft.building")

MOST = 2_000
"""The most documents that are shown with all that they gave; of further ones only the counts are on the page."""

_PLACED = {
    "added": ("added", "changed"),
    "present": ("in the memory before", "same"),
    "merged": ("merged with another", "changed"),
    "linked": ("linked to another for the same task", "changed"),
    "skipped": ("left out for another", "skipped"),
    "failed": ("not added", "skipped"),
}
"""What is shown of what became of a procedure, and the style of its badge."""


@dataclass(frozen=True)
class _Step:
    text: str
    missing: Sequence[str]
    """What of it the document does not have."""


@dataclass(frozen=True)
class _Procedure:
    drafted: Drafted
    steps: Sequence[_Step]
    badge: tuple[str, str]
    reason: str


@dataclass(frozen=True)
class _Row:
    """A document on the page."""

    record: Record
    procedures: Sequence[_Procedure]
    flagged: int
    cost: str


def write_page(directory: Path, memory: str, failed: Sequence[Failed] = (), *, most: int = MOST) -> Path:
    """Write the page of the builds that a directory has the records of; return its path.

    Args:
        directory: The directory.
        memory: What the memory is called.
        failed: What could not be read or listed.
        most: The most documents that are shown with all that they gave.

    Raises:
        BadInput: It is no directory of a build, or a line in it is damaged.
        OSError: The page cannot be written.
    """
    rows: list[_Row] = []
    barren: list[Record] = []
    """Documents without tasks."""
    usage, usd, took = no_usage(), 0.0, 0.0
    unpriced, total, procedures, flagged, rejected, left_out = False, 0, 0, 0, 0, 0
    for record in read_records(directory):
        total += 1
        usage = add_usage(usage, {**no_usage(), **record["usage"]})  # type: ignore[typeddict-item]
        unpriced, usd, took = (
            unpriced or record["usd"] is None,
            usd + (record["usd"] or 0.0),
            took + record["seconds"],
        )
        row = _row(record)
        procedures, flagged, rejected = (
            procedures + len(row.procedures),
            flagged + row.flagged,
            rejected + len(record["rejected"]),
        )
        if not (row.procedures or record["rejected"] or record["error"]):
            barren.append({**record, "procedures": []})
        elif len(rows) < most:
            rows.append(row)
        else:
            left_out += 1
    warnings = [f"{one.where}: {one.reason}" for one in failed]
    if left_out:
        warnings.append(
            f"{counted(left_out, 'further document')} are not on this page; documents.jsonl beside it has them"
        )
    text = rendered(
        "building.html.j2",
        folder=_HERE,
        style=(_HERE / "building.css").read_text("utf-8"),
        title="Building a memory",
        heading=memory,
        facts=[
            counted(total, "document"),
            counted(procedures, "procedure"),
            f"{flagged:,} flagged",
            f"{rejected:,} rejected",
            counted(usage["calls"], "model call"),
            f"{usage['input_tokens'] + usage['output_tokens']:,} tokens",
            *([f"{usd:,.4f} USD"] if usd and not unpriced else []),
        ],
        sections=[
            *([("warnings", "Warnings")] if warnings else []),
            ("documents", "Documents"),
            *([("barren", "Without tasks")] if barren else []),
            ("cost", "Time and tokens"),
        ],
        warnings=warnings,
        rows=sorted(rows, key=lambda row: row.record["source"]),
        barren=sorted(barren, key=lambda record: record["source"]),
        nodes=usage["nodes"],
        usage=usage,
        tokens=_tokens,
        seconds=seconds(took),
    )
    path = directory / REPORT
    path.write_text(text, encoding="utf-8", errors="replace")
    return path


def _row(record: Record) -> _Row:
    placed = record["placed"] or []
    procedures = [
        _procedure(drafted, placed[number] if number < len(placed) else None)
        for number, drafted in enumerate(record["procedures"])
    ]
    usage = record["usage"]
    parts = [
        counted(usage["calls"], "call"),
        f"{_tokens(usage):,} tokens",
        seconds(record["seconds"]),
        *([f"{record['usd']:.4f} USD"] if record["usd"] else []),
    ]
    return _Row(
        record, procedures, sum(bool(one["flagged"]) for one in record["procedures"]), ", ".join(parts)
    )


def _procedure(drafted: Drafted, placed: Placed | None) -> _Procedure:
    missing = {flagged["step"]: flagged["names"] for flagged in drafted["flagged"]}
    return _Procedure(
        drafted,
        [_Step(text, missing.get(number, ())) for number, text in enumerate(drafted["steps"], 1)],
        _PLACED[placed["how"]] if placed else ("not yet added", "skipped"),
        placed["reason"] if placed else "",
    )


def _tokens(used: NodeUsage | Mapping[str, Any]) -> int:
    return int(used["input_tokens"]) + int(used["output_tokens"])
