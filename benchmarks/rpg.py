"""RPG's speed: its calls against the clock, and what the house adds to LangGraph.

Run with `python benchmarks/rpg.py`. The critical path is counted: two calls a cycle and one to combine, 100 ms each.
A search of 50 ms stands beside the first plan and adds nothing to it; no run finds the passages of another. Overhead is measured against the same loop with
bare nodes and the same ranking, in turns.
"""

import asyncio
import sys
from collections.abc import Sequence
from functools import partial
from itertools import count, product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from langchain_core.documents import Document
from rich.console import Console
from rich.table import Table

from benchmarks.bare_rpg import bare_rpg
from benchmarks.timing import in_turns, looped_in_turns
from stepcraft import RpgContext, build_rpg
from tests.bridge import QUESTION, documents, planner
from tests.scripted import ScriptedModel
from tests.shelf import Shelf

CALL_S, SEARCH_S = 0.1, 0.05
CALLS = {"long": 6, "short": 2, "multihop": 7}


def model(latency: float = 0.0) -> ScriptedModel:
    """Plans three segments."""
    return ScriptedModel(planner(), latency=latency)


def shelf(passages: int, latency: float = 0.0) -> Shelf:
    """The passages on the bridge, and others that say as much of other bridges; those are new at each search."""
    runs = count()

    def found(query: str) -> list[Document]:
        run = next(runs) if latency else 0
        return [*documents(query), *(_other(run, number) for number in range(passages - 3))]

    return Shelf(latency=latency, says=found)


def _other(run: int, number: int) -> Document:
    told = [f"Bridge {run}/{number} got its stone number {place} in {1500 + number}." for place in range(6)]
    return Document(" ".join(told), id=str(number), metadata={"title": f"Bridge {number}"})


def both_ways(
    runs: Sequence[tuple[Any, RpgContext | None]], given: dict[str, Any], repeat: int
) -> list[tuple[str, list[float]]]:
    """The seconds of a run of each graph, in turns: blocking, and on an event loop."""
    blocking = [partial(graph.invoke, given, context=context) for graph, context in runs]
    unblocking = [partial(graph.ainvoke, given, context=context) for graph, context in runs]
    return [
        ("sync", in_turns(blocking, repeat)),
        ("async", asyncio.run(looped_in_turns(unblocking, repeat))),
    ]


def critical_path(table: Table) -> None:
    """Wall time over the calls that follow each other."""
    for (kind, calls), passages in product(CALLS.items(), (5, 100)):
        graph = build_rpg(model=model(CALL_S), retriever=shelf(passages, SEARCH_S))
        given = {**QUESTION, "kind": kind}
        for way, (wall,) in both_ways([(graph, RpgContext(k=100, paper=True))], given, 5):
            what = f"wall / critical path: {kind}, {passages} passages, {way}"
            told = f"{wall:.3f} s; {calls} calls of 100 ms"
            table.add_row(what, f"{wall / (calls * CALL_S):.3f}", "≤ 1.10", told)


def outline(table: Table) -> None:
    """Four topics in parallel: three calls deep, with the search for the question and those for the topics."""
    topics = [f"bridge number {number}" for number in range(4)]
    graph = build_rpg(model=ScriptedModel(planner(topics), latency=CALL_S), retriever=shelf(5, SEARCH_S))
    deep = 3 * CALL_S + 2 * SEARCH_S
    for way, (wall,) in both_ways([(graph, RpgContext())], QUESTION, 5):
        what = f"wall / critical path: outline of {len(topics)} topics, {way}"
        table.add_row(
            what, f"{wall / deep:.3f}", "≤ 1.10", f"{wall:.3f} s; 3 calls of 100 ms, 2 searches of 50 ms"
        )


def overhead(table: Table) -> None:
    """A run over the same loop written straight on LangGraph, with a model and a source of no latency."""
    for kind in CALLS:
        ours = build_rpg(model=model(), retriever=shelf(5)), RpgContext(paper=True)
        straight = bare_rpg(model(), shelf(5)), None
        for way, (house, bare) in both_ways([ours, straight], {**QUESTION, "kind": kind}, 60):
            table.add_row(
                f"run / same loop with bare nodes: {kind}, {way}",
                f"{house / bare:.2f}",
                "≤ 1.3",
                f"{house * 1e3:.1f} ms over {bare * 1e3:.1f} ms",
            )


def main() -> None:
    """Print the table."""
    table = Table("what", "ratio", "wanted", "of")
    overhead(table)
    critical_path(table)
    outline(table)
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
