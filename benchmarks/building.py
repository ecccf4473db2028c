"""Building memories from documents: `python benchmarks/building.py [DOCUMENTS]`.

- throughput: 480 documents of one part each, and 160, against a model of 100 ms, 16 calls at a time ÷ as many bare calls of
  it, 16 at a time, and ÷ the 160 calls a second of arithmetic; the same of the extraction graph alone, 16 runs at a time.
  The first calls wait until documents are prepared and the last procedures are added after the last call, some 0.1 s in all,
  which shows in a build of one second;
- overhead: seconds of the processor for a document with a model of no latency ÷ those of the extraction graph alone;
- scale: 10,000 documents (or so many) with a model of no latency in a process of their own: the time for each, and the peak
  of the memory ÷ those of a tenth of them; and the second build, which asks nothing, ÷ the first.
"""

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from langchain_core.documents import Document
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from rich.console import Console
from rich.table import Table

from stepcraft import build_extract, open_memory
from stepcraft.building import build_memory
from tests.building.built import page, read

CONCURRENCY, LATENCY = 16, 0.1


class Reader(BaseChatModel):
    """Replies with the procedure of the page in its prompt."""

    latency: float = 0.0

    @property
    def _llm_type(self) -> str:
        return "reader"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        reply = read("", "\n\n".join(str(message.content) for message in messages))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(reply))])

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        if self.latency:
            await asyncio.sleep(self.latency)
        return self._generate(messages)


def documents(count: int) -> list[Document]:
    """Documents that teach a task each; no two have a word in common."""
    names = [f"page{n}x" for n in range(count)]
    return [
        Document(page(name), metadata={"source": f"{name}.md", "title": f"Task {name}"})
        for name in names
    ]


async def built(pages: Sequence[Document], folder: Path, latency: float, concurrency: int) -> float:
    """Seconds of a build into a new memory, or of another one into the same."""
    with open_memory(str(folder / "m.db")) as memory:
        memory.search("anything", 1)  # loads the embeddings
        model = Reader(latency=latency)
        began = time.perf_counter()
        report = await build_memory([pages], memory, model=model, concurrency=concurrency)
        took = time.perf_counter() - began
        assert report.placed == {"added": len(pages)}, report
        assert memory.count() == len(pages)
    return took


async def taken(pages: Sequence[Document], call: Callable[[Document], Awaitable[object]]) -> float:
    """Seconds of one call for each document, as many at a time; nothing is kept."""
    left = iter(pages)

    async def work() -> None:
        for each in left:
            await call(each)

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(CONCURRENCY)))
    return time.perf_counter() - began


async def throughput(count: int, turns: int) -> dict[str, list[float]]:
    """Seconds of so many builds of `count` documents, of the graph alone, and of bare calls, in turns."""
    pages, model = documents(count), Reader(latency=LATENCY)
    graph = build_extract(model=model)
    seconds: dict[str, list[float]] = {"build": [], "graph": [], "calls": []}
    for _ in range(turns + 1):
        with tempfile.TemporaryDirectory() as folder:
            seconds["build"].append(await built(pages, Path(folder), LATENCY, CONCURRENCY))
        seconds["graph"].append(await taken(pages, lambda each: graph.ainvoke(input_of(each))))
        seconds["calls"].append(await taken(pages, lambda each: model.ainvoke(each.page_content)))
    return {name: times[1:] for name, times in seconds.items()}


def input_of(document: Document) -> Any:
    """What the extraction graph takes of a document."""
    return {**document.metadata, "text": document.page_content}


async def overhead(turns: int) -> tuple[float, float]:
    """Seconds of the processor for a document, of a build and of the graph alone; medians."""
    pages = documents(100)
    graph = build_extract(model=Reader())
    times: list[tuple[float, float]] = []
    for _ in range(turns + 1):
        with tempfile.TemporaryDirectory() as folder:
            began = time.process_time()
            await built(pages, Path(folder), 0.0, 1)
            ours = time.process_time() - began
        began = time.process_time()
        for each in pages:
            await graph.ainvoke(input_of(each))
        times.append((ours / 100, (time.process_time() - began) / 100))
    return median(build for build, _ in times[1:]), median(alone for _, alone in times[1:])


def scale(count: int) -> dict[str, float]:
    """Seconds of a build of so many documents and of a second one, the peak of the memory in MB; in a process of its own."""
    command = [sys.executable, __file__, "--one", str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    seconds: dict[str, float] = json.loads(done.stdout)
    return seconds


def one_scale(count: int) -> None:
    """What `scale` runs."""
    with tempfile.TemporaryDirectory() as folder:
        pages = documents(count)
        first = asyncio.run(built(pages, Path(folder), 0.0, CONCURRENCY))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        second = asyncio.run(built(pages, Path(folder), 0.0, CONCURRENCY))
    print(json.dumps({"first": first, "second": second, "peak": peak}))


def main(count: int) -> None:
    """Measure all of it; the largest build has so many documents."""
    table = Table("what", "figure", title="Building memories")
    turns = 7
    for pages in (480, 160):
        seconds = asyncio.run(throughput(pages, turns))
        limits = {
            "bare calls": seconds["calls"],
            "160 calls a second": [pages * LATENCY / CONCURRENCY] * turns,
        }
        for name, what in (("build", "throughput"), ("graph", "the graph alone")):
            for of, limit in limits.items():
                shares = [bare / ours for ours, bare in zip(seconds[name], limit, strict=True)]
                table.add_row(
                    f"{what}, {pages} documents ÷ {of}, median of {turns}",
                    f"{median(shares):.2f} ({min(shares):.2f}–{max(shares):.2f})",
                )
    build, graph = asyncio.run(overhead(3))
    table.add_row(
        "processor time a document ÷ the graph alone",
        f"{build / graph:.2f} ({1000 * build:.1f} ms)",
    )
    small, large = scale(count // 10), scale(count)
    each, before = large["first"] / count, small["first"] / (count // 10)
    table.add_row(
        f"time a document, {count:,} ÷ {count // 10:,}",
        f"{each / before:.2f} ({1000 * each:.1f} ms)",
    )
    table.add_row(
        f"peak of the memory, {count:,} ÷ {count // 10:,}",
        f"{large['peak'] / small['peak']:.2f} ({large['peak']:.0f} MB)",
    )
    table.add_row(
        f"second build of {count:,} ÷ the first", f"{large['second'] / large['first']:.3f}"
    )
    Console().print(table)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        one_scale(int(sys.argv[2]))
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 10_000)
