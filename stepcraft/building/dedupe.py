"""Find procedures for the same task throughout a memory, and merge or link them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from stepcraft.building.duplicates import Placer, Plan, Verdicts, nearest_alike
from stepcraft.building.provenance import Provenance
from stepcraft.concurrency import side_by_side
from stepcraft.llm.usage import Usage, add_usage, add_warnings, no_usage
from stepcraft.memory.procedure import Procedure


@dataclass
class Deduped:
    """The duplicates found in a memory."""

    procedures: int = 0
    compared: int = 0
    """The number of pairs similar enough to be compared."""
    undecided: int = 0
    """The number of pairs for which no model could tell whether they are for the same task."""
    changes: list[Plan] = field(default_factory=list)
    """The merges and links; `stored` is the kept procedure as it was before the change."""
    warnings: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=no_usage)

    def count(self, how: str) -> int:
        """Return the number of procedures changed in the given way: "merged" or "linked"."""
        return sum(plan.how == how for plan in self.changes)


async def dedupe(
    placer: Placer,
    *,
    concurrency: int = 8,
    on_progress: Callable[[Deduped], object] = lambda _deduped: None,
) -> Deduped:
    """Merge or link procedures in a memory that are for the same task.

    One search per procedure finds similar ones, and the procedure is compared with those listed
    before it; only then is the memory changed. A merged procedure is stored before the other one is
    deleted, so that a killed run loses nothing. If the placer has a ledger, the next run does not
    repeat comparisons that were already answered. Stale procedures are left alone.

    Args:
        placer: The placer, with the memory and the model that decides whether tasks are the same.
        concurrency: The maximum number of concurrent comparisons.
        on_progress: Called with the progress so far.

    Raises:
        ModelFailure: The model refuses every call.
        MemoryFailure: The memory cannot be read or written.
    """
    deduped = Deduped()
    procedures = [
        procedure
        for procedure in await asyncio.to_thread(list, placer.memory)
        if not Provenance.of(procedure).stale
    ]
    places = {procedure.id: place for place, procedure in enumerate(procedures)}
    compared: dict[str, tuple[list[Procedure], Verdicts]] = {}

    async def compare(procedure: Procedure) -> None:
        rivals = [
            rival
            for rival in await asyncio.to_thread(nearest_alike, placer.memory, procedure)
            if places.get(rival.id, len(places)) < places[procedure.id]
            and procedure.id not in Provenance.of(rival).also
        ]
        compared[procedure.id] = rivals, await placer.compare_all(procedure, rivals, {})
        deduped.procedures += 1
        on_progress(deduped)

    await side_by_side(map(compare, procedures), concurrency)
    # One after another, so that the model's speed does not decide which one is kept.
    for procedure in procedures:
        plan = await placer.place(procedure, *compared[procedure.id])
        if plan.how in ("merged", "linked"):
            deduped.changes.append(plan)
        for verdict in plan.verdicts:
            deduped.compared += 1
            deduped.undecided += verdict.same is None
            deduped.usage = add_usage(deduped.usage, verdict.usage)
            deduped.warnings = add_warnings(deduped.warnings, [*verdict.warnings])
    return deduped
