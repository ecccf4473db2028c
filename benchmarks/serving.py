"""AAG on a LangGraph server: throughput over what the model allows, and where the rest goes: `python benchmarks/serving.py`.

A model of 100 ms behind HTTP answers any number of calls at once, and a run waits for four of its eight calls one after
another. So N runs at a time end every 0.4 s at best: this is the limit. Beside AAG the server runs the same topology with
bare nodes, and a graph that does nothing; both are also run in this process. The differences tell what each part adds.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from langgraph.checkpoint.memory import InMemorySaver
from langgraph_sdk import get_client
from rich.console import Console
from rich.table import Table

from benchmarks.serving_graphs import MODEL_URL, make_aag, make_bare
from tests.kitchen import GOAL
from tests.servers.langgraph_server import ROOT, LangGraphServer

LATENCY_S = 0.1
PATH = 4
"""The calls of a run that follow one another."""
RUNS = {1: 5, 10: 50, 50: 50}
"""How many runs are made with so many at a time."""
CONTEXT = {"paper": True}
MODEL = Path(__file__).with_name("model_server.py")
GRAPHS = ("aag", "bare", "empty")


class Taken(NamedTuple):
    """What some runs took, in seconds."""

    wall: float
    processor: float


@contextmanager
def model() -> Iterator[None]:
    """Start the model, and name its address to the graphs."""
    command = [sys.executable, str(MODEL), str(LATENCY_S)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            os.environ[MODEL_URL] = f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
            yield
        finally:
            process.kill()


async def runs(
    run: Callable[[], Awaitable[Any]], number: int, at_once: int, processor: Callable[[], float]
) -> Taken:
    """Make the runs, at most so many at a time, after some that warm up."""
    places = asyncio.Semaphore(at_once)

    async def placed() -> None:
        async with places:
            await run()

    await asyncio.gather(*(placed() for _ in range(min(at_once, 5))))
    used, began = processor(), time.perf_counter()
    await asyncio.gather(*(placed() for _ in range(number)))
    return Taken(time.perf_counter() - began, processor() - used)


async def here(at_once: int) -> dict[str, Taken]:
    """The graphs in this process."""
    bare, plain, kept = make_bare(), make_aag(), make_aag(InMemorySaver())
    threads = count()
    works: dict[str, Callable[[], Awaitable[Any]]] = {
        "bare": lambda: bare.ainvoke(GOAL),
        "aag": lambda: plain.ainvoke(GOAL, context=CONTEXT),
        "checkpoints": lambda: kept.ainvoke(
            GOAL, {"configurable": {"thread_id": str(next(threads))}}, context=CONTEXT, durability="async"
        ),
    }
    return {name: await runs(work, RUNS[at_once], at_once, time.process_time) for name, work in works.items()}


async def served(server: LangGraphServer, at_once: int) -> dict[str, Taken]:
    """The graphs on a server that runs so many at a time; all requests come at once, and wait in its queue."""
    taken: dict[str, Taken] = {}
    async with get_client(url=server.url) as client:
        for graph in GRAPHS:

            async def run(graph: str = graph) -> None:
                thread = await client.threads.create()
                context = CONTEXT if graph == "aag" else {}
                result = await client.runs.wait(thread["thread_id"], graph, input=GOAL, context=context)
                if graph != "empty" and not result.get("steps"):
                    raise RuntimeError(f"{graph} did not run as it is scripted: {result}")

            number = RUNS[at_once]
            taken[graph] = await runs(run, number, number, lambda: processor_of(server.pid))
    return taken


def processor_of(pid: int) -> float:
    """The seconds that a process has had of a processor; 0 where /proc is not there."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(config: Path, throughput: Table, parts: Table) -> None:
    """Fill the tables; on one event loop, because langchain-openai shares its connections among all."""
    for at_once, number in RUNS.items():
        limit = number / at_once * PATH * LATENCY_S
        local = await here(at_once)
        with LangGraphServer(config, "--n-jobs-per-worker", str(at_once)) as server:
            remote = await served(server, at_once)
        ours, plain, kept = remote["aag"], local["aag"], local["checkpoints"]
        shown = [str(at_once), str(number), f"{limit:.2f} s", f"{ours.wall:.2f} s"]
        busy = f"{ours.processor / ours.wall:.0%}", f"{number / max(ours.processor, 1e-9):.0f}"
        throughput.add_row(*shown, f"{limit / ours.wall:.2f}", f"{limit / plain.wall:.2f}", *busy)
        model = Taken(limit, 0)
        rows = {
            "the model": model,
            "LangGraph, client of the model": less(local["bare"], model),
            "our nodes": less(plain, local["bare"]),
            "checkpoints": less(kept, plain),
            "the server's queue and API": remote["empty"],
            "the server's events and storage": less(less(ours, kept), remote["empty"]),
            "all": ours,
            "bare nodes on the server": remote["bare"],
        }
        for part, taken in rows.items():
            wall, processor = (1e3 * seconds / number for seconds in taken)
            # Runs that are made at the same time share the clock, but not a processor.
            cells = f"{wall * at_once:.0f}", f"{taken.wall / ours.wall:.0%}", f"{processor:.0f}"
            parts.add_row(str(at_once), part, *cells, end_section=part == "all")
        parts.add_section()


def main() -> None:
    """Print the tables."""
    ratios = "throughput / limit", "in process / limit", "processor used", "runs a second of it"
    throughput = Table("runs at a time", "runs", "limit", "on the server", *ratios)
    parts = Table("runs at a time", "part", "ms a run", "of all", "processor, ms a run")
    with tempfile.TemporaryDirectory() as folder, model():
        config = Path(folder, "langgraph.json")
        graphs = {name: f"benchmarks.serving_graphs:{name}" for name in GRAPHS}
        config.write_text(json.dumps({"dependencies": [str(ROOT)], "graphs": graphs}), encoding="utf-8")
        asyncio.run(measure(config, throughput, parts))
    console = Console(width=120)
    console.print(throughput)
    console.print(parts)


def less(one: Taken, other: Taken) -> Taken:
    """What one takes more than the other."""
    return Taken(one.wall - other.wall, one.processor - other.processor)


if __name__ == "__main__":
    main()
