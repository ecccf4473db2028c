"""What a run searches: several sources, sources that fail or ask back, and what is searched where none is named."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import NodeCancelledError
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt

from stepcraft import RatContext, build_rat, get_graph, open_memory
from stepcraft.errors import BadInput, NoAnswer
from stepcraft.graphs.baselines.rag import build_rag
from tests.kitchen import dish
from tests.retrieval.doors import Says
from tests.scripted import ScriptedModel
from tests.shelf import QUESTION, Shelf, thinker

THREAD: Any = {"configurable": {"thread_id": "1"}}


class Asking(BaseRetriever):
    """Asks a person before it searches."""

    k: int = 1

    def _get_relevant_documents(self, query: str, *, run_manager: Any, k: int = 1) -> list[Document]:
        return [Document(f"With leave: {interrupt('May I search?')}", id="asked")]


class AskingPlainly(Asking):
    """The same for a retriever that takes `k` with every call."""

    async def _aget_relevant_documents(self, query: str, *, run_manager: Any, k: int = 1) -> list[Document]:
        return self._get_relevant_documents(query, run_manager=run_manager, k=k)


class Stuck(BaseRetriever):
    """A retriever without async methods whose host never answers, until the test lets go."""

    gate: Any

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        self.gate.wait(20)
        return []


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Runs a graph either way."""
    if request.param == "sync":
        return lambda graph, given, config=None, **options: graph.invoke(given, config, **options)
    return lambda graph, given, config=None, **options: asyncio.run(graph.ainvoke(given, config, **options))


def rag(*sources: Any, **options: Any) -> Any:
    model = ScriptedModel(lambda _node, _prompt: "An answer.")
    return build_rag(model=model, retriever=list(sources), **options)


def broken(_query: str) -> list[Document]:
    raise ConnectionError("the search engines limit the rate")


def test_k_is_asked_of_every_retriever_whatever_it_takes(run: Any) -> None:
    class WithK(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any, k: int = 1) -> list[Document]:
            return [Document(f"{query} {number}") for number in range(k)]

    plain = Says(texts={str(number): f"Text {number}" for number in range(9)})
    for retriever in (plain, WithK(), Shelf()):
        assert len(run(rag(retriever), QUESTION, context={"k": 3})["evidence"]) == 3


def test_what_several_sources_find_is_interleaved_by_rank(run: Any) -> None:
    result = run(rag(Says(texts={"a": "A", "b": "B"}), Shelf()), QUESTION, context={"k": 2})
    texts = [passage["text"] for passage in result["evidence"]]
    asked = QUESTION["question"]
    assert texts == ["A", f"Passage 0 on {asked}.", "B", f"Passage 1 on {asked}."]


def test_a_source_that_fails_leaves_what_the_others_found(run: Any) -> None:
    result = run(rag(Shelf(says=broken), Says(texts={"a": "Rye."})), QUESTION)
    assert [passage["text"] for passage in result["evidence"]] == ["Rye."]
    assert result["warnings"] == ["retrieve: a search failed: Shelf: the search engines limit the rate"]
    both = run(rag(Shelf(says=broken), Shelf(says=broken)), QUESTION)
    assert (both["evidence"], both["answer"]) == ([], "An answer.")


def test_a_thought_is_checked_against_what_the_other_source_found(run: Any) -> None:
    sources = [Shelf(says=broken), Says(texts={"a": "Rye."})]
    result = run(build_rat(model=ScriptedModel(thinker("...")), retriever=sources), QUESTION)
    assert [revision["skipped"] for revision in result["revisions"]] == ["", "", ""]
    assert [passage["text"] for passage in result["evidence"]] == ["Rye."]


def test_two_sources_that_use_the_same_id_lose_no_passage(run: Any) -> None:
    ours, theirs = Says(texts={"1": "Ours.", "2": "Both."}), Says(texts={"1": "Theirs.", "2": "Both."})
    rat = build_rat(model=ScriptedModel(thinker("...")), retriever=[ours, theirs])
    for graph, k in ((rat, "passages_per_step"), (rag(ours, theirs), "k")):
        result = run(graph, QUESTION, context={k: 2})
        texts = {passage["id"]: passage["text"] for passage in result["evidence"]}
        assert sorted(texts.values()) == ["Both.", "Ours.", "Theirs."]
        assert (texts["1"], texts["2"]) == ("Ours.", "Both.")
        for revision in result.get("revisions", []):
            assert {passage["id"]: passage["text"] for passage in revision["evidence"]} == texts


