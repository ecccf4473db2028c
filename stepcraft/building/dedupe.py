"""Near duplicates in a whole memory: found, and merged or linked."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from stepcraft.building.compare import content_of
from stepcraft.building.duplicates import (
    Comparer,
    Verdict,
    changed_in,
    check_writable,
    in_background,
    merge,
    similarity,
    with_link,
)
from stepcraft.building.placing import links_of
from stepcraft.evals.evaluate import side_by_side
from stepcraft.evals.progress import Progress
from stepcraft.llm.usage import Usage, add_usage, no_usage
from stepcraft.memory.procedure import Procedure

Pair = tuple[Procedure, Procedure]


@dataclass(frozen=True)
class Change:
    """Two procedures for the same task, and what became of them."""

    kind: Literal["merged", "linked"]
    kept: Procedure
    """The one that is kept, as it was."""
    other: Procedure
    """The other one, as it was."""
    result: Procedure
    """The one that is kept, as it is now."""
    verdict: Verdict


@dataclass
class Deduped:
    """What was found in a memory."""

    procedures: int = 0
    compared: int = 0
    """Pairs that were alike enough to be compared."""
    undecided: int = 0
    """Pairs of which no model could say whether they are for the same task."""
    gone: int = 0
    """Pairs of which one was changed or removed meanwhile, by somebody else."""
    changes: list[Change] = field(default_factory=list[Change])
    warnings: list[str] = field(default_factory=list[str])
    usage: Usage = field(default_factory=no_usage)

    def count(self, kind: Literal["merged", "linked"]) -> int:
        """How many pairs were merged, or linked."""
        return sum(change.kind == kind for change in self.changes)


async def dedupe(
    comparer: Comparer,
    on_duplicate: Literal["merge", "keep"] = "merge",
    *,
    concurrency: int = 16,
    dry_run: bool = False,
    on_progress: Callable[[Progress], object] = lambda _progress: None,
) -> Deduped:
    """Merge or link the procedures of a memory that are for the same task.

    Every procedure is searched for once; the pairs that are alike are compared, the most alike first, and only then is the
    memory changed, pair by pair. Of two procedures the one that a person approved is kept, else the one that is not stale,
    else the one that the memory lists first. What is merged is stored before the other one is deleted, so that a killed run
    loses nothing, and the next one goes on; with a cache in the comparer it does not ask again what was answered.

    Args:
        comparer: The memory, and the model that says what is the same.
        on_duplicate: "merge" or "keep", as for `Duplicates`.
        concurrency: The most comparisons that are made at the same time.
        dry_run: Whether the memory is left as it is; what would be done is returned.
        on_progress: Is told of the progress of the comparisons.

    Raises:
        ReadOnlyMemory: The memory cannot be changed, and it is no dry run.
        ModelFailure: The model refuses every call.
        MemoryFailure: The memory cannot be read or written.
    """
    if not dry_run:
        check_writable(comparer.memory)
    run = _Run(comparer, merging=on_duplicate == "merge", dry_run=dry_run)
    pairs = await run.alike(concurrency)
    began = time.monotonic()
    verdicts: dict[int, Verdict] = {}

    def tell() -> None:
        seconds = time.monotonic() - began
        rate = len(verdicts) / seconds if seconds else 0.0
        used = run.deduped.usage
        on_progress(
            Progress(
                len(verdicts),
                run.deduped.undecided,
                len(pairs),
                seconds,
                used["calls"],
                used["input_tokens"] + used["output_tokens"],
                rate=rate,
                seconds_left=(len(pairs) - len(verdicts)) / rate if rate else None,
            )
        )

    async def one(number: int, pair: Pair) -> None:
        verdicts[number] = await run.compare(pair)
        tell()

    tell()
    await side_by_side([partial(one, *numbered) for numbered in enumerate(pairs)], concurrency)
    for number, pair in enumerate(pairs):
        if verdicts[number].same:
            await run.change(pair, verdicts[number])
    return run.deduped


class _Run:
    """One pass over a memory."""

    def __init__(self, comparer: Comparer, *, merging: bool, dry_run: bool) -> None:
        self.comparer = comparer
        self.memory = comparer.memory
        self.merging = merging
        self.dry_run = dry_run
        self.deduped = Deduped()
        self.now: dict[str, Procedure | None] = {}
        """What a dry run would have changed, as it would be then; None for what it would have deleted."""
        self.into: dict[str, str] = {}
        """Where those that were deleted went."""

    async def alike(self, concurrency: int) -> list[Pair]:
        """The pairs that are to be compared, the most alike first; the first one of each is the one to keep."""
        everything: Sequence[Procedure] = await in_background(lambda: list(self.memory))
        self.deduped.procedures = len(everything)
        order = {procedure.id: number for number, procedure in enumerate(everything)}
        found: dict[tuple[str, str], tuple[float, Pair]] = {}

        async def search(procedure: Procedure) -> None:
            for other in await self.comparer.alike(procedure):
                if other.id in order and (self.merging or other.id not in links_of(procedure)):
                    one, two = sorted(
                        (procedure, other), key=lambda it: (*_standing(it), order[it.id])
                    )
                    found[one.id, two.id] = similarity(one, two), (one, two)

        await side_by_side([partial(search, procedure) for procedure in everything], concurrency)
        ranked = sorted(
            found.items(), key=lambda item: (-item[1][0], order[item[0][0]], order[item[0][1]])
        )
        return [pair for _, (_, pair) in ranked]

    async def compare(self, pair: Pair) -> Verdict:
        """What the model says of a pair."""
        verdict = await self.comparer.compare(*pair, merge=self.merging)
        self.deduped.compared += 1
        self.deduped.undecided += verdict.same is None
        self.deduped.usage = add_usage(self.deduped.usage, verdict.usage)
        self.deduped.warnings += [
            told for told in verdict.warnings if told not in self.deduped.warnings
        ]
        return verdict

    async def change(self, pair: Pair, verdict: Verdict) -> None:
        """Merge or link a pair that is the same; what has changed since it was compared is compared again."""
        names = [self._went_to(one.id) for one in pair]
        kept, other = [await self._get(name) for name in names]
        if names[0] == names[1]:
            return
        if kept is None or other is None:
            self.deduped.gone += 1
            return
        if (content_of(kept), content_of(other)) != (content_of(pair[0]), content_of(pair[1])):
            verdict = await self.compare((kept, other))
        if not verdict.same:
            return
        compared = content_of(kept)
        if self.merging and (merged := verdict.merged):
            is_current = False

            def make(one: Procedure) -> Procedure:
                nonlocal is_current
                is_current = content_of(one) == compared
                return merge(one, other, merged) if is_current else one

            if (result := await self._change(kept, make)) and is_current:
                await self._delete(other, into=result)
                self.deduped.changes.append(Change("merged", kept, other, result, verdict))
                return
        elif other.id in links_of(kept) and kept.id in links_of(other):
            return
        else:
            result = await self._change(kept, partial(with_link, other=other))
            if result and await self._change(other, partial(with_link, other=kept)):
                self.deduped.changes.append(Change("linked", kept, other, result, verdict))
                return
        self.deduped.gone += 1

    def _went_to(self, name: str) -> str:
        while name in self.into:
            name = self.into[name]
        return name

    async def _get(self, name: str) -> Procedure | None:
        if name in self.now:
            return self.now[name]
        return await in_background(partial(self.memory.get, name))

    async def _change(
        self, procedure: Procedure, make: Callable[[Procedure], Procedure]
    ) -> Procedure | None:
        if self.dry_run:
            self.now[procedure.id] = make(procedure)
            return self.now[procedure.id]
        return await in_background(partial(changed_in, self.memory, procedure, make))

    async def _delete(self, procedure: Procedure, into: Procedure) -> None:
        self.into[procedure.id] = into.id
        if self.dry_run:
            self.now[procedure.id] = None
        else:
            await in_background(partial(self.memory.delete, [procedure.id]))



def _standing(procedure: Procedure) -> tuple[bool, bool]:
    """Sorts first what is rather kept."""
    return not procedure.metadata.get("approved"), bool(procedure.metadata.get("stale"))
