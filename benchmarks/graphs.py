"""What the graphs add to the model's time, and to LangGraph's.

Run with `python benchmarks/graphs.py`. Every ratio is of two measurements in this one run: the wall time over the
critical path with a model of 100 ms a call, the time with a model of no latency over that of the same topology with
the same searches on bare LangGraph, and the throughput of 200 runs at once over that topology's.
"""

import asyncio
import operator
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypedDict

sys.path.insert(0, str(Path(__file__).parent.parent))

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.graph import END, START, StateGraph

from benchmarks.timing import looped_in_turns
from stepcraft import get_graph
from stepcraft.graphs.registry import context_of
from tests.kitchen import CHANGE, LOOK_UP, small_memory
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
        "generate": "It has arches [p1].",
        "revise": block(1, new="Four."),
    },
    "aag": {"to_query": LOOK_UP, "draft": STEPS, "critic": CHANGE},
}
WRITERS = {"rat": ["draft"], "rpg": ["plan", "generate"], "aag": ["to_query", "draft"]}
"""The nodes that ask a model before the check, which asks twice."""


class Bare(TypedDict, total=False):
    """The state of the bare graph."""

    question: str
    texts: Annotated[list[str], operator.add]
    searches: Annotated[int, operator.add]
    round: int


def scripted(name: str, latency: float = 0.0) -> ScriptedModel:
    """Return the model of a graph: it finds something to change in both rounds."""
    return ScriptedModel(lambda node, _prompt: REPLIES[name][node], latency=latency)


def searched(name: str) -> tuple[Any, BaseRetriever]:
    """Return the options of a graph's builder, and what it searches as the bare graph's retriever."""
    options = {"settings": context_of(name)(rounds=2)}
    if name == "aag":
        memory = small_memory()
        return {**options, "memory": memory}, memory.as_retriever(3)
    shelf = Shelf()
    return {**options, "sources": shelf}, shelf


async def searches_of(graph: Any) -> list[list[str]]:
    """Return the queries of each search of a run."""
    found = [
        [each["query"] for each in update["findings"]]
        async for steps in graph.astream(QUESTION, stream_mode="updates")
        for node, update in steps.items()
        if node == "retrieve"
    ]
    return [now[len(before) :] for before, now in pairwise([[], *found])]


def bare(
    name: str, model: BaseChatModel, retriever: BaseRetriever, searches: list[list[str]]
) -> Any:
    """Return the topology of a graph on LangGraph alone: nodes that ask, search, or do nothing."""
    *first, writer = WRITERS[name]
    check = "critic" if name == "aag" else "revise"
    last = "trace" if name == "rpg" else "finish"
    builder: Any = StateGraph(Bare)

    async def search(state: Bare, config: RunnableConfig) -> Bare:
        await retriever.abatch(searches[state["searches"]], config)
        return {"searches": 1}

    def nothing(_state: Bare) -> Bare:
        return {}

    def count(state: Bare) -> Bare:
        return {"round": state["round"] + 1}

    for node in [*first, writer, check]:
        builder.add_node(node, RunnableLambda(nothing, _asking(model)))
    builder.add_node("retrieve", search)
    for node in ("begin", "split", last):
        builder.add_node(node, nothing)
    builder.add_node("edit", count)
    chain = [START, "begin", *first, "retrieve"]
    for source, target in pairwise(chain):
        builder.add_edge(source, target)
    builder.add_conditional_edges(
        "retrieve",
        lambda state: check if len(state["texts"]) > len(first) else writer,
        [writer, check],
    )
    builder.add_edge(writer, "split")
    builder.add_edge("split", "retrieve")
    builder.add_edge(check, "edit")
    builder.add_conditional_edges(
        "edit", lambda state: "retrieve" if state["round"] < 2 else last, ["retrieve", last]
    )
    if name == "aag":
        builder.add_node("check_names", nothing)
        builder.add_edge("finish", "check_names")
        builder.add_edge("check_names", END)
    else:
        builder.add_edge(last, END)
    return builder.compile()


def _asking(model: BaseChatModel) -> Callable[..., Any]:
    async def ask(state: Bare, config: RunnableConfig) -> Bare:
        prompt = [
            SystemMessage("Answer."),
            HumanMessage("\n\n".join([state["question"], *state["texts"]])),
        ]
        return {"texts": [str((await model.ainvoke(prompt, config)).text)]}

    return ask


async def measure(name: str) -> tuple[float, float, float]:
    """Return wall over critical path, time over bare LangGraph, and throughput over bare LangGraph."""
    options, retriever = searched(name)
    slow = get_graph(name, model=scripted(name, CALL_S), **options)
    await slow.ainvoke(QUESTION)
    began = time.perf_counter()
    result = await slow.ainvoke(QUESTION)
    wall = time.perf_counter() - began
    calls = result["usage"]["calls"]

    graph = get_graph(name, model=scripted(name), **options)
    searches = await searches_of(graph)
    plain = bare(name, scripted(name), retriever, searches)
    given: Any = {**QUESTION, "texts": [], "searches": 0, "round": 0}
    ours, theirs = await looped_in_turns(
        [lambda: graph.ainvoke(QUESTION), lambda: plain.ainvoke(given)], REPEAT
    )

    busy = get_graph(name, model=scripted(name, CALL_S), **options)
    plain = bare(name, scripted(name, CALL_S), retriever, searches)
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
