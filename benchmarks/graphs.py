"""What the graphs add to the model's time, and to LangGraph's.

Run with `python benchmarks/graphs.py`. Every ratio is of two measurements in this one run: the wall time over the
critical path with a model of 100 ms a call, the time with a model of no latency over that of the same topology with
the same searches on bare LangGraph, and the throughput of 200 runs at once over that topology's.
"""

import asyncio
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, StateGraph
from typing_extensions import TypedDict

from benchmarks.timing import looped_in_turns
from stepcraft import get_graph
from stepcraft.llm.calls import Node
from tests.kitchen import CHANGE, GAPS, LOOK_UP, small_memory
from tests.kitchen import DRAFT as STEPS
from tests.scripted import ScriptedModel, block
from tests.shelf import QUESTION, Shelf

CALL_S = 0.1
RUNS = 200
REPEAT = 15
THOUGHTS = "\n\n".join(f"Haldruvin built the Oster bridge number {number}." for number in range(12))
REPLIES = {
    "rat": {"draft": THOUGHTS, "revise": block(1, new="In 1873.")},
    "rpg": {
        "plan": "KIND: long\n- Oster",
        "look_again": "- mayor",
        "generate": "It has arches [1].",
        "revise": block(1, new="Four."),
    },
    "aag": {"to_query": LOOK_UP, "look_again": GAPS, "draft": STEPS, "critic": CHANGE},
}
METHOD = (
    "queries",
    "findings",
    "evidence",
    "first_draft",
    "parts",
    "changes",
    "revisions",
    "answer",
)
"""The keys of the state that a graph of this method cannot do without."""


class Step(NamedTuple):
    """A node's turn in a run."""

    node: str
    update: dict[str, Any]
    """What it writes of the method's keys."""
    messages: list[BaseMessage]
    """What it asks its model; empty if it asks none."""
    queries: list[str]
    """What it searches for."""


def scripted(name: str, latency: float = 0.0) -> ScriptedModel:
    """Return the model of a graph: it finds something to change in both rounds."""
    return ScriptedModel(lambda node, _prompt: REPLIES[name][node], latency=latency)


def searched(name: str) -> tuple[Any, BaseRetriever]:
    """Return what a graph searches, as an option of its builder and as the bare graph's retriever."""
    if name == "aag":
        memory = small_memory()
        return {"memory": memory}, memory.as_retriever(3)
    shelf = Shelf()
    return {"sources": shelf}, shelf


async def steps_of(graph: Any, model: ScriptedModel) -> list[Step]:
    """Return the steps of a run of a graph."""
    steps: list[Step] = []
    calls = len(model.calls)
    findings: list[Any] = []
    async for turn in graph.astream(QUESTION, stream_mode="updates"):
        for node, update in turn.items():
            new = (update or {}).get("findings", [])[len(findings) :] if node == "retrieve" else []
            findings += new
            asked = [message for call in model.calls[calls:] for message in call.messages]
            calls = len(model.calls)
            kept = {key: value for key, value in (update or {}).items() if key in METHOD}
            steps.append(Step(node, kept, asked, [each["query"] for each in new]))
    return steps


def bare(
    builder: StateGraph[Any, Any, Any, Any],
    model: BaseChatModel,
    retriever: BaseRetriever,
    steps: list[Step],
) -> Any:
    """Return a graph with the same nodes and edges, built with nothing but LangGraph.

    A node sends the same messages, makes the same searches, and writes what the graph's own node
    writes of the method's keys, all of them known beforehand.
    """
    state: Any = TypedDict("state", {"place": int, **dict.fromkeys(METHOD, Any)}, total=False)  # type: ignore[operator]
    plain: Any = StateGraph(state)

    def write(state: Any) -> dict[str, Any]:
        place = state["place"]
        return {**steps[place].update, "place": place + 1}

    async def call(state: Any, config: RunnableConfig) -> dict[str, Any]:
        step = steps[state["place"]]
        if step.messages:
            messages = [type(each)(each.text) for each in step.messages]
            str((await model.ainvoke(messages, config)).text)
        if step.queries:
            await retriever.abatch(step.queries, config)
        return write(state)

    def following(state: Any) -> str:
        return [*(step.node for step in steps), END][state["place"]]

    for name, node in builder.nodes.items():
        plain.add_node(name, call if isinstance(node.runnable, Node) else write)
    for source, target in builder.edges:
        plain.add_edge(source, target)
    for source, branches in builder.branches.items():
        for branch in branches.values():
            plain.add_conditional_edges(source, following, [*(branch.ends or {}).values()])
    return plain.compile()


async def measure(name: str) -> tuple[float, float, float]:
    """Return wall over critical path, time over bare LangGraph, and throughput over bare LangGraph."""
    options, retriever = searched(name)
    slow = get_graph(name, model=scripted(name, CALL_S), **options)
    await slow.ainvoke(QUESTION)
    began = time.perf_counter()
    result = await slow.ainvoke(QUESTION)
    wall = time.perf_counter() - began
    calls = result["usage"]["calls"]

    model = scripted(name)
    graph: Any = get_graph(name, model=model, **options)
    steps = await steps_of(graph, model)
    plain = bare(graph.builder, scripted(name), retriever, steps)
    given: Any = {"place": 0}
    ours, theirs = await looped_in_turns(
        [lambda: graph.ainvoke(QUESTION), lambda: plain.ainvoke(given)], REPEAT
    )

    busy = get_graph(name, model=scripted(name, CALL_S), **options)
    plain = bare(graph.builder, scripted(name, CALL_S), retriever, steps)
    many, bare_many = await looped_in_turns(
        [
            lambda: asyncio.gather(*(busy.ainvoke(QUESTION) for _ in range(RUNS))),
            lambda: asyncio.gather(*(plain.ainvoke(given) for _ in range(RUNS))),
        ],
        3,
    )
    return wall / (calls * CALL_S), ours / theirs, bare_many / many


def main() -> None:
    """Print a line for each graph."""
    for name in REPLIES:
        wall, overhead, throughput = asyncio.run(measure(name))
        print(
            f"{name}: wall / critical path {wall:.2f}, time / bare LangGraph {overhead:.2f}, "
            f"throughput of {RUNS} runs / bare LangGraph {throughput:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
