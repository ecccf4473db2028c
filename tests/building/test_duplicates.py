"""Near duplicates when procedures are added: found, merged or linked, also when many are added at once."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.store.memory import InMemoryStore
from pydantic import PrivateAttr

from stepcraft import Procedure, open_memory
from stepcraft.building.dedupe import dedupe
from stepcraft.building.duplicates import Placer, nearest_alike
from stepcraft.building.provenance import Provenance, Teacher, linked, merged
from stepcraft.memory.local import LocalMemory
from stepcraft.memory.procedure import Content, Found, Outcomes
from stepcraft.memory.protocol import ProcedureMemory
from tests.kitchen import dish
from tests.scripted import ScriptedModel
from tests.teas import BREAD, BREWED, GREEN, ICED, LEAF, MERGED, SAME, taster


@pytest.fixture
def memory() -> LocalMemory:
    return LocalMemory(":memory:", embeddings="none")


def stored(memory: ProcedureMemory, procedure: Procedure) -> tuple[Procedure, Provenance]:
    """The procedure as the memory has it."""
    current = memory.get(procedure.id)
    assert current
    return current, Provenance.of(current)


def built(procedure: Procedure, document: str, **facts: Any) -> Procedure:
    """The procedure as if a document taught it."""
    return Provenance(teachers=(Teacher(document, document),), **facts).on(procedure)


def outputs(memory: ProcedureMemory) -> list[str]:
    return sorted(procedure.output for procedure in memory)


async def test_what_is_another_task_is_added_and_without_a_call_where_it_is_unlike(
    memory: LocalMemory,
):
    placer = Placer(memory, model := taster())
    for procedure, calls in ((GREEN, 0), (BREAD, 0), (ICED, 1)):
        step = await placer.place(procedure)
        assert (step.how, step.stored, len(model.calls)) == ("added", None, calls)
    assert step.verdicts[0].usage["calls"] == 1
    assert outputs(memory) == [BREAD.output, GREEN.output, ICED.output]


async def test_merging_keeps_the_id_and_names_what_went_in(memory: LocalMemory):
    placer = Placer(memory, model := taster())
    await placer.place(GREEN)
    step = await placer.place(BREWED)
    assert (step.how, step.stored) == ("merged", GREEN)
    ((kept, provenance),) = [stored(memory, each) for each in memory]
    assert (kept.id, kept.source, kept.steps[-1]) == (GREEN.id, "tea.md", "Rinse the pot.")
    assert provenance.also == (BREWED.id,)
    assert [teacher.document for teacher in provenance.teachers] == ["tea.md", "kitchen.md"]
    assert (await placer.place(BREWED)).how == "present"
    assert len(model.calls) == 1


async def test_what_cannot_be_one_procedure_is_linked(memory: LocalMemory):
    placer = Placer(memory, taster(SAME))
    await placer.place(GREEN)
    step = await placer.place(BREWED)
    assert (step.how, memory.count(), step.verdict.warnings) == ("linked", 2, [])
    (green, first), (brewed, second) = stored(memory, GREEN), stored(memory, BREWED)
    assert (first.also, second.also) == ((BREWED.id,), (GREEN.id,))
    assert (green.steps, brewed.steps) == (GREEN.steps, BREWED.steps)


async def test_an_invented_name_is_handed_back_and_then_linked(memory: LocalMemory):
    placer = Placer(memory, model := taster(MERGED.replace("80 degrees", "95 degrees")))
    await placer.place(GREEN)
    step = await placer.place(BREWED)
    assert (step.how, memory.count()) == ("linked", 2)
    assert "has 95, which stands in neither" in model.calls[1].prompt
    assert "has 95, which stands in neither" in step.verdict.warnings[0]


async def test_what_a_person_approved_is_not_rewritten(memory: LocalMemory):
    approved = replace(GREEN, metadata={"approved": {"by": "cook"}})
    placer = Placer(memory, taster(MERGED))
    await placer.place(approved)
    assert (await placer.place(BREWED)).how == "linked"
    kept, _ = stored(memory, GREEN)
    assert (kept.steps, kept.metadata["approved"]) == (GREEN.steps, {"by": "cook"})


async def test_what_a_document_teaches_is_merged_into_a_procedure_with_tags(memory: LocalMemory):
    memory.add([replace(GREEN, tags={"pot": "steel"})])
    placer = Placer(memory, taster())
    assert [(await placer.place(built(BREWED, "a.md"))).how for _ in range(2)] == [
        "merged",
        "present",
    ]
    [kept] = memory
    assert (kept.tags, kept.steps[-1]) == ({"pot": "steel"}, "Rinse the pot.")
    tagged = replace(LEAF, tags={"pot": "clay"})
    assert (await placer.place(tagged)).how == "linked"


@pytest.mark.parametrize("expires", ["2026-01-31", "2999-12-31", ""])
async def test_what_a_document_teaches_does_not_change_an_expiry(memory: LocalMemory, expires: str):
    memory.add([replace(GREEN, expires=expires)])
    assert (await Placer(memory, taster()).place(built(BREWED, "a.md"))).how == "merged"
    assert [each.expires for each in memory] == [expires]


async def test_a_procedure_with_tags_is_not_merged_into_one_without(memory: LocalMemory):
    memory.add([GREEN])
    step = await Placer(memory, taster()).place(replace(BREWED, tags={"pot": "clay"}))
    assert (step.how, memory.count()) == ("linked", 2)


async def test_what_changed_while_it_was_compared_is_compared_again(memory: LocalMemory):
    placer = Placer(memory, model := taster(latency=0.02))
    await placer.place(GREEN)
    steps = await asyncio.gather(placer.place(BREWED), placer.place(LEAF))
    assert [step.how for step in steps] == ["merged", "merged"]
    assert (memory.count(), len(model.calls)) == (1, 3)
    assert {BREWED.id, LEAF.id} <= {*stored(memory, GREEN)[1].also}
    assert "Rinse the pot." in model.calls[2].prompt.partition("</reply_format>")[2]


class Together(ScriptedModel):
    """Answers once eight calls have begun."""

    _waiting: list[None] = PrivateAttr(default_factory=list)
    _together: Any = PrivateAttr(default_factory=asyncio.Event)

    async def ainvoke(self, *arguments: Any, **options: Any) -> AIMessage:
        self._waiting.append(None)
        if len(self._waiting) == 8:
            self._together.set()
        async with asyncio.timeout(60):
            await self._together.wait()
        return await super().ainvoke(*arguments, **options)


async def test_models_are_asked_side_by_side(memory: LocalMemory):
    placer = Placer(memory, Together(lambda _node, _prompt: SAME))
    kinds = [replace(GREEN, id="", output=f"{GREEN.output} no {n}") for n in range(8)]
    others = [replace(BREWED, id="", output=f"{BREWED.output} no {n}") for n in range(8)]
    memory.add(kinds)
    steps = await asyncio.gather(*map(placer.place, others))
    assert {step.how for step in steps} == {"linked"}, "none waited in vain for the others"


async def test_what_is_there_stays_and_its_documents_are_noted(memory: LocalMemory):
    placer = Placer(memory, taster())
    memory.add([replace(GREEN, metadata={"by": "cook"})])
    for _ in range(2):
        assert (await placer.place(built(GREEN, "b.md"))).how == "present"
        kept, provenance = stored(memory, GREEN)
        assert (kept.source, kept.metadata["by"]) == ("tea.md", "cook")
        assert [teacher.document for teacher in provenance.teachers] == ["tea.md", "b.md"]


async def test_what_is_stale_is_not_compared_but_renewed_by_what_teaches_it_now(
    memory: LocalMemory,
):
    placer = Placer(memory, model := taster())
    memory.add([built(GREEN, "tea.md", stale="tea.md no longer teaches it")])
    assert ((await placer.place(BREWED)).how, model.calls) == ("added", [])
    assert (await placer.place(built(GREEN, "b.md"))).how == "present"
    kept, provenance = stored(memory, GREEN)
    assert (kept.source, provenance.stale, len(provenance.teachers)) == ("b.md", "", 1)


@pytest.mark.parametrize("versions", [1, 6, 30])
async def test_stale_versions_do_not_hide_a_procedure_for_the_same_task(
    memory: LocalMemory, versions: int
):
    stale = [replace(LEAF, id="", output=f"{LEAF.output}, {n}") for n in range(versions)]
    memory.add([built(each, "leaf.md", stale="it was edited") for each in stale])
    memory.add([GREEN])
    assert (await Placer(memory, taster()).place(LEAF)).how == "merged"
    assert memory.count() == versions + 1
    memory.delete([GREEN.id])
    assert (await Placer(memory, taster()).place(BREWED)).how == "added"


def test_a_merged_procedure_has_what_both_have():
    kept, other = (
        replace(procedure, metadata={**procedure.metadata, **more}, outcomes=outcomes)
        for procedure, more, outcomes in (
            (built(GREEN, "tea.md", flagged=("95",)), {"a": 1}, Outcomes(2, 1, "2026-01-02")),
            (built(BREWED, "kitchen.md"), {"a": 2, "b": 3}, Outcomes(3, 1, "2026-01-01")),
        )
    )
    result = merged(kept, other, Content(output="tea", input="leaves", steps=["Heat it."]))
    provenance = Provenance.of(result)
    assert (result.id, result.output, result.source) == (GREEN.id, "tea", "tea.md")
    assert (result.metadata["a"], result.metadata["b"]) == (1, 3)
    assert result.outcomes == Outcomes(5, 2, "2026-01-02")
    assert provenance.flagged == ("95",)
    assert [teacher.document for teacher in provenance.teachers] == ["tea.md", "kitchen.md"]


async def in_any(memory: ProcedureMemory) -> None:
    placer = Placer(memory, taster(latency=0.01))
    steps = await asyncio.gather(*map(placer.place, (GREEN, BREWED, BREAD, ICED)))
    assert sorted(step.how for step in steps) == ["added", "added", "added", "merged"]
    left = [BREAD.output, GREEN.output, ICED.output]
    assert await asyncio.to_thread(outputs, memory) == left
    await asyncio.to_thread(memory.add, [LEAF])
    assert (await dedupe(Placer(memory, taster()))).count("merged") == 1
    assert len(await asyncio.to_thread(outputs, memory)) == 3


async def test_in_a_store():
    with open_memory("store:teas", store=InMemoryStore()) as memory:
        await in_any(memory)


async def test_in_weaviate(new_collection: Callable[..., str]):
    with await asyncio.to_thread(open_memory, new_collection(), embeddings="wordllama") as memory:
        await in_any(memory)


async def test_procedures_with_the_same_content_under_other_ids_need_no_call(memory: LocalMemory):
    placer = Placer(memory, model := taster())
    await placer.place(GREEN)
    copy = replace(GREEN, id="00000000-0000-4000-8000-000000000001", source="copy.md")
    assert ((await placer.place(copy)).how, memory.count(), model.calls) == ("merged", 1, [])


class Overtaken(LocalMemory):
    """A memory in which another process rewrites a procedure before the first update."""

    def update(
        self,
        id: str,  # noqa: A002
        change: Callable[[Procedure], Procedure],
        **options: Any,
    ) -> Procedure:
        current = self.get(id)
        if current and current.steps == GREEN.steps:
            self.add([replace(current, steps=(*GREEN.steps, "Drink it."))])
        return super().update(id, change, **options)


async def test_a_merge_that_another_process_overtakes_is_made_again_from_what_is_there_now():
    """The merged steps were left out, and the other procedure was nowhere."""
    with Overtaken(":memory:", embeddings="none") as memory:
        placer = Placer(memory, model := taster())
        memory.add([GREEN])
        assert (await placer.place(BREWED)).how == "merged"
        kept, provenance = stored(memory, GREEN)
        assert (kept.steps[-1], provenance.also) == ("Rinse the pot.", (BREWED.id,))
        assert len(model.calls) == 2
        assert "Drink it." in model.calls[1].prompt


@pytest.mark.parametrize("own", ["Grandmother, Friuli", {"model": "Aga 4"}, ["a", 1]])
def test_a_provenance_of_others_is_kept_beside_ours(own: object):
    stored = dish(1, source="a.md", metadata={"provenance": own, "n": 1})
    other = linked(linked(stored, dish(2)), dish(3))
    assert (other.metadata["provenance (2)"], other.metadata["n"]) == (own, 1)
    assert Provenance.of(other).also == (dish(2).id, dish(3).id)
    assert [each.document for each in Provenance.of(other).teachers] == ["a.md"]
    assert "provenance (2)" not in linked(dish(1), dish(2)).metadata


class Crowded(LocalMemory):
    """A memory in which many procedures of an earlier version are nearer than all others."""

    def search(self, query: str, k: int = 3, **options: Any) -> list[Found]:
        assert super().search(query, k, **options) == []  # which refuses what memories refuse
        return [Found(replace(GREEN, metadata={"stale": "it was deleted"}), 1.0)] * k


def test_a_procedure_is_placed_however_many_that_are_stale_are_nearer() -> None:
    with Crowded(":memory:", embeddings="none") as memory:
        assert nearest_alike(memory, BREWED) == []
