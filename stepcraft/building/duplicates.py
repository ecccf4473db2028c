"""Detect newly added procedures that describe an existing task in different words.

Candidates are the nearest procedures that a memory search finds for the whole text of a procedure,
provided that they share enough of its words; a model decides whether each is for the same task.
Names, calls and options make up most of the words in a procedure, so words are more telling than
vectors. Of the 57 pairs in tests/data/duplicate_pairs.jsonl, the 30 for the same task share at
least 0.55 of the words of the shorter procedure. At that threshold, 100 procedures from LGStep,
each with its five nearest, leave 32 pairs to ask about (41 in a memory without vectors); the
default of 0.5 leaves 70 (84). With WordLlama's cosine similarities, finding the same 30 pairs takes
a threshold of 0.65, which leaves 256. So 10,000 procedures cost 10,000 searches and some 8,000
calls, instead of the 50 million calls for all pairs.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from stepcraft.building.compare import ComparisonState, compare, graph_of
from stepcraft.building.ledger import How, Ledger
from stepcraft.building.provenance import Provenance, linked, merged, with_teacher
from stepcraft.building.settings import COMPARE_INSTRUCTIONS, DuplicatesContext
from stepcraft.errors import BadInput, Conflict, MemoryFailure, ReadOnlyMemory
from stepcraft.index import MOST_RESULTS
from stepcraft.llm.resources import Resources
from stepcraft.llm.usage import Usage, no_usage
from stepcraft.memory.history import content_of, reason
from stepcraft.memory.procedure import Content, Procedure
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.models.resolve import ChatModel, model_name
from stepcraft.text.clean import stems

NEAREST = 5
"""The number of nearest procedures that are considered."""
_TRIES = 10
"""The maximum number of retries when another process has changed a procedure's candidates."""
_ALIKE = 0.5
"""The minimum share of words in common for the model to be asked about a pair."""


@dataclass(frozen=True)
class Verdict:
    """A model's verdict on two procedures."""

    same: bool | None
    """Whether they are for the same task, or None if no model could tell."""
    why: str = ""
    merged: Content | None = None
    """The procedure that replaces both, or None if they should be linked."""
    warnings: Sequence[str] = ()
    usage: Usage = field(default_factory=no_usage)


class NoCallsLeft(Exception):
    """A comparison needs a call of the model, and no more may be made."""


Verdicts: TypeAlias = dict[tuple[str, str, str], Verdict]
"""A model's verdicts on a procedure and its rivals (merge candidates), keyed by `versions_of`."""


@dataclass(frozen=True)
class Plan:
    """How a procedure will be placed in the memory."""

    how: How
    procedure: Procedure
    """The procedure, including any link."""
    stored: Procedure | None = None
    """The procedure in the memory that is the same or for the same task."""
    verdict: Verdict = Verdict(same=False)
    verdicts: Sequence[Verdict] = ()
    """All of the model's verdicts on the procedure and its rivals."""

    def change(self, current: Procedure) -> Procedure:
        """Return the replacement for the stored procedure."""
        if self.how == "present":
            return with_teacher(current, self.procedure)
        if self.verdict.merged:
            return merged(current, self.procedure, self.verdict.merged)
        return linked(current, self.procedure)


