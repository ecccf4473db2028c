"""What a graph of ours does inside of a parent: a cell for each parent, context, way of streaming and checkpointer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.documents import Document
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

from stepcraft import MergedResults, add_answer, as_node
from stepcraft.graphs.registry import GRAPHS, context_of
from tests.graphs.parents import Theirs, acalling, built, calling, mapped, parent_of
from tests.scripted import ScriptedModel
from tests.shelf import Shelf

THREAD: Any = {"configurable": {"thread_id": "1"}}


class Both(Theirs, total=False):
    """A parent that shares our keys beside its own."""

    question: str
    answer: str


@dataclass
class TheirContext:
    """A parent's settings; one has the name of ours."""

    temperature: float = 0.5
    user: str = "u"


class TheirDict(TypedDict, total=False):
    temperature: float
    user: str


CONTEXTS: dict[str, Any] = {
    "none": lambda _name: (None, None),
    "ours": lambda name: (context_of(name), context_of(name)(temperature=0.5)),
    "their object": lambda _name: (TheirContext, TheirContext()),
    "a dict": lambda _name: (None, {"temperature": 0.5, "user": "u"}),
    "their dict": lambda _name: (TheirDict, {"temperature": 0.5, "user": "u"}),
}
PARENTS = ["as it is", "as_node", "as_node with a field", "called in a node"]
WAYS = ["invoke, no checkpointer", "stream, in memory", "astream, sqlite"]


def node_of(parent: str, graph: Any, *, on_a_loop: bool = False) -> Any:
    match parent:
        case "as it is":
            return graph
        case "as_node":
            return mapped(graph)
        case "as_node with a field":
            return mapped(graph, context_from={"temperature": "temperature"})
    return acalling(graph) if on_a_loop else calling(graph)


@contextmanager
def saver(way: str) -> Iterator[Any]:
    if "sqlite" in way:
        with SqliteSaver.from_conn_string(":memory:") as opened:
            yield opened
    else:
        yield InMemorySaver() if "memory" in way else None


@asynccontextmanager
async def asaver(way: str) -> AsyncIterator[Any]:
    if "sqlite" in way:
        async with AsyncSqliteSaver.from_conn_string(":memory:") as opened:
            yield opened
    else:
        yield InMemorySaver() if "memory" in way else None


MODES: Any = {"stream_mode": ["updates", "messages", "values"], "subgraphs": True}


def seen(parts: list[Any]) -> tuple[Any, set[str], set[str]]:
    """The last values of the parent, the inner nodes that finished, and the nodes whose words streamed."""
    values: Any = None
    nodes: set[str] = set()
    words: set[str] = set()
    for namespace, mode, data in parts:
        if mode == "values" and not namespace:
            values = data
        elif mode == "updates" and namespace:
            nodes |= set(data)
        elif mode == "messages":
            words.add(data[1]["langgraph_node"])
    return values, nodes, words


def run(node: Any, schema: Any, given: Any, context: Any, way: str) -> tuple[Any, set[str], set[str], Any]:
    """What a parent gives and streams, and what its checkpointer has of it."""
    if way.startswith("a"):
        return asyncio.run(arun(node, schema, given, context, way))
    with saver(way) as kept:
        parent = parent_of(node, schema, Both, kept)
        config = THREAD if kept else None
        if way.startswith("invoke"):
            return parent.invoke(given, config, context=context), set(), set(), None
        parts = list(parent.stream(given, config, context=context, **MODES))
        state = parent.get_state(THREAD)
        return *seen(parts), (
            state,
            [one.config["configurable"]["checkpoint_ns"] for one in kept.list(THREAD)],
        )


async def arun(node: Any, schema: Any, given: Any, context: Any, way: str) -> Any:
    async with asaver(way) as kept:
        parent = parent_of(node, schema, Both, kept)
        config = THREAD if kept else None
        if way.startswith("ainvoke"):
            return await parent.ainvoke(given, config, context=context), set(), set(), None
        parts = [part async for part in parent.astream(given, config, context=context, **MODES)]
        state = await parent.aget_state(THREAD)
        spaces = [one.config["configurable"]["checkpoint_ns"] async for one in kept.alist(THREAD)]
        return *seen(parts), (state, spaces)


def check(name: str, parent: str, row: str, way: str) -> None:
    graph, question, model = built(name)
    schema, context = CONTEXTS[row](name)
    node = node_of(parent, graph, on_a_loop=way.startswith("a"))
    given = {"task": question, "question": question, "model": "theirs"}
    result, nodes, words, kept = run(node, schema, given, context, way)
    answer = result["answer" if parent == "as it is" else "notes"]
    assert answer
    assert result["model"] == "theirs"
    usual = context_of(name)().temperature
    expected = usual if row == "none" or parent == "as_node" else 0.5
    assert {call.kwargs.get("temperature") for call in model.calls} == {expected}
    if "stream" in way:
        assert nodes > {"begin"}
        assert words >= set(model.nodes)
        state, spaces = kept
        assert (state.next, state.values) == ((), result)
        assert {space.partition(":")[0] for space in spaces} == {"", "write"}, "what is inside is kept, too"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("row", [row for row in CONTEXTS if row != "their dict"])
