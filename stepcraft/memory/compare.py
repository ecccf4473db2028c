"""Comparing a memory with the procedures that it should hold."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from stepcraft.memory.batches import merged
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import ProcedureMemory


@dataclass
class Comparison:
    """The differences between a memory and the procedures that it should hold."""

    same: int = 0
    missing: list[Procedure] = field(default_factory=list[Procedure])
    """Not in the memory."""
    extra: list[Procedure] = field(default_factory=list[Procedure])
    """In the memory alone."""
    different: list[Procedure] = field(default_factory=list[Procedure])
    """In the memory under the same id, and adding them would change it."""


def compare(memory: ProcedureMemory, expected: Iterable[Procedure]) -> Comparison:
    """Compare a memory with the procedures that it should hold, the last one of each id.

    Votes that the memory alone has are no difference, as they are none to `add`.

    Raises:
        MemoryFailure: The memory cannot be read.
    """
    rest = {procedure.id: procedure for procedure in expected}
    comparison = Comparison()
    for stored in memory:
        procedure = rest.pop(stored.id, None)
        if procedure is None:
            comparison.extra.append(stored)
        elif merged(stored, procedure) == stored:
            comparison.same += 1
        else:
            comparison.different.append(procedure)
    comparison.missing = list(rest.values())
    return comparison
