"""Procedures for the same task in other words, found as they are added.

Candidates are the nearest procedures that a search of the memory finds with the whole text of a
procedure, as far as they share enough of their words; a model says of each whether it is for the
same task. Names, calls and options make most of the words of a procedure, which is why words tell
more than vectors do. Of the 57 pairs in tests/data/duplicate_pairs.jsonl the 30 for the same task
share 0.55 or more of the words of the shorter one. At that share, 100 procedures of LGStep have
32 pairs to ask about among their five nearest (41 in a memory without vectors); at 0.5, the
default, 70 (84). With cosines of WordLlama the same 30 take a threshold of 0.65, which leaves 256.
So 10,000 procedures cost 10,000 searches and some 8,000 calls, not 50 million.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from stepcraft.building.compare import compare, comparison
from stepcraft.building.ledger import Ledger
from stepcraft.building.plan import Step, Verdict, Verdicts, plan_procedure, version_of
from stepcraft.building.provenance import Provenance
from stepcraft.building.settings import DuplicatesContext
from stepcraft.errors import BadInput, MemoryFailure, ReadOnlyMemory
from stepcraft.llm.resources import Resources
from stepcraft.llm.usage import no_usage
from stepcraft.memory.history import content_of, reason
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.models.resolve import ChatModel, model_name
from stepcraft.text.clean import stems

NEAREST = 5
"""How many of the nearest procedures are looked at."""
_TRIES = 10
"""How often a procedure is compared again because another process has changed its rivals."""
_ALIKE = 0.5
"""The share of words in common from which on the model is asked."""


@dataclass
class Placer:
    """Has procedures for the same task stand once in a memory.

    One takes the place of both, under the id of the one that is there. Where the two contradict
    each other, the merged one names what neither has, or a person has approved one of them, both
    stay and are linked.

    Many may be placed at the same time, on one event loop: the model is asked about them side by
    side, and each is compared with what was placed meanwhile before it is placed itself. Other
    processes that add to the memory are not waited for: `dedupe` finds what both add.

    Args:
        memory: The memory.
        model: The model, or its name; None for that of STEPCRAFT_MODEL, or else the keyless one, to
            which tasks are the same where the outputs are equal.
        ledger: Keeps verdicts.
        settings: Further settings of the comparisons.
        dry_run: Whether the memory is left as it is.

    Raises:
        BadInput: The model cannot be used.
        ReadOnlyMemory: The memory cannot be changed, and it is no dry run.
    """

    memory: ProcedureMemory
    model: ChatModel | str | None = None
    _: KW_ONLY
    ledger: Ledger | None = None
    settings: DuplicatesContext = field(default_factory=DuplicatesContext)
    dry_run: bool = False

    def __post_init__(self) -> None:
        if self.memory.read_only and not self.dry_run:
            raise ReadOnlyMemory(
                f"{self.memory.name} can be searched, not changed; "
                "copy it into a .db file with `stepcraft memory copy` first"
            )
        self._resources = Resources.of("duplicates", DuplicatesContext, {"model": self.model or ""})
        self._graph = comparison(self._resources)
        self._turn = asyncio.Lock()

    async def compare(self, first: Procedure, second: Procedure) -> Verdict:
        """Return what the model says of two procedures; of equal ones it is not asked.

        What a person has approved is not rewritten.

        Raises:
            ModelFailure: The model refuses the call.
        """
        contents = content_of(first), content_of(second)
        if contents[0] == contents[1]:
            return Verdict(same=True, merged=contents[0])
        approved = first.metadata.get("approved") or second.metadata.get("approved")
        name = model_name(self._resources.choice(compare.name, self.settings))
        # All that the verdict depends on; a model counts by its name.
        question = json.dumps([name, contents, self.settings.model_dump(mode="json")])
        answer = self.ledger.verdict(question) if self.ledger else None
        if not answer:
            state: Any = {"first": contents[0], "second": contents[1]}
            result = await self._graph.ainvoke(state, context=self.settings)
            answer = {name: result[name] for name in Verdict.__annotations__}
            if self.ledger and answer["same"] is not None:
                self.ledger.put_verdict(question, {**answer, "usage": no_usage()})
        verdict = Verdict(**answer)
        return replace(verdict, merged=None) if approved or not _can_be_kept(verdict) else verdict

    async def compare_all(
        self, procedure: Procedure, rivals: Iterable[Procedure], verdicts: Verdicts
    ) -> None:
        """Compare a procedure with others, up to the first that is for the same task."""
        for rival in rivals:
            verdict = verdicts[version_of(rival)] = await self.compare(rival, procedure)
            if verdict.same:
                return

    async def place(
        self,
        procedure: Procedure,
        rivals: Sequence[Procedure] | None = None,
        verdicts: Verdicts | None = None,
    ) -> Step:
        """Add a procedure, or what is made of it and the one for its task.

        Args:
            procedure: The procedure.
            rivals: For a procedure that is in the memory, those that it may be merged with.
            verdicts: What the model has said of it and these.

        Raises:
            ModelFailure: The model refuses the call.
            MemoryFailure: The memory cannot be read or written.
        """
        verdicts = verdicts or {}
        for _ in range(_TRIES):
            async with self._turn:
                step = await asyncio.to_thread(self._try, procedure, rivals, verdicts)
            if isinstance(step, Step):
                return step
            await self.compare_all(procedure, step, verdicts)
        raise MemoryFailure(
            f"{self.memory.name}: others keep changing the procedures that {procedure.id} is "
            "compared with; start again when they are done"
        )

    def _try(
        self, procedure: Procedure, rivals: Sequence[Procedure] | None, verdicts: Verdicts
    ) -> Step | list[Procedure]:
        """Carry out what is planned for a procedure, or return what it must be compared with first.

        That is nothing where another process has changed or deleted what it was compared with.
        """
        memory, is_new = self.memory, rivals is None
        stored = memory.get(procedure.id) if is_new else None
        if is_new and not stored:
            rivals = nearest_alike(memory, procedure)
        elif rivals:
            rivals = [each for rival in rivals if (each := memory.get(rival.id))]
        step = plan_procedure(procedure, stored, rivals or [], verdicts)
        if not isinstance(step, Step) or self.dry_run:
            return step
        # The new one first: a link to what was never stored would pass for a merged one.
        is_written = step.how == "linked" or (step.how == "added" and is_new)
        if is_written and (failed := memory.add([step.procedure]).failed):
            raise MemoryFailure(f"{memory.name} did not take {procedure.id}: {failed[0].reason}")
        if step.stored:
            with reason(f"{step.how}: {procedure.output}", by=procedure.source):
                changed = changed_in(memory, step.stored.id, step.change)
            has_both = changed and procedure.id in Provenance.of(changed).also
            if not changed or (step.how == "merged" and not has_both):
                return []
        if step.how == "merged" and not is_new:
            memory.delete([procedure.id])
        return step


def _can_be_kept(verdict: Verdict) -> bool:
    """Tell whether the procedure in place of both is one."""
    try:
        return bool(verdict.merged and Procedure.from_dict(verdict.merged))
    except BadInput:
        return False


def nearest_alike(memory: ProcedureMemory, procedure: Procedure) -> list[Procedure]:
    """Return the procedures of a memory that may be for the same task as one, nearest first.

    A stale one is of an earlier version, and is not merged with what replaces it.
    """
    hits = memory.search(procedure.text(), NEAREST + 1, alpha=1)
    others = [hit.procedure for hit in hits if hit.procedure.id != procedure.id]
    return [
        other
        for other in others[:NEAREST]
        if shared(procedure, other) >= _ALIKE and not Provenance.of(other).stale
    ]


def shared(procedure: Procedure, other: Procedure) -> float:
    """Return the share of the words of the shorter of two procedures that the other one has too."""
    words, others = stems(procedure.text()), stems(other.text())
    return len(words & others) / max(1, min(len(words), len(others)))


def changed_in(
    memory: ProcedureMemory, name: str, change: Callable[[Procedure], Procedure]
) -> Procedure | None:
    """Change a procedure of a memory; return it as it is now, None if it is there no more.

    Raises:
        BadInput: What `change` made cannot be kept.
        MemoryFailure: It cannot be written.
    """
    try:
        return memory.update(name, change)
    except BadInput:
        if memory.get(name):
            raise
        return None