@pytest.mark.parametrize("parent", PARENTS)
def test_a_parent(parent: str, row: str, way: str) -> None:
    check("rag" if way.endswith("no checkpointer") else "rat", parent, row, way)


@pytest.mark.parametrize("parent", PARENTS)
def test_a_parent_whose_context_is_a_typed_dict(parent: str) -> None:
    check("direct", parent, "their dict", "invoke, no checkpointer")


@pytest.mark.parametrize("parent", ["as it is", "as_node with a field"])
@pytest.mark.parametrize("name", [name for name in GRAPHS if name != "rat"])
def test_every_graph(name: str, parent: str) -> None:
    check(name, parent, "their object", "astream, in memory")


@pytest.mark.parametrize("parent", PARENTS)
def test_configurable_is_no_context(parent: str) -> None:
    graph, question, model = built("direct")
    given = {"task": question, "question": question}
    parent_of(node_of(parent, graph), None, Both).invoke(given, {"configurable": {"temperature": 0.9}})
    assert [call.kwargs.get("temperature") for call in model.calls] == [None]


SAVERS = ["in memory", "sqlite", "sqlite on a loop"]


class Threads:
    """The methods of a graph on its thread, sync or on an event loop."""

    def __init__(self, make: Any, kind: str) -> None:
        self.make = make
        self.kind = kind

    def __call__(self, *steps: Any) -> list[Any]:
        """The results of the steps; each gets the parent and the results so far, and names a method with arguments."""
        if self.kind.endswith("loop"):
            return asyncio.run(self._on_a_loop(steps))
        done: list[Any] = []
        with saver(self.kind) as kept:
            parent = self.make(kept)
            for step in steps:
                method, *arguments = step(done)
                made = getattr(parent, method)(*arguments)
                done.append(list(made) if method == "get_state_history" else made)
        return done

    async def _on_a_loop(self, steps: Any) -> list[Any]:
        done: list[Any] = []
        async with asaver(self.kind) as kept:
            parent = self.make(kept)
            for step in steps:
                method, *arguments = step(done)
                made = getattr(parent, f"a{method}")(*arguments)
                done.append([one async for one in made] if method == "get_state_history" else await made)
        return done


EMBEDDED = ["as it is", "as_node"]
TOGETHER = [*EMBEDDED, "called in a node"]


def threads(parent: str, kind: str, graph: Any) -> Threads:
    node = node_of(parent, graph, on_a_loop=kind.endswith("loop"))
    return Threads(lambda kept: parent_of(node, None, Both, kept), kind)


@pytest.mark.parametrize("kind", SAVERS)
@pytest.mark.parametrize("parent", TOGETHER)
def test_an_interrupt_passes_through(parent: str, kind: str) -> None:
    asks = Shelf(says=lambda _query: [Document(interrupt("What is known?"), id="told")])
    graph, question, model = built("rag", retriever=asks)
    asked, answered = threads(parent, kind, graph)(
        lambda _: ("invoke", {"task": question, "question": question}, THREAD),
        lambda _: ("invoke", Command(resume="It was Haldruvin."), THREAD),
    )
    assert [one.value for one in asked["__interrupt__"]] == ["What is known?"]
    assert answered["answer" if parent == "as it is" else "notes"] == "An answer."
    assert "It was Haldruvin." in model.calls[0].prompt


@pytest.mark.parametrize("kind", SAVERS)
@pytest.mark.parametrize("parent", TOGETHER)
def test_a_graph_that_stops_inside_of_a_step(parent: str, kind: str) -> None:
    graph, question, model = built("rat", interrupt_before=["revise"], interrupt_after=["split"])
    given = {"task": question, "question": question}
    key = "answer" if parent == "as it is" else "notes"
    results = threads(parent, kind, graph)(
        lambda _: ("invoke", given, THREAD),
        lambda _: ("get_state", THREAD),
        *[lambda _: ("invoke", None, THREAD)] * 3,
    )
    assert key not in results[0]
    assert results[1].next == ("write",)
    assert [key in result for result in results[2:]] == [False, False, True], "three thoughts in two windows"
    assert sorted(model.nodes) == sorted(["draft", *["to_query", "revise"] * 3, "finish"]), (
        "no call is repeated"
    )


