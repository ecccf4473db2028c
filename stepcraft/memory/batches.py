"""What the memories share when procedures are added to them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from stepcraft.errors import AddReport, AddStopped, Failed, MemoryFailure
from stepcraft.memory.feedback import VOTES, joined_votes
from stepcraft.memory.procedure import Procedure

T = TypeVar("T")

_OF_TEXT = ("approved", "provenance", "stale")
"""Metadata that speaks of one text: a procedure with another text does not have it."""


def add_in_batches(
    items: Iterable[T],
    size: int,
    put: Callable[[list[T]], AddReport],
    progress: Callable[[int], None] | None = None,
) -> AddReport:
    """Add items in batches, one after another; return the outcome of all.

    Args:
        items: The items.
        size: The number of items in a batch.
        put: Stores a batch, all or nothing.
        progress: Called with the number of items stored so far.

    Raises:
        AddStopped: A batch failed after others were stored.
        MemoryFailure: The first batch failed.
    """
    report, done, rest = AddReport(), 0, iter(items)
    try:
        while batch := list(islice(rest, size)):
            report.include(put(batch))
            done += len(batch)
            if progress:
                progress(done)
    except MemoryFailure as error:
        if not done:
            raise
        raise AddStopped(str(error), report, done) from error
    return report


def same_text(first: Procedure, second: Procedure) -> bool:
    """Tell whether two procedures read the same, whatever source and metadata they have."""
    return (first.output, first.input, first.steps) == (second.output, second.input, second.steps)


def merged(stored: Procedure, added: Procedure) -> Procedure:
    """Return what a memory stores when a procedure is added under the id of another.

    It is the added one with the votes of both and, where the text is the same, with what builds and
    people said of that text.
    """
    names = _OF_TEXT if same_text(stored, added) else ()
    metadata = {name: stored.metadata[name] for name in names if name in stored.metadata}
    metadata |= added.metadata
    if VOTES in stored.metadata:
        metadata[VOTES] = joined_votes(stored, added)
    return replace(added, metadata=metadata) if metadata != added.metadata else added


def to_write(
    added: Mapping[str, Procedure], stored: Mapping[str, Procedure]
) -> dict[str, Procedure]:
    """Return what differs from what is stored, merged with it, by id."""
    whole = {
        id_: merged(stored[id_], procedure) if id_ in stored else procedure
        for id_, procedure in added.items()
    }
    return {id_: item for id_, item in whole.items() if stored.get(id_) != item}


def outcome(
    count: int,
    written: Mapping[str, Procedure],
    stored: Mapping[str, Procedure],
    refused: list[Failed],
) -> AddReport:
    """Return the report on a batch of so many procedures."""
    updated = len((written.keys() & stored.keys()) - {failure.where for failure in refused})
    added = len(written) - len(refused) - updated
    return AddReport(added, count - len(written), updated, refused)
