"""AAG's speed: the critical path, the overhead over plain LangGraph, many runs at once, and the tokens of patches.

Run with `python benchmarks/aag.py`. Every figure is a ratio of two measurements of the same run.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatResult
from langchain_openai import ChatOpenAI
from rich.console import Console
from rich.table import Table

from benchmarks.bare import bare_aag
from benchmarks.timing import looped, looped_in_turns, seconds
from stepcraft import AagContext, build_aag
from tests.kitchen import CONTENT, GOAL, PAPER, QUESTIONS, cook, small_memory
from tests.scripted import ScriptedModel

RUNS_AT_ONCE = 200
TOKENS_A_SECOND = 50
HASTE = 10
"""The writing model is so many times as fast, so that the measurement does not take minutes."""
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
        blocking = seconds(lambda graph=graph: graph.invoke(GOAL, context=PAPER), 5)
        unblocking = asyncio.run(looped(lambda graph=graph: graph.ainvoke(GOAL, context=PAPER), 5))
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
        blocking = [seconds(lambda graph=graph: graph.invoke(GOAL, context=PAPER), 40) for graph in graphs]
        unblocking = [
            asyncio.run(looped(lambda graph=graph: graph.ainvoke(GOAL, context=PAPER), 40))
            for graph in graphs
        ]
        for kind, (stepcraft, plain) in (("sync", blocking), ("async", unblocking)):
            table.add_row(
                f"run / same topology with bare nodes, {case}, {kind}",
                f"{stepcraft / plain:.2f}",
                "≤ 1.3",
                f"{stepcraft * 1e3:.1f} ms over {plain * 1e3:.1f} ms",
            )


class Writing(ScriptedModel):
    """A model that takes the time that its tokens take."""

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        result = super()._generate(*args, **kwargs)
        written = result.generations[0].message.usage_metadata["output_tokens"]
        time.sleep(written / TOKENS_A_SECOND / HASTE)
        return result


def long_run(rewrite: str) -> dict[str, list[str]]:
    """Replies for a procedure of 12 steps, of which the revision changes three and each of three edits one."""
    steps = [f"{number}. {f'Do part {number} with care. ' * 4}".strip() for number in range(1, 13)]
    change = {
        "patch": [
            "\n".join(step.replace(". ", ": ", 1) for step in steps[3:6]),
            steps[7].replace(". ", ": ", 1),
        ],
        "whole": ["\n".join(steps)] * 2,
    }[rewrite]
    return {
        "assess": ["FAMILIAR"],
        "draft": ["\n".join(["1. [[Begin.]]", *steps[1:]])],
        "to_query": [QUESTIONS],
        "answer": ["This is done as follows, with all that belongs to it. " * 3] * 4,
        "revise": change[:1],
        "critic": ["- Step 8: say how long it takes, and with which part it is done."] * 3 + [CONTENT],
        "edit": change[1:] * 3,
    }


def written(table: Table) -> None:
    """Tokens and wall time of a run that writes changes alone, over those of one that writes all steps anew."""
    memory = small_memory()
    tokens, walls = [], []
    for rewrite in ("patch", "whole"):
        context = AagContext(questions=True, rewrite=rewrite)
        graph = build_aag(model=Writing(long_run(rewrite)), memory=memory)
        began = time.perf_counter()
        result = graph.invoke(GOAL, context=context)
        walls.append(time.perf_counter() - began)
        tokens.append(result["usage"]["output_tokens"])
        if result["warnings"] or len(result["steps"]) != 12:
            raise RuntimeError(f"rewrite={rewrite!r} did not run as it is scripted: {result['warnings']}")
    table.add_row(
        "tokens written, patch / whole",
        f"{tokens[0] / tokens[1]:.2f}",
        "≤ 0.5",
        f"{tokens[0]:,} over {tokens[1]:,}",
    )
    seconds_each = [f"{wall * HASTE:.1f} s" for wall in walls]
    table.add_row(
        f"wall at {TOKENS_A_SECOND} tokens/s, patch / whole",
        f"{walls[0] / walls[1]:.2f}",
        "≤ 0.5",
        " over ".join(seconds_each),
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
    build_aag(model=recorder, memory=memory).invoke(GOAL, context=PAPER)
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
        partial(at_once, lambda: graph.ainvoke(GOAL, context=PAPER)),
        partial(at_once, lambda: bare_calls(model, prompts)),
        partial(at_once, lambda: plain.ainvoke(GOAL, context=PAPER)),
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
    written(table)
    asyncio.run(throughput(table))
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