@dataclass
class Placer:
    """Adds procedures so that a memory holds only one for each task.

    Two procedures for the same task are merged into one, under the id of the stored one. Both are
    kept and linked if they contradict each other, if the merged one would contain names that
    neither has, if their tags, keys or expiries differ, or if a person has approved one of them.

    Many procedures can be placed at once on one event loop: the model compares them concurrently,
    and before each is placed, it is also compared with those placed in the meantime. A placer does
    not wait for other processes that add to the memory; `dedupe` finds the duplicates that this can
    leave.

    Args:
        memory: The memory.
        model: The model, or its name. None means the model named by STEPCRAFT_MODEL or, if that is
            unset, the keyless model, which treats tasks as the same if their outputs are equal.
        ledger: The ledger that stores verdicts, if any.
        settings: Further settings for the comparisons.
        dry_run: Whether to leave the memory unchanged.

    Raises:
        BadInput: The model cannot be used.
        ReadOnlyMemory: The memory cannot be changed, and this is not a dry run.
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
        self._graph = graph_of(compare, ComparisonState, self._resources)
        self._turn = asyncio.Lock()

    async def compare(
        self,
        first: Procedure,
        second: Procedure,
        *,
        is_new: bool = False,
        may_ask: bool = True,
    ) -> Verdict:
        """Return the model's verdict on two procedures; equal ones need no model call.

        A procedure that a person has approved is not rewritten, and two with different tags, keys
        or expiries are not merged, because searches and updates must find both. If the second is
        new and, like all that documents teach, has none of these, it can be merged into a
        procedure that has them.

        Raises:
            ModelFailure: The model refuses the call.
            NoCallsLeft: A call is needed, and `may_ask` is false.
        """
        contents = content_of(first), content_of(second)
        marks = ((each.tags, each.key, each.expires) for each in (first, second))
        pairs = zip(*marks, strict=True)
        is_apart = any(kept != other and (other or not is_new) for kept, other in pairs)
        if contents[0] == contents[1]:
            return Verdict(same=True, merged=None if is_apart else contents[0])
        name = model_name(self._resources.choice(compare.name, self.settings))
        # Everything that the verdict depends on; models are identified by name.
        settings = self.settings.model_dump(mode="json")
        question = json.dumps([name, contents, COMPARE_INSTRUCTIONS, settings])
        answer = self.ledger.verdict(question) if self.ledger else None
        if not answer:
            if not may_ask:
                raise NoCallsLeft
            state: Any = {"first": contents[0], "second": contents[1]}
            result = await self._graph.ainvoke(state, context=self.settings)
            answer = {name: result[name] for name in Verdict.__annotations__}
            if self.ledger and answer["same"] is not None:
                self.ledger.put_verdict(question, {**answer, "usage": no_usage()})
        if is_apart or first.metadata.get("approved") or second.metadata.get("approved"):
            answer["merged"] = None
        return Verdict(**answer)

    async def compare_all(
        self,
        procedure: Procedure,
        rivals: Iterable[Procedure],
        known: Verdicts,
        *,
        is_new: bool = False,
        may_ask: bool = True,
    ) -> Verdicts:
        """Compare a procedure with others until one for the same task is found.

        Returns:
            The known verdicts, which are not asked for again, and the new ones.
        """
        verdicts = {**known}
        for rival in rivals:
            versions = versions_of(procedure, rival)
            if versions not in verdicts:
                verdicts[versions] = await self.compare(
                    rival, procedure, is_new=is_new, may_ask=may_ask
                )
            if verdicts[versions].same:
                break
        return verdicts

    async def place(
        self,
        procedure: Procedure,
        rivals: Sequence[Procedure] | None = None,
        verdicts: Verdicts | None = None,
        *,
        may_ask: bool = True,
    ) -> Plan:
        """Add a procedure, merging or linking it with any procedure for the same task.

        Args:
            procedure: The procedure.
            rivals: For a procedure already in the memory, the procedures that it can be merged
                with.
            verdicts: The model's verdicts so far on the procedure and these rivals.
            may_ask: Whether the model may be called.

        Raises:
            ModelFailure: The model refuses the call.
            NoCallsLeft: A call is needed, and `may_ask` is false.
            MemoryFailure: The memory cannot be read or written.
        """
        is_new = rivals is None
        verdicts = verdicts or {}
        for _ in range(_TRIES):
            async with self._turn:
                latest, current = await asyncio.to_thread(self._current, procedure, rivals)
                if not latest:
                    return Plan("removed", procedure, verdicts=[*verdicts.values()])
                procedure = latest
                if plan := _plan(procedure, current, verdicts):
                    with suppress(Conflict):
                        await asyncio.to_thread(self._write, plan, is_new=is_new)
                        return plan
                    continue
            verdicts = await self.compare_all(
                procedure, current, verdicts, is_new=is_new, may_ask=may_ask
            )
        raise MemoryFailure(
            f"{self.memory.name}: others keep changing the procedures that {procedure.id} is "
            "compared with; start again when they are done"
        )

    def _current(
        self, procedure: Procedure, rivals: Sequence[Procedure] | None
    ) -> tuple[Procedure | None, Sequence[Procedure]]:
        """Return a procedure, or None if it was removed, and its rivals as they are stored now.

        A new procedure is compared with its stored copy, or else with the nearest procedures.
        """
        stored = self.memory.get(procedure.id)
        if rivals is None:
            return procedure, [stored] if stored else nearest_alike(self.memory, procedure)
        return stored, [each for rival in rivals if (each := self.memory.get(rival.id))]

    def _write(self, plan: Plan, *, is_new: bool) -> None:
        """Carry out a plan.

        Raises:
            Conflict: Another process has changed or deleted a procedure used in the comparison.
        """
        memory, id_ = self.memory, plan.procedure.id
        if self.dry_run:
            return
        # The new one first: a link to a procedure that was never stored would look like a merge.
        if is_new and plan.how in ("linked", "added"):
            for failure in memory.add([plan.procedure]).failed:
                raise MemoryFailure(f"{memory.name} did not take {id_}: {failure.reason}")
        elif plan.stored and not is_new:
            link = partial(linked, other=plan.stored)
            change = link if plan.how == "linked" else replace  # a mere copy, to check the text
            if not changed_in(memory, id_, change, plan.procedure):
                raise Conflict(f"{id_} was deleted meanwhile")
        if plan.stored:
            made_from = plan.stored if plan.how == "merged" else None
            with reason(f"{plan.how}: {plan.procedure.output}", by=plan.procedure.source):
                if not changed_in(memory, plan.stored.id, plan.change, made_from):
                    raise Conflict(f"{plan.stored.id} was deleted meanwhile")
        if plan.stored and plan.how == "merged" and not is_new:
            if self.ledger:  # or the documents that teach it could not be found any more
                self.ledger.merge(id_, into=plan.stored.id)
            memory.delete([id_])


def _plan(procedure: Procedure, rivals: Sequence[Procedure], verdicts: Verdicts) -> Plan | None:
    """Return the plan for a procedure, or None if it must first be compared with a rival."""
    asked = [*verdicts.values()]
    for rival in rivals:
        if procedure.id in (rival.id, *Provenance.of(rival).also):
            return Plan("present", procedure, rival, verdicts=asked)
    for rival in rivals:
        verdict = verdicts.get(versions_of(procedure, rival))
        if not verdict:
            return None
        if verdict.merged:
            return Plan("merged", procedure, rival, verdict, asked)
        if verdict.same:
            return Plan("linked", linked(procedure, rival), rival, verdict, asked)
    return Plan("added", procedure, verdicts=asked)


def versions_of(procedure: Procedure, rival: Procedure) -> tuple[str, str, str]:
    """Return a key for a procedure's text and for a rival and its text."""
    return procedure.text(), rival.id, rival.text()


