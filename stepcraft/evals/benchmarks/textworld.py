"""Crafting tasks of Minecraft, as plans that a text world carries out (RAT §4, embodied planning)."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from stepcraft.evals.benchmarks.benchmark import Benchmark
from stepcraft.evals.samples import Sample
from stepcraft.evals.textworld import PLAN_FORMAT, Task, execute, read_plan, tasks


def executability(sample: Sample, output: Mapping[str, Any]) -> dict[str, float]:
    """Whether the plan in an answer can be carried out, strictly and with table, furnace and fuel supplied (RAT §4)."""
    task = _tasks()[sample["id"]]
    steps: Sequence[str] = output.get("steps") or []
    plan = read_plan("\n".join(steps) or str(output.get("answer") or ""))
    return {
        name: float(execute(plan.steps, task.target, lenient=lenient).executable)
        for name, lenient in (("executable", False), ("executable, lenient", True))
    }


@cache
def _tasks() -> dict[str, Task]:
    return {task.id: task for task in tasks()}


def _samples() -> list[Sample]:
    return [Sample(id=task.id, question=f"{task.question}\n{PLAN_FORMAT}") for task in tasks()]


BENCHMARKS = (
    Benchmark(
        "textworld",
        "100 crafting tasks of Minecraft 1.16, carried out in a text world (RAT's embodied planning)",
        "that of this package; recipes from minecraft-data (MIT)",
        "this package",
        made=_samples,
        score=executability,
    ),
)
