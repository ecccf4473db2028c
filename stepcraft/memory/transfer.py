"""Adding procedures in batches, copying them from one memory to another, and comparing a memory with others."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from stepcraft.errors import AddReport, AddStopped, MemoryFailure
from stepcraft.memory.history import merged
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import ProcedureMemory, VectorMemory

T = TypeVar("T")


def add_in_batches(
    items: Iterable[T],
    size: int,
    put: Callable[[list[T]], AddReport],
    progress: Callable[[int], None] | None = None,
) -> AddReport:
    """Add items in batches, one after another; return the outcome of all.

    Args:
        items: the procedures, with their vectors where `put` takes them.
        size: the number of items in a batch.
        put: stores a batch, all or nothing.
        progress: called with the number of items stored so far.

    Raises:
        AddStopped: a batch failed after others were stored.
        MemoryFailure: the first batch failed.
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


@dataclass
class Comparison:
    """The differences between a memory and the procedures that it should hold."""

    same: int = 0
    missing: list[Procedure] = field(default_factory=list[Procedure])
    """Not in the memory."""
    extra: list[Procedure] = field(default_factory=list[Procedure])
    """In the memory alone."""
    different: list[Procedure] = field(default_factory=list[Procedure])
    """In the memory under the same id, and adding them would change it; listed as they should be."""

    @property
    def equal(self) -> bool:
        """Whether the memory holds exactly these procedures."""
        return not (self.missing or self.extra or self.different)


def copy(
    source: ProcedureMemory,
    target: ProcedureMemory,
    *,
    progress: Callable[[int], None] | None = None,
) -> AddReport:
    """Add all procedures of one memory to another; after an interruption, running it again completes the copy.

    Vectors are copied where both memories use the same embedding model and template, and made anew elsewhere.

    Raises:
        AddStopped: one of them failed after procedures were added, which stay.
        MemoryFailure: one of them failed before anything was added.
    """
    if (
        isinstance(source, VectorMemory)
        and isinstance(target, VectorMemory)
        and source.made_with.fits(target.made_with)
    ):
        return target.add_with_vectors(source.with_vectors(), progress=progress)
    return target.add(source, progress=progress)


def compare(memory: ProcedureMemory, wanted: Iterable[Procedure]) -> Comparison:
    """Compare a memory with the procedures that it should hold; the last one counts where two have the same id.

    Versions and votes that the memory alone has are no difference, as they are none to `add`.

    Raises:
        MemoryFailure: the memory cannot be read.
    """
    left = {procedure.id: procedure for procedure in wanted}
    found = Comparison()
    for kept in memory:
        known = left.pop(kept.id, None)
        if known is None:
            found.extra.append(kept)
        elif known == kept or merged(kept, known) == kept:
            found.same += 1
        else:
            found.different.append(known)
    found.missing = list(left.values())
    return found
