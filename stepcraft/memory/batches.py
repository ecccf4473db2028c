"""Adding to a memory in batches."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar

from stepcraft.errors import AddReport, AddStopped, MemoryFailure
from stepcraft.memory.history import merged

__all__ = ["add_in_batches", "merged"]

T = TypeVar("T")


def add_in_batches(
    items: Iterable[T],
    size: int,
    put: Callable[[list[T]], AddReport],
    progress: Callable[[int], None] | None = None,
) -> AddReport:
    """Add items in batches, one after another; return the outcome of all.

    Args:
        items: What to add.
        size: The number of items in a batch.
        put: Stores a batch, all or nothing.
        progress: Called with the number of items stored so far.

    Raises:
        AddStopped: A batch failed after others were stored.
        MemoryFailure: The first batch failed.
    """
    report, done, left = AddReport(), 0, iter(items)
    try:
        while batch := list(islice(left, size)):
            report.include(put(batch))
            done += len(batch)
            if progress:
                progress(done)
    except MemoryFailure as error:
        if not done:
            raise
        raise AddStopped(str(error), report, done) from error
    return report
