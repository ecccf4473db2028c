"""Near duplicates when procedures are added: found, merged, linked or skipped, also when many are added at once."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from langchain_core.language_models import BaseChatModel
from langgraph.store.memory import InMemoryStore

from stepcraft import Procedure, open_memory
from stepcraft.building.compare import Content
from stepcraft.building.dedupe import dedupe
from stepcraft.building.duplicates import Comparer, Duplicates, OnDuplicate, merge
from stepcraft.errors import BadInput, ModelFailure, ReadOnlyMemory
from stepcraft.memory.history import versions
from stepcraft.memory.local import LocalMemory
from stepcraft.memory.protocol import ProcedureMemory
from tests.scripted import ScriptedModel
from tests.teas import BREAD, BREWED, GREEN, ICED, LEAF, MERGED, SAME, taster


@pytest.fixture
def memory() -> LocalMemory:
    return LocalMemory(":memory:", embeddings="none")


def adding(
    memory: ProcedureMemory, model: BaseChatModel, what: OnDuplicate = "merge"
) -> Duplicates:
    return Duplicates(Comparer(memory, model), what)


def outputs(memory: ProcedureMemory) -> list[str]:
    return sorted(procedure.output for procedure in memory)


async def test_what_is_unlike_is_added_without_a_call(memory: LocalMemory):
    model = taster()
    duplicates = adding(memory, model)
    assert [(await duplicates.add(one)).kind for one in (GREEN, BREAD)] == ["added", "added"]
    assert (model.calls, memory.count()) == ([], 2)


async def test_what_is_alike_but_another_task_is_added(memory: LocalMemory):
    duplicates = adding(memory, model := taster())
    await duplicates.add(GREEN)
    placed = await duplicates.add(ICED)
    assert (placed.kind, placed.procedure, placed.of) == ("added", ICED, "")
    assert (len(model.calls), placed.usage["calls"], outputs(memory)) == (
        1,
        1,
        [GREEN.output, ICED.output],
    )


async def test_merging_keeps_the_id_and_names_what_went_in(memory: LocalMemory):
    duplicates = adding(memory, model := taster())
    await duplicates.add(GREEN)
    placed = await duplicates.add(BREWED)
    assert (placed.kind, placed.of) == ("merged", GREEN.id)
    (kept,) = memory
    assert kept == placed.procedure
    assert (kept.id, kept.source, kept.metadata["also"]) == (
        GREEN.id,
        "tea.md",
        [BREWED.id, "kitchen.md"],
    )
    assert [one["steps"] for one in versions(kept)] == [list(GREEN.steps)]
    assert kept.steps[-1] == "Rinse the pot."
    assert placed.verdict.left_out == ["2"]
    assert (await duplicates.add(BREWED)).kind == "present"
    assert len(model.calls) == 1


async def test_keeping_links_both(memory: LocalMemory):
    duplicates = adding(memory, model := taster(SAME), "keep")
    await duplicates.add(GREEN)
    placed = await duplicates.add(BREWED)
    assert (placed.kind, placed.of, placed.procedure.metadata) == (
        "linked",
        GREEN.id,
        {"also": [GREEN.id]},
    )
    linked = memory.get(GREEN.id)
    assert linked
    assert (linked.steps, linked.metadata) == (GREEN.steps, {"also": [BREWED.id]})
    assert "OUTPUT:," not in model.calls[0].prompt


async def test_skipping_leaves_the_memory_as_it_is(memory: LocalMemory):
    duplicates = adding(memory, taster(SAME), "skip")
    await duplicates.add(GREEN)
    placed = await duplicates.add(BREWED)
    assert (placed.kind, placed.procedure, placed.of, list(memory)) == (
        "skipped",
        GREEN,
        GREEN.id,
        [GREEN],
    )


async def test_what_cannot_be_one_procedure_is_linked(memory: LocalMemory):
    duplicates = adding(memory, taster(SAME))
    await duplicates.add(GREEN)
    placed = await duplicates.add(BREWED)
    assert (placed.kind, memory.count(), placed.warnings) == ("linked", 2, ())


async def test_an_invented_name_is_handed_back_and_then_linked(memory: LocalMemory):
    invented = MERGED.replace("80 degrees", "95 degrees")
    duplicates = adding(memory, model := taster(invented))
    await duplicates.add(GREEN)
    placed = await duplicates.add(BREWED)
    assert (placed.kind, memory.count()) == ("linked", 2)
    assert "has 95, which stands in neither" in model.calls[1].prompt
    assert "has 95, which stands in neither" in placed.warnings[0]


async def test_what_a_person_approved_is_not_rewritten(memory: LocalMemory):
    approved = replace(GREEN, metadata={"approved": {"by": "cook"}})
    duplicates = adding(memory, model := taster(MERGED))
    await duplicates.add(approved)
    assert (await duplicates.add(BREWED)).kind == "linked"
    kept = memory.get(GREEN.id)
    assert kept
    assert (kept.steps, kept.metadata["approved"]) == (GREEN.steps, {"by": "cook"})
    assert "OUTPUT:," not in model.calls[0].prompt


async def test_without_a_verdict_it_is_added_and_said(memory: LocalMemory):
    duplicates = adding(memory, ScriptedModel(["Both are fine.", "They are tea."]))
    await duplicates.add(GREEN)
    placed = await duplicates.add(BREWED)
    assert (placed.kind, memory.count()) == ("added", 2)
    assert "VERDICT" in placed.warnings[0]


async def test_a_model_that_refuses_every_call_ends_it(memory: LocalMemory):
    duplicates = adding(memory, ScriptedModel([PermissionDenied()]))
    await duplicates.add(GREEN)
    with pytest.raises(ModelFailure, match="403"):
        await duplicates.add(BREWED)
    assert list(memory) == [GREEN]


async def test_a_later_refusal_costs_the_verdict(memory: LocalMemory):
    duplicates = adding(memory, ScriptedModel([SAME, PermissionDenied(), SAME]), "keep")
    await duplicates.add(GREEN)
    placed = [await duplicates.add(one) for one in (BREWED, LEAF)]
    assert [one.kind for one in placed] == ["linked", "linked"]
    assert "403" in placed[1].warnings[0]


class PermissionDenied(Exception):
    """As a provider's client raises it."""

    status_code = 403

    def __str__(self) -> str:
        return "403: no access to this model"


