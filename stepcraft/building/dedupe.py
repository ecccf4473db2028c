"""Procedures for the same task in a whole memory: found, and merged or linked."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from stepcraft.building.duplicates import Comparer, Placer
from stepcraft.building.plan import Step, Verdict
from stepcraft.building.provenance import Provenance
from stepcraft.building.side_by_side import side_by_side
from stepcraft.llm.usage import Usage, add_usage, no_usage
from stepcraft.memory.procedure import Procedure


@dataclass
class Deduped:
    """What was found in a memory."""

    procedures: int = 0
    compared: int = 0
    """Pairs that were alike enough to be compared."""
    undecided: int = 0
    """Pairs of which no model could say whether they are for the same task."""
    changes: list[Step] = field(default_factory=list[Step])
    """What was merged or linked; `stored` is the procedure that is kept, as it was."""
    warnings: list[str] = field(default_factory=list[str])
    usage: Usage = field(default_factory=no_usage)

    def count(self, how: str) -> int:
        """Return how many procedures were merged, or linked."""
        return sum(step.how == how for step in self.changes)


async def dedupe(
    comparer: Comparer,
    *,
    concurrency: int = 8,
    dry_run: bool = False,
    on_progress: Callable[[Deduped], object] = lambda _deduped: None,
) -> Deduped:
    """Merge or link the procedures of a memory that are for the same task.

    Every procedure is searched for once, and compared with those like it that are listed before it;
    only then is the memory changed. What is merged is stored before the other one is deleted, so
    that a killed run loses nothing; with a ledger in the comparer the next one does not ask again
    what was answered. Stale ones are left alone.

    Args:
        comparer: The memory, and the model that says what is the same.
        concurrency: The most comparisons that are made at the same time.
        dry_run: Whether the memory is left as it is; what would be done is returned.
        on_progress: Is told of the progress.

    Raises:
        ReadOnlyMemory: The memory cannot be changed, and it is no dry run.
        ModelFailure: The model refuses every call.
        MemoryFailure: The memory cannot be read or written.
    """
    placer, deduped = Placer(comparer, dry_run=dry_run), Deduped()
    memory = comparer.memory
    names = await asyncio.to_thread(lambda: [each.id for each in memory])
    places = {name: place for place, name in enumerate(names)}
    compared: dict[str, tuple[Procedure, list[Procedure], dict[str, Verdict]]] = {}

    async def compare(name: str) -> None:
        procedure = await asyncio.to_thread(memory.get, name)
        if procedure is None or Provenance.of(procedure).stale:
            return
        rivals = [
            rival
            for rival in await asyncio.to_thread(comparer.rivals, procedure)
            if places.get(rival.id, len(places)) < places[name]
            and not Provenance.of(rival).stale
            and name not in Provenance.of(rival).also
        ]
        verdicts: dict[str, Verdict] = {}
        await comparer.compare_all(procedure, rivals, verdicts)
        compared[name] = procedure, rivals, verdicts
        deduped.procedures += 1
        on_progress(deduped)

    await side_by_side([partial(compare, name) for name in names], concurrency)
    # One after another, so that it does not depend on the model's speed which one is kept.
    for procedure, rivals, verdicts in (compared[name] for name in names if name in compared):
        step = await placer.place(procedure, rivals, verdicts)
        deduped.changes += [step] if step.how in ("merged", "linked") else []
        for verdict in step.verdicts:
            deduped.compared += 1
            deduped.undecided += verdict.same is None
            deduped.usage = add_usage(deduped.usage, verdict.usage)
            deduped.warnings += [each for each in verdict.warnings if each not in deduped.warnings]
    return deduped
