"""The page of a build: what each document gave, what was rejected and why, what is flagged, and what it cost.

It fetches nothing and runs no script, like the page of a run; all text of documents and models is escaped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from stepcraft.building.directory import DOCUMENTS, REPORT, Counts, Placed, Record, read_records
from stepcraft.building.drafted import Drafted
from stepcraft.errors import Failed
from stepcraft.llm.usage import Usage
from stepcraft.nodes.begin import KEYLESS
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


def write_page(
    directory: Path, memory: str, failed: Sequence[Failed] = (), *, most: int = MOST
) -> Path:
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
    counts, documents, is_keyless = Counts(), 0, False
    for record in read_records(directory):
        documents += 1
        counts.count(record)
        is_keyless |= KEYLESS in record["warnings"]
        record["warnings"] = [warning for warning in record["warnings"] if warning != KEYLESS]
        if len(rows) + len(barren) >= most:
            continue
        if record["procedures"] or record["rejected"] or record["error"]:
            rows.append(_row(record))
        else:
            barren.append(record)
    warnings = [
        *([KEYLESS] if is_keyless else []),
        *(f"{one.where}: {one.reason}" for one in failed),
    ]
    if documents > most:
        warnings.append(f"only {most:,} documents are on this page; {DOCUMENTS} beside it has all")
    text = rendered(
        "building.html.j2",
        folder=_HERE,
        style=(_HERE / "building.css").read_text("utf-8"),
        title="Building a memory",
        heading=memory,
        facts=[
            counted(documents, "document"),
            counted(counts.procedures, "procedure"),
            f"{counts.flagged:,} flagged",
            f"{counts.rejected:,} rejected",
            counted(counts.usage["calls"], "model call"),
            f"{_tokens(counts.usage):,} tokens",
            *([f"{counts.usd:,.4f} USD"] if counts.usd else []),
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
        usage=counts.usage,
        seconds=seconds(counts.seconds),
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
        record,
        procedures,
        sum(bool(one["flagged"]) for one in record["procedures"]),
        ", ".join(parts),
    )


def _procedure(drafted: Drafted, placed: Placed | None) -> _Procedure:
    missing = {flagged["step"]: flagged["names"] for flagged in drafted["flagged"]}
    return _Procedure(
        drafted,
        [_Step(text, missing.get(number, ())) for number, text in enumerate(drafted["steps"], 1)],
        _PLACED[placed["how"]] if placed else ("not yet added", "skipped"),
        placed["reason"] if placed else "",
    )


def _tokens(used: Usage) -> int:
    return used["input_tokens"] + used["output_tokens"]
