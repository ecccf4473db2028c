"""What it costs to embed a graph: in a parent over alone, sync over async, many runs at once over bare nodes.

Run with `python benchmarks/embedded.py`. Every figure is a ratio of two measurements made in turns.
"""

import asyncio
import sys
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, TypedDict

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.aag import RUNS_AT_ONCE, at_once, scripted
from benchmarks.bare import bare_aag
from langgraph.graph import END, START, StateGraph
from rich.console import Console
from rich.table import Table

from benchmarks.timing import in_turns, looped_in_turns
from stepcraft import as_node, build_aag, build_rat
from tests.kitchen import GOAL, PAPER, small_memory
from tests.scripted import ScriptedModel
from tests.shelf import QUESTION, Shelf, thinker


class Shared(TypedDict, total=False):
    question: str
    resources: str
    answer: str
    steps: list[str]


class Theirs(TypedDict, total=False):
    task: str
    things: str
    notes: str


def parent_of(node: Any, state: Any) -> Any:
    """A graph of this one node."""
    builder = StateGraph(state)
    builder.add_node("write", node)
    builder.add_edge(START, "write")
    builder.add_edge("write", END)
    return builder.compile()


def in_a_parent(table: Table) -> None:
    """Processor time of a run inside of a parent over that of the graph alone, with a model without latency."""
    aag = build_aag(model=scripted(3, 0), memory=small_memory())
    rat = build_rat(model=ScriptedModel(thinker(".x.")), retriever=Shelf())
    keys = {"question": "task", "answer": "notes"}
    theirs = {"task": GOAL["question"], "things": GOAL["resources"]}
    cases = [
        (
            "AAG",
            (aag, GOAL, PAPER),
            (parent_of(aag, Shared), GOAL, PAPER),
            (
                parent_of(as_node(aag, context=PAPER, resources="things", **keys), Theirs),
                theirs,
                None,
            ),
        ),
        (
            "RAT",
            (rat, QUESTION, None),
            (parent_of(rat, Shared), QUESTION, None),
            (parent_of(as_node(rat, **keys), Theirs), {"task": QUESTION["question"]}, None),
        ),
    ]
    for name, *runs in cases:
        sync = in_turns(
            [partial(graph.invoke, given, context=of) for graph, given, of in runs],
            40,
            process_time,
        )
        loop = asyncio.run(
            looped_in_turns(
                [partial(graph.ainvoke, given, context=of) for graph, given, of in runs],
                40,
                process_time,
            )
        )
        for way, (alone, as_it_is, mapped) in (("sync", sync), ("async", loop)):
            for how, took in (("as it is", as_it_is), ("as_node", mapped)):
                table.add_row(
                    f"{name} in a parent, {how} / alone, {way}",
                    f"{took / alone:.3f}",
                    "≤ 1.1",
                    f"{took * 1e3:.1f} ms over {alone * 1e3:.1f} ms",
                )
        table.add_row(
            f"{name}, invoke / ainvoke",
            f"{sync[0] / loop[0]:.2f}",
            "≤ 1.2",
            f"{sync[0] * 1e3:.1f} ms over {loop[0] * 1e3:.1f} ms",
        )


async def many_at_once(table: Table) -> None:
    """Throughput of many runs in a parent over that of the same topology with bare nodes in the same parent."""
    model = scripted(0, 0.05)
    graphs = [
        parent_of(build_aag(model=model, memory=small_memory()), Shared),
        parent_of(bare_aag(model, small_memory()), Shared),
    ]
    works = [
        partial(at_once, partial(graph.ainvoke, GOAL, context=context))
        for graph, context in zip(graphs, (PAPER, None), strict=True)
    ]
    # On a machine that does other work, too, only the processor time says something.
    for what, clock in (
        ("throughput of runs", perf_counter),
        ("processor time of runs, inverse", process_time),
    ):
        ours, bare = await looped_in_turns(works, 5, clock)
        table.add_row(
            f"{what}, {RUNS_AT_ONCE} at once / same topology with bare nodes",
            f"{bare / ours:.2f}",
            "≥ 0.97",
            f"{ours:.2f} s over {bare:.2f} s",
        )


def main() -> None:
    """Print the table."""
    table = Table("what", "ratio", "wanted", "of")
    in_a_parent(table)
    asyncio.run(many_at_once(table))
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