async def test_two_at_the_same_time_become_one(memory: LocalMemory):
    duplicates = adding(memory, model := taster(latency=0.01))
    placed = await asyncio.gather(
        duplicates.add(GREEN), duplicates.add(BREWED), duplicates.add(BREAD)
    )
    assert sorted(one.kind for one in placed) == ["added", "added", "merged"]
    assert (len(model.calls), memory.count()) == (1, 2)


async def test_what_changed_while_it_was_compared_is_compared_again(memory: LocalMemory):
    duplicates = adding(memory, model := taster(latency=0.02))
    await duplicates.add(GREEN)
    placed = await asyncio.gather(duplicates.add(BREWED), duplicates.add(LEAF))
    assert [one.kind for one in placed] == ["merged", "merged"]
    (kept,) = memory
    assert {BREWED.id, LEAF.id} <= set(kept.metadata["also"])
    assert len(model.calls) == 3
    assert "Rinse the pot." in model.calls[2].prompt.partition("</reply_format>")[2]


async def test_models_are_asked_side_by_side(memory: LocalMemory):
    duplicates = adding(memory, model := taster(SAME, latency=0.05), "keep")
    kinds = [replace(GREEN, id="", output=f"{GREEN.output} no {n}") for n in range(8)]
    others = [replace(BREWED, id="", output=f"{BREWED.output} no {n}") for n in range(8)]
    memory.add(kinds)
    await asyncio.gather(*map(duplicates.add, others))
    first = min(call.ended for call in model.calls if call.ended)
    assert sum(call.started < first for call in model.calls) == 8


async def test_what_is_there_stays_and_its_sources_are_noted(memory: LocalMemory):
    duplicates = adding(memory, taster())
    memory.add([replace(GREEN, metadata={"votes": [{"vote": 1}]})])
    placed = await duplicates.add(replace(GREEN, source="b.md"))
    assert (placed.kind, placed.procedure.source) == ("present", "tea.md")
    assert placed.procedure.metadata == {"votes": [{"vote": 1}], "also": ["b.md"]}
    assert (await duplicates.add(replace(GREEN, source="b.md"))).procedure == placed.procedure


async def test_what_is_stale_is_renewed_by_the_document_that_teaches_it_now(memory: LocalMemory):
    duplicates = adding(memory, taster())
    memory.add([replace(GREEN, metadata={"stale": "tea.md is gone", "built": {"from": "tea.md"}})])
    placed = await duplicates.add(
        replace(GREEN, source="b.md", metadata={"built": {"from": "b.md"}})
    )
    assert (placed.kind, placed.procedure, memory.count()) == ("present", memory.get(GREEN.id), 1)
    assert placed.procedure.source == "b.md"
    assert {**placed.procedure.metadata, "history": []} == {
        "built": {"from": "b.md"},
        "also": ["tea.md"],
        "history": [],
    }


async def test_a_stale_one_is_not_compared(memory: LocalMemory):
    duplicates = adding(memory, model := taster())
    memory.add([replace(GREEN, metadata={"stale": "tea.md no longer teaches it"})])
    assert ((await duplicates.add(BREWED)).kind, model.calls) == ("added", [])


