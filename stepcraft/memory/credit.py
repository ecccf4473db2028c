"""Credit the outcome of a run to the procedures that it was shown."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.memory.outcomes import with_outcome
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import ProcedureMemory


def record_outcome(
    memory: ProcedureMemory,
    used: Mapping[str, Any] | Iterable[str],
    *,
    succeeded: bool,
    run: str = "",
) -> list[Procedure]:
    """Record the outcome of a run for the procedures shown to its model, and return them.

    A procedure that AAG saved is credited too.

    Args:
        memory: The memory.
        used: The result of AAG or of an agent with `ProceduralMemoryMiddleware`, or the ids of the
            procedures, or a single id. Ids that the memory does not contain are ignored.
        succeeded: Whether the run reached its goal.
        run: The id of the run, which counts once no matter how often it is recorded.

    Raises:
        ReadOnlyMemory, MemoryFailure: The memory cannot be changed.
    """
    credited: list[Procedure] = []
    used = [used] if isinstance(used, str) else used
    for id_ in dict.fromkeys(shown_ids(used) if isinstance(used, Mapping) else used):
        with suppress(BadInput):  # it is not in this memory
            credited.append(
                memory.update(id_, lambda kept: with_outcome(kept, succeeded=succeeded, run=run))
            )
    return credited


def shown_ids(result: Mapping[str, Any]) -> list[str]:
    """Return the ids of what a run was shown, and of any procedure that it saved."""
    ids = [*(result.get("shown_procedures") or ()), result.get("remembered")]
    if isinstance(evidence := result.get("evidence"), Sequence):  # of any form in other graphs
        ids += [each.get("id") for each in evidence if isinstance(each, Mapping)]
    return [str(id_) for id_ in ids if id_]
