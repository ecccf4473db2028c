"""Python functions as answers, run in the sandbox against the tests of their benchmark."""

import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.evals.benchmark import Benchmark, Questions
from stepcraft.evals.samples import Sample
from stepcraft.files import open_regular
from stepcraft.text.clean import unfenced
from stepcraft.text.markdown import code_blocks
from stepcraft_papers.entries import data_file
from stepcraft_papers.sandbox import SandboxFailure, need_sandbox, run_program
from stepcraft_papers.source import Release, digest

_MOST_SECONDS = 180
"""CPU seconds for an answer and the benchmark's own solution on all inputs of a task."""
_MEGABYTES = 4096
"""The memory limit of a program (evalplus 0.3.1)."""
CODE_SETTINGS: Mapping[str, Any] = {
    "rat": {"finish": "code"},
    "rat_paper": {"finish": "code", "query": "draft", "max_retrievals": 5, "k": 1},
}
"""Settings for code; RAT searches with the text so far, at most 5 times with k = 1 (RAT §4)."""


@dataclass(frozen=True)
class Task:
    """A function to write, and the tests for a program that contains it."""

    id: str
    question: str
    entry: str
    """The name of the function, or "" if only the tests name it."""
    solution: str
    """The benchmark's own solution."""
    suites: Mapping[str, Any]
    """The tests for each score: assertions, or inputs on which results are compared."""
    prelude: str = ""
    """Code to run before the program, such as the imports of the task."""
    seconds: float = 3
    """CPU seconds for a program with all its assertions (as in HumanEval's official script)."""
    comparison: Mapping[str, Any] | None = None
    """How results are compared, if the tests are inputs."""


def program_of(answer: str, entry: str = "") -> str:
    """Return the program in an answer: its longest fenced block, or all of it without a block.

    If the name of the function is known, blocks that define it are preferred.
    """
    blocks = [answer[block.start : block.stop] for block in code_blocks(answer)]
    defining = [block for block in blocks if entry and f"def {entry}" in block]
    return unfenced(max(defining or blocks, key=len, default=answer)).strip()


async def passes(
    tasks: Mapping[str, Task], sample: Sample, output: Mapping[str, Any]
) -> dict[str, float]:
    """Score whether the program in an answer passes each test suite of its task.

    A suite counts as passed only if all suites before it are passed too (evalplus: base, and base
    with plus).

    Raises:
        SandboxFailure: The sandbox failed, or the benchmark's own solution fails in it.
    """
    task = tasks[sample.get("task", sample["id"])]
    token = secrets.token_hex(16)
    job: dict[str, Any] = {
        "token": token,
        "program": program_of(str(output.get("answer") or ""), task.entry),
        "prelude": task.prelude,
        "entry": task.entry,
        "solution": task.solution,
        "suites": list(task.suites.values()),
        "seconds": task.seconds,
        **(task.comparison or {}),
    }
    seconds = _MOST_SECONDS if task.comparison else task.seconds + 2
    outcome = await run_program(_checker(), json.dumps(job), seconds=seconds, megabytes=_MEGABYTES)
    lines = outcome.stdout.splitlines()
    if token not in lines:
        reason = outcome.stderr.strip().rpartition("\n")[2] or f"it ended with {outcome.ended}"
        raise SandboxFailure(
            f"the tests of {task.id} cannot be run, as the benchmark's own solution fails in the "
            f"sandbox: {reason}"
        )
    passed = [f"{token} {number} 1" in lines for number in range(len(task.suites))]
    return {name: float(all(passed[: number + 1])) for number, name in enumerate(task.suites)}


@cache
def _checker() -> str:
    return (files("stepcraft_papers") / "_checker.py").read_text("utf-8")


def code_benchmark(
    name: str,
    description: str,
    read: Callable[[Path], list[Task]],
    *,
    source: str,
    licence: str,
    citation: str,
    release: Release,
) -> Benchmark:
    """Return a benchmark whose answers are programs."""

    def load(data: Path | None, limit: int | None) -> Questions:
        need_sandbox()
        file = data_file(name, source, release, data)
        tasks = {task.id: task for task in read(file)[:limit]}
        samples = [Sample(id=task.id, question=task.question) for task in tasks.values()]
        return Questions(samples, [partial(passes, tasks)], CODE_SETTINGS, version=digest(file))

    return Benchmark(name, description, load, source, licence, citation)


def task_records(file: Path, needed: tuple[str, ...], source: str) -> Iterator[dict[str, Any]]:
    """Yield the records in a file of JSON lines of any length; all have the needed fields.

    Raises:
        BadInput: The file cannot be read or is empty, or a record lacks one of the fields.
    """
    number = 0
    try:
        with open_regular(file) as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                fields = json.loads(line)
                missing = set(needed) - set(fields if isinstance(fields, dict) else ())
                if missing:
                    raise BadInput(
                        f"{file}:{number} is no task, as it has no {min(missing)!r}; get the file "
                        f"from {source}"
                    )
                yield fields
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}; get it from {source}") from error
    except json.JSONDecodeError as error:
        raise BadInput(
            f"{file}:{number} cannot be read: {error}; get the file from {source}"
        ) from error
    if not number:
        raise BadInput(f"{file} has no tasks; get the file from {source}")
