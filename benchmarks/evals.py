"""The harness of evaluations against running the graph alone: `python benchmarks/evals.py`.

- overhead: seconds a sample of an evaluation, one sample at a time, with a model of no latency ÷ those of the graph
  alone, in turns; every outcome is written;
- throughput: 1,000 samples against a model of 100 ms, 64 at a time ÷ what the bare graph reaches with as many;
- memory: the peak of 20,000 small samples in a process of their own ÷ that of 2,000; the samples themselves, which the
  caller holds, are among it;
- report: the page of 10,000 samples of two methods with five passages each, its seconds ÷ those of parsing the same lines as
  JSON, and its size.
"""

import asyncio
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import cast

sys.path.insert(0, str(Path(__file__).parent.parent))

from langgraph.graph import START, StateGraph
from rich.console import Console
from rich.table import Table

from stepcraft.evals.evaluate import evaluate
from stepcraft.evals.methods import Method, OwnMethod
from stepcraft.evals.reports.page import page
from stepcraft.evals.samples import Sample
from stepcraft.evals.summary import summarise
from stepcraft.graphs.baselines import build_direct
from tests.scripted import ScriptedModel


def samples(count: int) -> list[Sample]:
    """Questions with an answer."""
    return [
        Sample(id=str(number), question=f"Question {number}?", answers=["yes"])
        for number in range(count)
    ]


async def harness(count: int, latency: float, concurrency: int) -> float:
    """Seconds of an evaluation."""
    model = ScriptedModel(lambda *_: "yes", latency=latency)
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        await evaluate(
            [Method("direct", "direct", options={"model": model})],
            samples(count),
            Path(folder) / "run",
            concurrency=concurrency,
        )
        return time.perf_counter() - began


async def bare(count: int, latency: float, concurrency: int) -> float:
    """Seconds of the same runs of the graph alone."""
    graph = build_direct(model=ScriptedModel(lambda *_: "yes", latency=latency))
    left = iter(samples(count))

    async def work() -> None:
        for sample in left:
            await graph.ainvoke({"question": sample["question"]})

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(concurrency)))
    return time.perf_counter() - began


async def both(count: int, latency: float, concurrency: int, turns: int) -> tuple[float, float]:
    """The median seconds of both, in turns."""
    times = [
        (await harness(count, latency, concurrency), await bare(count, latency, concurrency))
        for _ in range(turns)
    ]
    return median(one for one, _ in times), median(other for _, other in times)


def reported(count: int) -> tuple[float, float, float]:
    """Seconds of the processor for the page of so many samples, for parsing their lines, and the MB of the page."""
    numbers = random.Random(0)
    words = [
        "".join(numbers.choices("abcdefghijklmnopqrstuvwxyz", k=numbers.randint(2, 9)))
        for _ in range(3000)
    ]

    def text(length: int) -> str:
        return " ".join(numbers.choices(words, k=length))

    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder)
        methods = {
            name: {"graph": name, "settings": {}, "model": "m"} for name in ("direct", "rag")
        }
        (directory / "configuration.json").write_text(json.dumps({"methods": methods}))
        with (directory / "samples.jsonl").open("w") as file:
            for number in range(count):
                passages = [
                    {"title": text(4), "text": text(80), "source": text(2)} for _ in range(5)
                ]
                for place, name in enumerate(methods):
                    line = {
                        "method": name,
                        "id": str(number),
                        "sample": {"id": str(number), "question": text(12), "answers": [text(2)]},
                        "output": {"answer": text(60), "evidence": passages},
                        "error": "",
                        "scores": {
                            "F1": numbers.random(),
                            "exact match": float(numbers.random() < 0.5),
                        },
                        "usage": {"calls": 1 + place, "input_tokens": 500, "output_tokens": 80},
                        "seconds": 1.0 + place,
                        "warnings": [],
                    }
                    file.write(json.dumps(line) + "\n")
        began = time.process_time()
        made = page(summarise({"run": directory}))
        ours = time.process_time() - began
        began = time.process_time()
        with (directory / "samples.jsonl").open() as file:
            for text_line in file:
                json.loads(text_line)
        return ours, time.process_time() - began, len(made.encode()) / 1e6


async def remembering_nothing(count: int) -> None:
    """Evaluate so many samples with a graph that keeps nothing of its calls."""
    builder = (
        StateGraph(dict).add_node("answer", lambda _: {"answer": "yes"}).add_edge(START, "answer")
    )
    mine = OwnMethod("mine", builder.compile())
    given = [
        {**sample, "question": f"{sample['question']} {'why ' * 50}"} for sample in samples(count)
    ]
    with tempfile.TemporaryDirectory() as folder:
        await evaluate([mine], cast("list[Sample]", given), Path(folder) / "run")


def peak_megabytes(count: int) -> float:
    """The peak memory of a process that evaluates so many samples."""
    code = (
        "import asyncio, re, benchmarks.evals as it; from pathlib import Path; "
        f"asyncio.run(it.remembering_nothing({count})); "
        "print(int(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1]) / 1024)"
    )
    return float(
        subprocess.check_output([sys.executable, "-c", code], cwd=Path(__file__).parent.parent)
    )


def main() -> None:
    """Print the table."""
    table = Table("what", "ratio", "wanted", "of")
    ours, alone = asyncio.run(both(300, 0.0, 1, 5))
    table.add_row(
        "seconds a sample / graph alone",
        f"{ours / alone:.2f}",
        "≤ 1.2",
        f"{ours / 0.3:.2f} ms over {alone / 0.3:.2f} ms",
    )
    ours, alone = asyncio.run(both(1000, 0.1, 64, 3))
    table.add_row(
        "throughput / bare graph, 64 at a time",
        f"{alone / ours:.2f}",
        "≥ 0.85",
        f"{1000 / ours:.0f} over {1000 / alone:.0f} a second",
    )
    ours, parsing, megabytes = reported(10_000)
    table.add_row(
        "page of 10,000 samples / parsing their lines",
        f"{ours / parsing:.1f}",
        "–",
        f"{ours:.1f} s over {parsing:.2f} s",
    )
    table.add_row(
        "page of 10,000 samples, seconds and MB",
        "–",
        "≤ 10 s, ≤ 20 MB",
        f"{ours:.1f} s, {megabytes:.1f} MB",
    )
    few, many = peak_megabytes(2_000), peak_megabytes(20_000)
    table.add_row(
        "memory of 20,000 samples / of 2,000",
        f"{many / few:.2f}",
        "≤ 1.2",
        f"{many:.0f} over {few:.0f} MB",
    )
    Console(width=130).print(table)


if __name__ == "__main__":
    main()
