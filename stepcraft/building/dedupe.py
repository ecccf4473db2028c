"""Procedures for the same task in a whole memory: found, and merged or linked."""

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
    """What was found in a memory."""

    procedures: int = 0
    compared: int = 0
    """Pairs that were alike enough to be compared."""
    undecided: int = 0
    """Pairs of which no model could say whether they are for the same task."""
    changes: list[Plan] = field(default_factory=list)
    """What was merged or linked; `stored` is the procedure that is kept, as it was."""
    warnings: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=no_usage)

    def count(self, how: str) -> int:
        """Return how many procedures were merged, or linked."""
        return sum(plan.how == how for plan in self.changes)


async def dedupe(
    placer: Placer,
    *,
    concurrency: int = 8,
    on_progress: Callable[[Deduped], object] = lambda _deduped: None,
) -> Deduped:
    """Merge or link the procedures of a memory that are for the same task.

    Every procedure is searched for once, and compared with those like it that are listed before it;
    only then is the memory changed. What is merged is stored before the other one is deleted, so
    that a killed run loses nothing; with a ledger in the placer the next one does not ask again
    what was answered. Stale ones are left alone.

    Args:
        placer: The memory, and the model that says what is the same.
        concurrency: The most comparisons that are made at the same time.
        on_progress: Is told of the progress.

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
        verdicts: Verdicts = {}
        await placer.compare_all(procedure, rivals, verdicts)
        compared[procedure.id] = rivals, verdicts
        deduped.procedures += 1
        on_progress(deduped)

    await side_by_side(map(compare, procedures), concurrency)
    # One after another, so that it does not depend on the model's speed which one is kept.
    for procedure in procedures:
        plan = await placer.place(procedure, *compared[procedure.id])
        deduped.changes += [plan] if plan.how in ("merged", "linked") else []
        for verdict in plan.verdicts:
            deduped.compared += 1
            deduped.undecided += verdict.same is None
            deduped.usage = add_usage(deduped.usage, verdict.usage)
            deduped.warnings = add_warnings(deduped.warnings, [*verdict.warnings])
    return deduped