@pytest.mark.parametrize("asking", [Asking(), AskingPlainly()])
@pytest.mark.parametrize("beside", [[], [Says(texts={"a": "Rye."})]])
def test_an_interrupt_in_a_retriever_stops_the_run_until_it_is_answered(
    run: Any, asking: BaseRetriever, beside: list[BaseRetriever]
) -> None:
    graph = rag(asking, *beside, checkpointer=InMemorySaver())
    stopped = run(graph, QUESTION, THREAD)
    assert [found.value for found in stopped["__interrupt__"]] == ["May I search?"]
    result = run(graph, Command(resume="yes"), THREAD)
    assert [passage["text"] for passage in result["evidence"]] == [
        "With leave: yes",
        *(["Rye."] if beside else []),
    ]
    assert (result["warnings"], result["answer"]) == ([], "An answer.")


def test_an_interrupt_in_a_retriever_stops_a_step_of_a_thought(run: Any) -> None:
    model = ScriptedModel(thinker("..."))
    graph = build_rat(model=model, retriever=Asking(), checkpointer=InMemorySaver())
    context = RatContext(window=1)
    result = run(graph, QUESTION, THREAD, context=context)
    for _ in range(3):
        assert [found.value for found in result["__interrupt__"]] == ["May I search?"]
        result = run(graph, Command(resume="yes"), THREAD, context=context)
    assert [revision["skipped"] for revision in result["revisions"]] == ["", "", ""]


async def test_a_cancelled_search_is_no_failed_search() -> None:
    def cancelled(_query: str) -> list[Document]:
        raise asyncio.CancelledError

    with pytest.raises(NodeCancelledError):
        await rag(Shelf(says=cancelled)).ainvoke(QUESTION)


async def test_searches_that_hang_leave_the_pool_of_the_event_loop_free() -> None:
    gate = threading.Event()
    hung = rag(Stuck(gate=gate))
    runs = [asyncio.create_task(hung.ainvoke(QUESTION, context={"deadline_s": 0.2})) for _ in range(40)]
    results = await asyncio.gather(*runs, return_exceptions=True)
    assert all(isinstance(result, NoAnswer) for result in results), "the deadline has passed"
    try:
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 5) == "free"
    finally:
        gate.set()


class Counting(InMemoryStore):
    """Counts the items that it hands out."""

    read = 0

    def batch(self, ops: Any) -> Any:
        results = super().batch(ops)
        self.read += sum(len(result) for result in results if isinstance(result, list))
        return results

    async def abatch(self, ops: Any) -> Any:
        results = await super().abatch(ops)
        self.read += sum(len(result) for result in results if isinstance(result, list))
        return results


def test_a_memory_in_the_store_is_not_counted_item_by_item(run: Any) -> None:
    store = Counting(index={"dims": 8, "embed": DeterministicFakeEmbedding(size=8), "fields": ["text"]})
    with open_memory("store:", store=store) as memory:
        memory.add([dish(number) for number in range(3000)])
    store.read = 0
    graph = build_rag(model=ScriptedModel(["An answer."]), memory="store:", store=store)
    assert len(run(graph, QUESTION, context={"k": 3})["evidence"]) == 3
    assert store.read <= 14, (
        "the three that are found, ten whose votes may lift them, and one to see that there are any"
    )


def test_the_memory_of_the_store_as_a_source(run: Any) -> None:
    store = InMemoryStore()
    with open_memory("store:team", store=store) as memory:
        memory.add([dish(1, output="the old bridge of Mostar")])
    rat = build_rat(model=ScriptedModel(thinker("...")), retriever="memory:store:team", store=store)
    for graph in (rat, rag("memory:store:team", store=store)):
        [passage] = run(graph, QUESTION)["evidence"]
        assert passage["title"] == "the old bridge of Mostar"


def test_a_store_that_is_not_there_is_named(run: Any) -> None:
    with pytest.raises(BadInput, match="store:team names LangGraph's store: compile the graph with a store"):
        run(rag("memory:store:team"), QUESTION)


@pytest.mark.parametrize("name", ["rat", "rpg"])
def test_where_no_source_is_named_the_served_graphs_search_the_bundled_procedures_and_say_so(
    run: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(get_graph(name), {"question": "How does a LangGraph agent stream tokens?"})
    [warning] = [warning for warning in result["warnings"] if "no source is named" in warning]
    assert warning.startswith(
        "no source is named, so the evidence comes from the bundled procedures; name corpus:PATH"
    )
    assert result["answer"]
    assert result["evidence"]
    monkeypatch.setenv("STEPCRAFT_SOURCE", "tests.retrieval.doors:quick")
    result = run(get_graph(name), {"question": "When did rye come?"})
    assert [passage["id"] for passage in result["evidence"]] == ["quick"]
    assert all("no source is named" not in warning for warning in result["warnings"])