def inside(state: Any) -> Any:
    """The thread of what runs inside of a node, without a point in time."""
    held = state.tasks[0].state
    found = held if "configurable" in held else held.config
    return {"configurable": {name: found["configurable"][name] for name in ("thread_id", "checkpoint_ns")}}


def when(history: Any, node: str) -> Any:
    """The newest checkpoint before a node."""
    return next(past.config for past in history if past.next == (node,))


@pytest.mark.parametrize("kind", SAVERS)
@pytest.mark.parametrize("parent", EMBEDDED)
def test_time_travel(parent: str, kind: str) -> None:
    """A run is forked from a step in the past of what is inside, and then made again from before the node."""
    graph, question, model = built("rat", interrupt_before=["finish"])
    given = {"task": question, "question": question}
    results = threads(parent, kind, graph)(
        lambda _: ("invoke", given, THREAD),
        lambda _: ("get_state", THREAD),
        lambda past: ("get_state_history", inside(past[1])),
        lambda past: ("update_state", when(past[2], "split"), {"draft": "One.\n\nTwo."}),
        lambda _: ("invoke", None, THREAD),
        lambda past: ("get_state", inside(past[1])),
        lambda _: ("invoke", None, THREAD),
        lambda _: ("get_state_history", THREAD),
        lambda past: ("invoke", None, when(past[7], "write")),
    )
    state, stopped, made_again = results[5], results[6], results[8]
    key = "answer" if parent == "as it is" else "notes"
    assert state.values["thoughts"] == ["One.\n\n", "Two."]
    assert (state.next, stopped[key]) == (("finish",), "The answer.")
    assert [call.node for call in model.calls].count("draft") == 2, "once more from before the node"
    assert key not in made_again


class Gathering(MergedResults, total=False):
    """A parent whose keys have reducers, some under names that are ours."""

    question: str
    task: str
    answer: Annotated[list[str], add_answer]
    notes: Annotated[list[str], add_answer]


def side_by_side(nodes: dict[str, Any], checkpointer: Any, sends: int = 0) -> Any:
    builder = StateGraph(Gathering)
    for name, node in nodes.items():
        builder.add_node(name, node)
        builder.add_edge(name, END)
        if not sends:
            builder.add_edge(START, name)
    if sends:
        name = next(iter(nodes))
        tasks = [Send(name, {"task": f"Question {n}?", "question": f"Question {n}?"}) for n in range(sends)]
        builder.add_conditional_edges(START, lambda _: tasks, [name])
    return builder.compile(checkpointer)


def gathered(graph: Any) -> Any:
    same = {name: name for name in ("evidence", "warnings", "usage")}
    return as_node(graph, question="task", answer="notes", state=Gathering, **same)


@pytest.mark.parametrize("kind", SAVERS)
@pytest.mark.parametrize("parent", EMBEDDED)
def test_several_in_one_superstep(parent: str, kind: str) -> None:
    """Evidence has distinct ids, warnings stand once, usage is added; nothing that the graphs share clashes."""
    made = [
        built(name, **({} if name == "aag" else {"retriever": Shelf()})) for name in ("rat", "rag", "aag")
    ]
    nodes = {
        graph.name: graph if parent == "as it is" else gathered(graph) for graph, _question, _model in made
    }
    given = {"task": made[0][1], "question": made[0][1], "warnings": ["theirs"]}
    [result] = Threads(lambda kept: side_by_side(nodes, kept), kind)(lambda _: ("invoke", given, THREAD))
    calls = sum(len(model.calls) for _graph, _question, model in made)
    answers = result["answer" if parent == "as it is" else "notes"]
    assert sorted(answers) == sorted(["The answer.", "An answer.", made[2][0].invoke(given)["answer"]])
    ids = [passage["id"] for passage in result["evidence"]]
    assert len(ids) == len(set(ids)) > 6
    assert result["warnings"] == ["theirs"]
    assert result["usage"]["calls"] == calls
    assert result["usage"]["nodes"]["draft"]["calls"] == 2, "RAT's and AAG's"


@pytest.mark.parametrize("kind", SAVERS)
@pytest.mark.parametrize("parent", EMBEDDED)
def test_one_sent_to_several_times(parent: str, kind: str) -> None:
    model = ScriptedModel(lambda _node, prompt: "Answer " + prompt.partition("Question ")[2][:1])
    graph, _, _ = built("rag", model=model)
    node = graph if parent == "as it is" else gathered(graph)
    [result] = Threads(lambda kept: side_by_side({"rag": node}, kept, 4), kind)(
        lambda _: ("invoke", {"question": "", "task": ""}, THREAD)
    )
    answers = result["answer" if parent == "as it is" else "notes"]
    assert answers == [f"Answer {number}" for number in range(4)]
    assert result["usage"]["calls"] == 4
