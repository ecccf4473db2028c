"""Copying procedures from one memory to another, and comparing a memory with procedures from elsewhere."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from stepcraft.errors import AddReport
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import ProcedureMemory, VectorMemory


@dataclass
class Comparison:
    """The differences between a memory and the procedures that it should hold."""

    same: int = 0
    missing: list[Procedure] = field(default_factory=list[Procedure])
    """Not in the memory."""
    extra: list[Procedure] = field(default_factory=list[Procedure])
    """In the memory alone."""
    different: list[Procedure] = field(default_factory=list[Procedure])
    """In the memory under the same id with other content, source or metadata; listed as they should be."""

    @property
    def equal(self) -> bool:
        """Whether the memory holds exactly these procedures."""
        return not (self.missing or self.extra or self.different)


def copy(
    source: ProcedureMemory, target: ProcedureMemory, *, progress: Callable[[int], None] | None = None
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

    Raises:
        MemoryFailure: the memory cannot be read.
    """
    left = {procedure.id: procedure for procedure in wanted}
    found = Comparison()
    for kept in memory:
        known = left.pop(kept.id, None)
        if known is None:
            found.extra.append(kept)
        elif known == kept:
            found.same += 1
        else:
            found.different.append(known)
    found.missing = list(left.values())
    return found