async def test_a_change_waits_for_those_that_are_added(memory: LocalMemory):
    duplicates = adding(memory, taster())
    await duplicates.add(GREEN)
    changed = await duplicates.update(GREEN.id, lambda one: replace(one, source="b.md"))
    assert changed
    assert changed == memory.get(GREEN.id)
    assert await duplicates.update(GREEN.id, lambda _one: None) is None
    assert await duplicates.update(BREAD.id, lambda one: one) is None


def test_a_merged_procedure_has_the_metadata_of_both():
    kept = replace(
        GREEN, metadata={"a": 1, "votes": [{"vote": 1}], "also": ["x.md"], "history": ["h"]}
    )
    other = replace(
        BREWED, metadata={"a": 2, "b": 3, "votes": [{"vote": -1}], "history": ["i"], "stale": "s"}
    )
    content = Content(output="tea", input="leaves", steps=["Heat it."])
    made = merge(kept, other, content)
    assert (made.id, made.output, made.source) == (GREEN.id, "tea", "tea.md")
    assert made.metadata == {
        "a": 1,
        "b": 3,
        "votes": [{"vote": 1}, {"vote": -1}],
        "also": ["x.md", BREWED.id, "kitchen.md"],
        "history": ["h"],
    }


def test_what_was_flagged_in_the_two_is_flagged_in_their_merged_steps():
    flags = [{"step": 2, "names": ["warm_up", "95"]}]
    kept = replace(
        GREEN, metadata={"built": {"from": "tea.md", "flagged": flags, "verified": True}}
    )
    other = replace(
        BREWED, metadata={"built": {"from": "k.md", "flagged": [{"step": 1, "names": ["rinse()"]}]}}
    )
    steps = ["Call `warm_up`.", "Pour it.", "Call `rinse()`, then `warm_up`."]
    made = merge(kept, other, Content(output="tea", input="leaves", steps=steps))
    assert made.metadata["built"] == {
        "from": "tea.md",
        "flagged": [
            {"step": 1, "names": ["warm_up"]},
            {"step": 3, "names": ["warm_up", "rinse()"]},
        ],
        "others": [{"from": "k.md", "source": "kitchen.md"}],
    }


def test_merging_with_a_stale_one_takes_the_place_of_its_source():
    stale = replace(GREEN, metadata={"stale": "tea.md is gone", "built": {"from": "tea.md"}})
    fresh = replace(BREWED, metadata={"built": {"from": "kitchen.md"}})
    made = merge(stale, fresh, Content(output="tea", input="leaves", steps=["Heat it."]))
    assert (made.id, made.source) == (GREEN.id, "kitchen.md")
    assert made.metadata == {"built": {"from": "kitchen.md"}, "also": [BREWED.id, "tea.md"]}


async def in_any(memory: ProcedureMemory) -> None:
    duplicates = adding(memory, taster(latency=0.01))
    placed = await asyncio.gather(*map(duplicates.add, (GREEN, BREWED, BREAD, ICED)))
    assert sorted(one.kind for one in placed) == ["added", "added", "added", "merged"]
    left = [BREAD.output, GREEN.output, ICED.output]
    assert await asyncio.to_thread(outputs, memory) == left
    await asyncio.to_thread(memory.add, [LEAF])
    assert (await dedupe(Comparer(memory, taster()))).count("merged") == 1
    assert len(await asyncio.to_thread(outputs, memory)) == 3


async def test_in_a_store():
    with open_memory("store:teas", store=InMemoryStore()) as memory:
        await in_any(memory)


async def test_in_weaviate(new_collection: Callable[..., str]):
    with await asyncio.to_thread(open_memory, new_collection(), embeddings="wordllama") as memory:
        await in_any(memory)


def test_a_memory_that_is_read_only_is_refused():
    with pytest.raises(ReadOnlyMemory, match="memory copy"):
        adding(open_memory("", embeddings="none"), taster())


@pytest.mark.parametrize(("threshold", "what"), [(1.5, "merge"), (0.5, "join")])
def test_settings_that_cannot_be_used(threshold: float, what: OnDuplicate, memory: LocalMemory):
    with pytest.raises(
        BadInput,
        match=r"between 0 and 1, not 1\.5|'join' cannot be used; it is one of merge, keep, skip",
    ):
        Duplicates(Comparer(memory, taster(), threshold=threshold), what)


async def test_procedures_with_the_same_content_under_other_ids_need_no_call(memory: LocalMemory):
    duplicates = adding(memory, model := taster())
    await duplicates.add(GREEN)
    copy = Procedure(
        GREEN.input,
        GREEN.output,
        GREEN.steps,
        id="00000000-0000-4000-8000-000000000001",
        source="copy.md",
    )
    placed = await duplicates.add(copy)
    assert (placed.kind, placed.procedure.steps, model.calls) == ("merged", GREEN.steps, [])
