"""Near duplicates in a whole memory."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage

from stepcraft.building.dedupe import Deduped, dedupe
from stepcraft.building.duplicates import Placer
from stepcraft.building.ledger import Ledger
from stepcraft.building.provenance import Provenance
from stepcraft.memory.history import undone
from stepcraft.memory.local import LocalMemory
from stepcraft.memory.procedure import Found
from tests.scripted import ScriptedModel
from tests.teas import BREAD, BREWED, DIFFERENT, GREEN, ICED, MERGED, SAME, taster


class Counting(LocalMemory):
    """A memory that counts its searches."""

    searches = 0

    def search(self, query: str, k: int = 3, *, alpha: float | None = None) -> list[Found]:
        self.searches += 1
        return super().search(query, k, alpha=alpha)


@pytest.fixture
def memory() -> Counting:
    memory = Counting(":memory:", embeddings="none")
    memory.add([GREEN, BREWED, ICED, BREAD])
    return memory


async def test_what_is_the_same_becomes_one(memory: Counting):
    seen: list[int] = []

    def progress(deduped: Deduped) -> None:
        seen.append(deduped.procedures)

    result = await dedupe(Placer(memory, model := taster()), on_progress=progress)
    assert (result.procedures, result.count("merged"), result.undecided) == (4, 1, 0)
    assert [each.output for each in memory] == [GREEN.output, ICED.output, BREAD.output]
    kept = memory.get(GREEN.id)
    assert kept
    assert Provenance.of(kept).also == (BREWED.id,)
    assert [each["output"] for each in kept.versions] == [GREEN.output, BREWED.output]
    assert "".join(BREWED.steps) in ("".join(each["steps"]) for each in kept.versions)
    assert len(model.calls) == result.usage["calls"] == result.compared
    assert seen == [1, 2, 3, 4]
    assert memory.searches == 4


async def test_a_dry_run_says_what_would_be_done_and_what_it_asked_is_not_asked_again(
    memory: Counting, tmp_path: Path
):
    before, model = list(memory), taster()
    with Ledger(tmp_path / "ledger", "teas") as ledger:
        dry = await dedupe(Placer(memory, model, ledger=ledger, dry_run=True))
        assert (dry.count("merged"), list(memory)) == (1, before)
        done = await dedupe(Placer(memory, model, ledger=ledger))
    assert [(step.how, step.stored, step.procedure) for step in done.changes] == [
        (step.how, step.stored, step.procedure) for step in dry.changes
    ]
    assert len({call.prompt for call in model.calls}) == len(model.calls)
    assert memory.count() == 3


async def test_undo_after_a_merge_that_changed_no_text_keeps_the_text(memory: Counting):
    steps = "\n".join(f"{number}. {step}" for number, step in enumerate(GREEN.steps, 1))
    same = f"{SAME}\nOUTPUT: {GREEN.output}\nINPUT: {GREEN.input}\nSTEPS:\n{steps}"
    assert (await dedupe(Placer(memory, taster(same)))).count("merged") == 1
    kept = memory.get(GREEN.id)
    assert kept
    assert BREWED.output in [each["output"] for each in kept.versions]
    undo = memory.update(GREEN.id, undone)
    assert (undo.output, undo.steps) == (GREEN.output, GREEN.steps)


async def test_what_contradicts_itself_is_linked_once(memory: Counting):
    result = await dedupe(Placer(memory, model := taster(SAME)))
    assert (result.count("linked"), memory.count()) == (1, 4)
    linked = [memory.get(each.id) for each in (GREEN, BREWED)]
    assert [Provenance.of(each).also for each in linked if each] == [(BREWED.id,), (GREEN.id,)]
    asked = len(model.calls)
    result = await dedupe(Placer(memory, model))
    assert (result.changes, len(model.calls) - asked) == ([], asked - 1)


@pytest.mark.parametrize(
    ("other", "key"),
    [
        ({"tags": {"pot": "clay"}}, ""),
        ({"tags": {"pot": "steel", "size": "small"}}, ""),
        ({"tags": {}}, ""),
        ({"key": "wiki/2"}, "wiki/3"),
        ({"key": "wiki/2"}, ""),
        ({"expires": "2999-01-01"}, ""),
        ({"expires": ""}, ""),
    ],
    ids=["other tags", "more tags", "no tags", "keys", "no key", "another expiry", "no expiry"],
)
async def test_what_searches_and_updates_tell_apart_is_linked_and_never_merged(
    other: dict, key: str
):
    memory = LocalMemory(":memory:", embeddings="none")
    first = replace(GREEN, id="", tags={"pot": "steel"}, key="wiki/1", expires="2999-12-31")
    second = replace(BREWED, id="", **({"tags": first.tags, "expires": first.expires} | other))
    twin = replace(first, id="", **(other | {"key": key}))
    memory.add([first, second, twin])
    result = await dedupe(Placer(memory, taster()))
    assert (result.count("merged"), memory.count()) == (0, 3)
    [again] = memory.search("green tea", 1, where=twin.tags)
    assert Provenance.of(again.procedure).also


async def test_what_is_stale_is_left_alone(memory: Counting):
    stale = {"stale": "ice.md no longer teaches it"}
    memory.add([replace(each, metadata=stale) for each in (BREWED, ICED)])
    assert (await dedupe(Placer(memory, model := taster()))).changes == []
    assert (model.calls, memory.count()) == ([], 4)


async def test_one_that_was_removed_meanwhile_is_passed_over(memory: Counting):
    def say(_node: str, _prompt: str) -> str:
        memory.delete([GREEN.id])
        return SAME

    memory.delete([ICED.id])
    result = await dedupe(Placer(memory, ScriptedModel(say)), concurrency=1)
    assert (result.changes, memory.count()) == ([], 2)


@pytest.mark.parametrize("reply", [MERGED, SAME])
async def test_what_a_person_changes_meanwhile_is_compared_again(memory: Counting, reply: str):
    edited = {"steps": (*BREWED.steps, "Warn the guests."), "tags": {"pot": "clay"}}

    def say(_node: str, prompt: str) -> str:
        memory.update(BREWED.id, lambda kept: replace(kept, **edited))
        return SAME if "Warn the guests." in prompt else reply

    memory.delete([ICED.id])
    result = await dedupe(Placer(memory, ScriptedModel(say)), concurrency=1)
    assert (result.count("linked"), result.compared, result.usage["calls"]) == (1, 2, 2)
    kept = memory.get(BREWED.id)
    assert kept
    assert (kept.steps, kept.tags) == (edited["steps"], edited["tags"])
    assert Provenance.of(kept).also == (GREEN.id,)


async def test_calls_for_one_that_was_removed_meanwhile_are_counted(memory: Counting):
    def say(_node: str, _prompt: str) -> str:
        memory.delete([BREWED.id])
        return SAME

    memory.delete([ICED.id])
    result = await dedupe(Placer(memory, ScriptedModel(say)), concurrency=1)
    assert (result.changes, result.compared, result.usage["calls"]) == ([], 1, 1)


async def test_what_a_person_removes_meanwhile_stays_out(memory: Counting):
    def say(_node: str, _prompt: str) -> str:
        memory.delete([BREWED.id])
        return SAME

    memory.delete([ICED.id])
    result = await dedupe(Placer(memory, ScriptedModel(say)), concurrency=1)
    assert (result.changes, [*memory]) == ([], [GREEN, BREAD])


async def test_a_pair_without_a_verdict_is_asked_about_again(memory: Counting, tmp_path: Path):
    memory.delete([ICED.id])
    model = ScriptedModel(["Tea.", "Tea!", SAME])
    with Ledger(tmp_path / "ledger", "teas") as ledger:
        result = await dedupe(Placer(memory, model, ledger=ledger))
        assert (result.undecided, result.changes) == (1, [])
        assert "VERDICT" in result.warnings[0]
        result = await dedupe(Placer(memory, model, ledger=ledger))
        assert (result.undecided, result.count("linked")) == (0, 1)


@pytest.mark.parametrize("reply", [MERGED[:-9], SAME])
async def test_a_merge_that_was_cut_off_changes_nothing(memory: Counting, reply: str):
    memory.delete([ICED.id])
    before = [*memory]
    cut = AIMessage(reply, response_metadata={"finish_reason": "length"})
    result = await dedupe(Placer(memory, ScriptedModel([cut] * 2)))
    assert (result.undecided, result.changes, [*memory]) == (1, [], before)
    assert "cut off by the token limit" in result.warnings[-1]


async def test_that_two_tasks_differ_holds_in_a_reply_that_was_cut_off(memory: Counting):
    memory.delete([ICED.id])
    cut = AIMessage(f"{DIFFERENT}\nThe fir", response_metadata={"finish_reason": "length"})
    result = await dedupe(Placer(memory, model := ScriptedModel([cut])))
    assert (result.undecided, result.changes, len(model.calls)) == (0, [], 1)


async def test_a_run_that_is_stopped_goes_on(memory: Counting, tmp_path: Path):
    model, stopping = taster(), asyncio.Event()
    with Ledger(tmp_path / "ledger", "teas") as ledger:
        placer = Placer(memory, model, ledger=ledger)
        run = asyncio.create_task(
            dedupe(placer, concurrency=1, on_progress=lambda _: stopping.set())
        )
        await stopping.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        result = await dedupe(placer)
    assert memory.count() == 3
    assert len({call.prompt for call in model.calls}) == len(model.calls)
    assert result.undecided == 0
