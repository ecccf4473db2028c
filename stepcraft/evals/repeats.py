"""Scores of tasks: of one that was answered several times, the mean, and pass@k."""

from collections.abc import Iterable, Mapping
from statistics import fmean

from stepcraft.evals.directory import Outcome
from stepcraft.evals.scores import pass_at_k

_FIRST = "pass@1"
"""What the name of a score begins with that tells whether a program is right."""
_SIZES = (5, 10, 100)
"""The k of pass@k that are reported where there are so many answers; the number of answers is one more."""


def task_of(outcome: Outcome) -> str:
    """The id of the task that an outcome is an answer to."""
    return outcome["sample"].get("task", outcome["id"])


def task_scores(outcomes: Iterable[Outcome]) -> dict[str, dict[str, float]]:
    """The scores of each task, by the name of the score and the id of the task.

    A task's score is the mean over its answers: of programs that is pass@1. Beside it stand pass@5, pass@10 and pass@100,
    and pass@k with k the number of answers, where all tasks have that many; they are estimated without bias (Chen et al.
    2021, §2.1; RAT §4 reports pass@1 and pass@5 of five answers). An answer that failed with an error is not counted.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for outcome in outcomes:
        if not outcome["error"]:
            for name, value in outcome["scores"].items():
                found.setdefault(name, {}).setdefault(task_of(outcome), []).append(value)
    scores: dict[str, dict[str, float]] = {}
    for name, tasks in found.items():
        scores[name] = {task: fmean(values) for task, values in tasks.items()}
        if name.startswith(_FIRST):
            scores |= _passed(name.removeprefix(_FIRST), tasks)
    return scores


def _passed(rest: str, tasks: Mapping[str, list[float]]) -> dict[str, dict[str, float]]:
    fewest, most = min(map(len, tasks.values())), max(map(len, tasks.values()))
    sizes = {size for size in (*_SIZES, most) if 1 < size <= fewest}
    return {
        f"pass@{size}{rest}": {
            task: pass_at_k(len(values), round(sum(values)), size) for task, values in tasks.items()
        }
        for size in sorted(sizes)
    }
