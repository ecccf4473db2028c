"""Memories and sources by name: opened once, by one thread, and let go."""

import asyncio
import gc
import socket
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest
from langchain_core.retrievers import BaseRetriever
from langgraph.store.memory import InMemoryStore

from stepcraft import open_memory
from stepcraft.contexts.base import Context, SearchSettings
from stepcraft.contexts.baselines import RagContext
from stepcraft.errors import BadInput, MemoryFailure
from stepcraft.graphs.baselines.rag import build_rag
from stepcraft.memory.files import write_jsonl
from stepcraft.policy import TRUSTING
from stepcraft.retrieval.opening import memory_opening, shared_memory, source_opening
from stepcraft.retrieval.target import RetrievalTarget
from tests.kitchen import dish
from tests.retrieval import doors
from tests.scripted import ScriptedModel

DOORS = "tests.retrieval.doors"
ASKED = {"question": "When did rye come?"}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("STEPCRAFT_EMBEDDINGS", "none")


def rag() -> Any:
    return build_rag(model=ScriptedModel(lambda _node, _prompt: "An answer."), allow=TRUSTING)


def test_a_corpus_is_opened_once(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# Bread\n\nRye bread needs a sourdough.\n")
    opening = source_opening(f"corpus:{folder}")
    source = opening.open(refresh=False)
    assert source_opening(f"corpus:{folder}").open(refresh=False) is source
    assert opening.open(refresh=True) is source, "a minute has not passed"
    assert [hit.metadata["title"] for hit in source.invoke("sourdough", k=1)] == ["Bread"]


def test_a_shared_memory_is_opened_once_and_anew_when_its_file_changed(tmp_path: Path):
    path = tmp_path / "p.jsonl"
    write_jsonl([dish(1)], path)
    first = shared_memory(str(path), embeddings="none")
    assert shared_memory(str(path), embeddings="none") is first
    write_jsonl([dish(1), dish(2)], path)
    assert shared_memory(str(path), embeddings="none").count() == 2
    assert first.count() == 1, "a run that has begun goes on with what it has"
    store = InMemoryStore()
    assert shared_memory("store:", store=store) is shared_memory("store:", store=store)
    assert shared_memory("store:", store=InMemoryStore()) is not shared_memory("store:", store=store)


def test_a_shared_database_that_is_missing_is_not_made(tmp_path: Path):
    path = tmp_path / "m.db"
    with pytest.raises(BadInput, match="does not exist"):
        shared_memory(str(path))
    assert not path.exists()
    open_memory(path, embeddings="none").close()
    shared = shared_memory(str(path))
    with open_memory(path) as other:
        other.add([dish(1)])
    assert shared.count() == 1
    assert shared_memory(str(path)) is shared


async def test_a_source_that_opens_slowly_holds_up_no_other_run() -> None:
    door, graph = doors.first, rag()
    waiting = asyncio.create_task(graph.ainvoke(ASKED, context=RagContext(retriever=[f"{DOORS}:first"])))
    await asyncio.to_thread(door.waiting.wait, 10)
    result = await graph.ainvoke(ASKED, context=RagContext(retriever=[f"{DOORS}:quick"]))
    again = await graph.ainvoke(ASKED, context=RagContext(retriever=[f"{DOORS}:quick"]))
    assert (door.passed, waiting.done()) == ([], False), "the other source is still being opened"
    assert [passage["id"] for passage in [*result["evidence"], *again["evidence"]]] == ["quick", "quick"]
    door.open.set()
    assert [passage["id"] for passage in (await waiting)["evidence"]] == ["late"]


async def test_a_memory_that_does_not_answer_holds_up_no_other_run(tmp_path: Path) -> None:
    plain = tmp_path / "plain.jsonl"
    write_jsonl([dish(1)], plain)
    graph = rag()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"weaviate://127.0.0.1:{silent.getsockname()[1]}/Silent"
        waiting = asyncio.create_task(graph.ainvoke(ASKED, context=RagContext(memory=url)))
        connection, _ = await asyncio.to_thread(silent.accept)
        result = await graph.ainvoke(ASKED, context=RagContext(memory=str(plain)))
        in_time = not waiting.done()
        connection.close()
    with pytest.raises(MemoryFailure):
        await waiting
    assert result["answer"]
    assert in_time, "the other memory had not answered yet"


async def test_runs_that_give_up_waiting_leave_one_thread_that_opens_the_source_for_the_next() -> None:
    door, opening = doors.second, source_opening(f"{DOORS}:second")
    before = threading.active_count()

    async def given_up() -> None:
        async with asyncio.timeout(0.2):
            await opening.aopen(refresh=True)

    outcomes = await asyncio.gather(*(given_up() for _ in range(20)), return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {TimeoutError}
    async with asyncio.timeout(10):
        while threading.active_count() > before + 1:  # noqa: ASYNC110 - threads without a call end after a second
            await asyncio.sleep(0.05)
    door.open.set()
    assert await opening.aopen(refresh=True)
    assert door.passed == [True]


def test_what_is_displaced_by_later_ones_is_let_go_and_its_file_closed(tmp_path: Path) -> None:
    def opened(number: int) -> BaseRetriever:
        path = tmp_path / f"{number}.md"
        path.write_text(f"Loaf {number} rises.")
        return source_opening(f"corpus:{path}").open(refresh=False)

    def files() -> int:
        descriptors = (file for file in Path("/proc/self/fd").iterdir() if file.is_symlink())
        return sum(str(tmp_path) in str(file.readlink()) for file in descriptors)

    first: Any = opened(0)
    watched, in_use = weakref.ref(first.index), opened(1)
    del first
    for number in range(2, 40):
        opened(number)
    gc.collect()
    assert watched() is None
    assert in_use.invoke("loaf")[0].page_content == "Loaf 1 rises."
    assert files() <= 3 * 33


def test_a_memory_is_one_for_a_graph_and_as_a_source(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    write_jsonl([dish(1)], path)
    target = RetrievalTarget("sources", retriever=f"memory:{path}")
    [searched] = target.resolve(SearchSettings())
    assert searched.open() is memory_opening(str(path)).open(refresh=False)
    write_jsonl([dish(1), dish(2)], path)
    assert target.warnings(Context()) == []
    assert len(searched.retriever(searched.open()).invoke("dish", k=9)) == 2, "what was added since"


FIRST = """
from stepcraft.concurrency import in_thread
from stepcraft.retrieval.opening import memory_opening, source_opening

memory, source = memory_opening("weaviate://127.0.0.1:1/A"), source_opening("weaviate://127.0.0.1:1/B")
for opening in [in_thread(lambda one=one: one.open(refresh=True)) for one in (memory, source)]:
    print(opening.exception(60))
"""


def test_a_memory_and_a_source_may_load_the_client_of_weaviate_at_the_same_time() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST], capture_output=True, text=True, timeout=100, check=True
    )
    assert done.stdout.count("is Weaviate running there?") == 2, done.stdout
