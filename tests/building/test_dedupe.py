"""Near duplicates in a whole memory."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from stepcraft import open_memory
from stepcraft.building.dedupe import Change, dedupe
from stepcraft.building.duplicates import Comparer
from stepcraft.building.verdicts import VerdictFile
from stepcraft.errors import ReadOnlyMemory
from stepcraft.evals.progress import Progress
from stepcraft.memory.history import versions
from stepcraft.memory.local import LocalMemory
from tests.scripted import ScriptedModel
from tests.teas import BREAD, BREWED, GREEN, ICED, LEAF, SAME, taster


@pytest.fixture
def memory() -> LocalMemory:
    memory = LocalMemory(":memory:", embeddings="none")
    memory.add([GREEN, BREWED, ICED, BREAD])
    return memory


def shown(change: Change) -> tuple[object, ...]:
    return change.kind, change.kept, change.other, change.result.output, change.result.steps


async def test_what_is_the_same_becomes_one(memory: LocalMemory):
    told: list[Progress] = []
    found = await dedupe(Comparer(memory, model := taster()), on_progress=told.append)
    assert (found.procedures, found.compared, found.count("merged"), found.undecided) == (
        4,
        3,
        1,
        0,
    )
    assert [one.output for one in memory] == [GREEN.output, ICED.output, BREAD.output]
    kept = memory.get(GREEN.id)
    assert kept
    assert kept.metadata["also"] == [BREWED.id, "kitchen.md"]
    assert [one["steps"] for one in versions(kept)] == [list(BREWED.steps), list(GREEN.steps)]
    assert len(model.calls) == found.usage["calls"] == 3
    assert (told[0].done, told[0].total, told[-1].done, told[-1].calls) == (0, 3, 3, 3)


async def test_a_dry_run_says_what_would_be_done_and_what_it_asked_is_not_asked_again(
    memory: LocalMemory, tmp_path: Path
):
    before = list(memory)
    verdicts = VerdictFile(tmp_path / "verdicts.db")
    dry = await dedupe(Comparer(memory, "extractive", cache=verdicts), dry_run=True)
    assert (dry.count("merged"), list(memory)) == (0, before)
    dry = await dedupe(Comparer(memory, model := taster(), cache=verdicts), dry_run=True)
    assert (dry.count("merged"), list(memory), len(model.calls)) == (1, before, 3)
    verdicts.close()
    again = VerdictFile(tmp_path / "verdicts.db")
    done = await dedupe(Comparer(memory, model, cache=again))
    assert [shown(one) for one in done.changes] == [shown(one) for one in dry.changes]
    assert (len(model.calls), memory.count()) == (3, 3)
    again.close()


async def test_three_of_a_kind_become_one(memory: LocalMemory):
    memory.add([LEAF])
    found = await dedupe(Comparer(memory, model := taster()))
    assert (found.count("merged"), memory.count()) == (2, 3)
    kept = memory.get(GREEN.id)
    assert kept
    assert {BREWED.id, LEAF.id} <= set(kept.metadata["also"])
    assert "Rinse the pot." in model.calls[-1].prompt.partition("</reply_format>")[2]


async def test_keeping_links_them_once(memory: LocalMemory):
    found = await dedupe(Comparer(memory, model := taster(SAME)), "keep")
    assert (found.count("linked"), memory.count()) == (1, 4)
    linked = [memory.get(one.id) for one in (GREEN, BREWED)]
    assert [one.metadata["also"] for one in linked if one] == [[BREWED.id], [GREEN.id]]
    found = await dedupe(Comparer(memory, model), "keep")
    assert (found.compared, found.changes) == (2, [])


async def test_what_is_approved_is_kept_and_linked(memory: LocalMemory):
    memory.add([replace(BREWED, metadata={"approved": {"by": "cook"}})])
    found = await dedupe(Comparer(memory, taster()))
    assert [(one.kind, one.kept.id) for one in found.changes] == [("linked", BREWED.id)]
    assert memory.count() == 4


async def test_what_is_stale_goes_into_what_is_not(memory: LocalMemory):
    memory.add([replace(GREEN, metadata={"stale": "tea.md is gone"})])
    await dedupe(Comparer(memory, taster()))
    kept = memory.get(BREWED.id)
    assert kept
    assert (kept.metadata["also"], "stale" in kept.metadata) == ([GREEN.id, "tea.md"], False)
    assert memory.get(GREEN.id) is None


async def test_a_pair_of_which_one_was_removed_meanwhile_is_passed_over(memory: LocalMemory):
    def say(_node: str, _prompt: str) -> str:
        memory.delete([BREWED.id])
        return SAME

    memory.delete([ICED.id])
    found = await dedupe(Comparer(memory, ScriptedModel(say)))
    assert (found.compared, found.gone, found.changes) == (1, 1, [])


async def test_a_pair_without_a_verdict_is_asked_about_again(memory: LocalMemory, tmp_path: Path):
    memory.delete([ICED.id])
    verdicts = VerdictFile(tmp_path / "verdicts.db")
    model = ScriptedModel(["Tea.", "Tea!", SAME])
    found = await dedupe(Comparer(memory, model, cache=verdicts))
    assert (found.undecided, found.changes) == (1, [])
    assert "VERDICT" in found.warnings[0]
    found = await dedupe(Comparer(memory, model, cache=verdicts))
    assert (found.undecided, found.count("linked")) == (0, 1)
    verdicts.close()


async def test_a_run_that_is_stopped_goes_on(memory: LocalMemory, tmp_path: Path):
    verdicts = VerdictFile(tmp_path / "verdicts.db")
    model = taster()
    stopping = asyncio.Event()
    run = asyncio.create_task(
        dedupe(
            Comparer(memory, model, cache=verdicts),
            concurrency=1,
            on_progress=lambda progress: stopping.set() if progress.done == 2 else None,
        )
    )
    await stopping.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert memory.count() == 4
    assert (await dedupe(Comparer(memory, model, cache=verdicts))).count("merged") == 1
    assert len(model.calls) <= 4
    verdicts.close()


async def test_a_memory_that_is_read_only_is_refused_before_any_call():
    model = taster()
    with pytest.raises(ReadOnlyMemory, match="memory copy"):
        await dedupe(Comparer(open_memory("", embeddings="none"), model))
    assert model.calls == []
