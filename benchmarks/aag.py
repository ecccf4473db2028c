"""AAG's speed: the critical path, the overhead over plain LangGraph, and many runs at once.

Run with `python benchmarks/aag.py`. Every figure is a ratio of two measurements of the same run.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from rich.console import Console
from rich.table import Table

from benchmarks.bare import bare_aag
from benchmarks.timing import looped, looped_in_turns, seconds
from stepcraft import build_aag
from tests.kitchen import GOAL, cook, small_memory
from tests.scripted import ScriptedModel

RUNS_AT_ONCE = 200
SERVER = Path(__file__).with_name("model_server.py")


def scripted(edits: int, latency: float) -> ScriptedModel:
    """A model with one reply for each node; outside of a graph it replies as the critic."""
    replies = cook(edits)

    def answer(node: str, _prompt: str) -> str:
        asked = replies[node or "critic"]
        return asked[0] if node == "critic" else asked[-1]

    return ScriptedModel(answer, latency=latency)


def critical_path(table: Table) -> None:
    """Wall time of a run over its critical path, with 100 ms per call."""
    memory = small_memory()
    for case, edits, path, calls in (("best", 0, 4, 8), ("worst", 3, 9, 13)):
        graph = build_aag(model=scripted(edits, 0.1), memory=memory)
        blocking = seconds(lambda graph=graph: graph.invoke(GOAL), 5)
        unblocking = asyncio.run(looped(lambda graph=graph: graph.ainvoke(GOAL), 5))
        for kind, wall in (("sync", blocking), ("async", unblocking)):
            ratio = wall / (path * 0.1)
            table.add_row(
                f"wall / critical path of {path} calls, {case}, {kind}",
                f"{ratio:.3f}",
                "≤ 1.10",
                f"{wall:.3f} s; one after the other {calls * 0.1:.1f} s",
            )


def overhead(table: Table) -> None:
    """Time of a run over that of the same topology on plain LangGraph, with a model without latency."""
    memory = small_memory()
    for case, edits in (("best", 0), ("worst", 3)):
        graphs = build_aag(model=scripted(edits, 0), memory=memory), bare_aag(scripted(edits, 0), memory)
        blocking = [seconds(lambda graph=graph: graph.invoke(GOAL), 40) for graph in graphs]
        unblocking = [asyncio.run(looped(lambda graph=graph: graph.ainvoke(GOAL), 40)) for graph in graphs]
        for kind, (stepcraft, plain) in (("sync", blocking), ("async", unblocking)):
            table.add_row(
                f"run / same topology with bare nodes, {case}, {kind}",
                f"{stepcraft / plain:.2f}",
                "≤ 1.3",
                f"{stepcraft * 1e3:.1f} ms over {plain * 1e3:.1f} ms",
            )


async def bare_calls(model: BaseChatModel, prompts: list[list[Any]]) -> None:
    """The model calls of a best-case run without a graph, concurrent where the graph makes them concurrently."""
    await asyncio.gather(*(model.ainvoke(prompt) for prompt in prompts[:2]))
    await asyncio.gather(*(model.ainvoke(prompt) for prompt in prompts[2:6]))
    await model.ainvoke(prompts[6])
    await model.ainvoke(prompts[7])


async def throughput(table: Table) -> None:
    """Many runs at once over a model of 50 ms behind HTTP, against the same calls without a graph."""
    memory = small_memory()
    recorder = scripted(0, 0)
    build_aag(model=recorder, memory=memory).invoke(GOAL)
    prompts = [call.messages for call in recorder.calls]
    server = await asyncio.create_subprocess_exec(sys.executable, str(SERVER), stdout=asyncio.subprocess.PIPE)
    try:
        url = f"http://127.0.0.1:{int(await server.stdout.readline())}/v1"
        served = ChatOpenAI(model="served", base_url=url, api_key="none", max_retries=0)
        await compare("through langchain-openai and HTTP", served, prompts, table)
    finally:
        server.kill()
        await server.wait()
    await compare("a model in the process", scripted(0, 0.05), prompts, table)


async def compare(name: str, model: BaseChatModel, prompts: list[list[Any]], table: Table) -> None:
    """Time of the runs over that of the calls alone, and over that of the same topology on plain LangGraph."""
    graph, plain = build_aag(model=model, memory=small_memory()), bare_aag(model, small_memory())
    works = [
        partial(at_once, lambda: graph.ainvoke(GOAL)),
        partial(at_once, lambda: bare_calls(model, prompts)),
        partial(at_once, lambda: plain.ainvoke(GOAL)),
    ]
    ours, bare, same = await looped_in_turns(works, 5)
    what = f"throughput of {RUNS_AT_ONCE} runs at once"
    for against, other, wanted in (("bare calls", bare, "≥ 0.8"), ("same topology", same, "")):
        table.add_row(
            f"{what} / {against}, {name}", f"{other / ours:.2f}", wanted, f"{ours:.2f} s over {other:.2f} s"
        )


async def at_once(run: Callable[[], Awaitable[Any]]) -> None:
    """Start `RUNS_AT_ONCE` runs and wait for all."""
    await asyncio.gather(*(run() for _ in range(RUNS_AT_ONCE)))


def main() -> None:
    """Print the table."""
    table = Table("what", "ratio", "wanted", "of")
    critical_path(table)
    overhead(table)
    asyncio.run(throughput(table))
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
