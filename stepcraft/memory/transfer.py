"""Procedures moved from one memory to another, and a memory compared with procedures from elsewhere."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from stepcraft.errors import AddReport
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.memory.vectors import VectorMemory


@dataclass
class Comparison:
    """How a memory differs from procedures that it should hold."""

    same: int = 0
    missing: list[Procedure] = field(default_factory=list[Procedure])
    """Are not in the memory."""
    extra: list[Procedure] = field(default_factory=list[Procedure])
    """Are in the memory alone."""
    different: list[Procedure] = field(default_factory=list[Procedure])
    """Are in the memory under the same id with other content, source or metadata; as they should be."""

    @property
    def equal(self) -> bool:
        """Whether the memory holds these procedures and no others."""
        return not (self.missing or self.extra or self.different)


def copy(
    source: ProcedureMemory, target: ProcedureMemory, *, progress: Callable[[int], None] | None = None
) -> AddReport:
    """Add all procedures of one memory to another; run again after it was broken off, it does the rest.

    Vectors go along where both were made with the same embedding model and template; else they are made anew.

    Raises:
        AddStopped: one of them failed on the way; what was added so far stays.
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
    """What is missing from a memory, extra in it, or different; of the same id wanted twice the last counts.

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