def nearest_alike(memory: ProcedureMemory, procedure: Procedure) -> list[Procedure]:
    """Return procedures in a memory that may be for the same task, nearest first.

    Stale procedures are left out: each belongs to an earlier version and must not be merged with
    its replacement.
    """
    number = NEAREST + 1
    while True:
        hits = memory.search(procedure.text(), number, alpha=1)
        found = [hit.procedure for hit in hits if hit.procedure.id != procedure.id]
        others = [other for other in found if not Provenance.of(other).stale][:NEAREST]
        if len(others) == NEAREST or len(hits) < number or number == MOST_RESULTS:
            return [other for other in others if _is_alike(procedure, other)]
        number = min(2 * number, MOST_RESULTS)


def _is_alike(procedure: Procedure, other: Procedure) -> bool:
    """Return whether enough of the shorter procedure's words also occur in the other one."""
    words, others = stems(procedure.text()), stems(other.text())
    return len(words & others) >= _ALIKE * min(len(words), len(others))


def changed_in(
    memory: ProcedureMemory,
    id_: str,
    change: Callable[[Procedure], Procedure],
    made_from: Procedure | None = None,
) -> Procedure | None:
    """Change a procedure in a memory; return its new version, or None if it no longer exists.

    Raises:
        BadInput: The result of `change` cannot be stored.
        Conflict: The stored text no longer matches `made_from`.
        MemoryFailure: It cannot be written.
    """
    try:
        return memory.update(id_, change, made_from=made_from)
    except BadInput:
        if memory.get(id_):
            raise
        return None
