"""Tasks that are answered with a function in Python: the program in an answer, run in the sandbox with the task's tests."""

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput, SandboxFailure
from stepcraft.evals.benchmarks.benchmark import CodeScorer
from stepcraft.evals.evaluate import Scorer
from stepcraft.evals.samples import Sample
from stepcraft.evals.sandbox import Outcome, Sandbox
from stepcraft.files import open_regular
from stepcraft.text.clean import clean, unfenced
from stepcraft.text.markdown import code_blocks

_MOST_SECONDS = 180
"""The processor time of a program with the benchmark's own solution, on all inputs of a task."""
_MEGABYTES = 4096
"""The memory of a program (evalplus 0.3.1)."""


SETTINGS: Mapping[str, Any] = {
    "rat": {"finish": "code"},
    "rat_paper": {"finish": "code", "query": "draft", "max_retrievals": 5, "k": 1},
}
"""How RAT writes programs; in its paper the text so far is the query of five searches at most, each
of which finds one passage (§4)."""


@dataclass(frozen=True)
class Task:
    """A function to write, and how a program that has it is tested."""

    id: str
    question: str
    entry: str
    """The name of the function; "" where the tests alone know it."""
    solution: str
    """The benchmark's own program."""
    suites: Mapping[str, Any]
    """The names of the scores, each with its tests: a text of assertions, or inputs to compare results on."""
    prelude: str = ""
    """What is run before the program, such as the imports of the task."""
    seconds: float = 3
    """The processor time of a program with all its assertions (HumanEval, Chen et al. 2021, the official script)."""
    comparison: Mapping[str, Any] | None = None
    """How results are compared, where the tests are inputs."""


def program_of(answer: str, entry: str = "") -> str:
    """The program in an answer: the longest fenced block, among those that have the function; else all of it."""
    blocks = [answer[block.start : block.stop] for block in code_blocks(answer)]
    having = [block for block in blocks if f"def {entry}" in block]
    return unfenced(clean(max(having or blocks, key=len, default=answer))).strip()


async def passes(sandbox: Sandbox, task: Task, output: Mapping[str, Any]) -> dict[str, float]:
    """Whether the program in an answer passes the tests of a task, for each suite of them.

    A suite counts as passed where those before it are (evalplus: base, and base with plus).

    Raises:
        SandboxFailure: The sandbox failed, or the benchmark's own solution fails in it.
    """
    program = program_of(str(output.get("answer") or ""), task.entry)
    token = secrets.token_hex(16)
    job = {"token": token, "program": program, "prelude": task.prelude}
    if task.comparison is None:
        tests = "\n".join(task.suites.values())
        ran = await _checked(
            sandbox, {**job, "tests": tests, "seconds": task.seconds}, task.seconds + 2
        )
    else:
        inputs = {
            "suites": list(task.suites.values()),
            "entry": task.entry,
            "solution": task.solution,
        }
        ran = await _checked(sandbox, {**job, **inputs, **task.comparison}, _MOST_SECONDS)
    told = ran.stdout.splitlines()
    if token not in told:
        reason = ran.stderr.strip().rpartition("\n")[2] or f"it ended with {ran.ended}"
        raise SandboxFailure(
            f"the tests of {task.id} cannot be run, as the benchmark's own solution fails in the sandbox: {reason}"
        )
    passed = [f"{token} {number} 1" in told for number in range(len(task.suites))]
    return {name: float(all(passed[: number + 1])) for number, name in enumerate(task.suites)}


async def _checked(sandbox: Sandbox, job: Mapping[str, Any], seconds: float) -> Outcome:
    return await sandbox.arun(_checker(), json.dumps(job), seconds=seconds, megabytes=_MEGABYTES)


@cache
def _checker() -> str:
    return (files("stepcraft.evals.benchmarks") / "_checker.py").read_text("utf-8")


def samples_of(read: Callable[[Path], list[Task]]) -> Callable[[Path], list[Sample]]:
    """What makes samples of the tasks in a file."""
    return lambda file: [Sample(id=task.id, question=task.question) for task in read(file)]


def scorer_of(read: Callable[[Path], list[Task]]) -> CodeScorer:
    """What makes the scorer of the answers to the tasks in a file."""

    def made(sandbox: Sandbox, file: Path) -> Scorer:
        tasks = {task.id: task for task in read(file)}

        async def score(sample: Sample, output: Mapping[str, Any]) -> dict[str, float]:
            return await passes(sandbox, tasks[sample.get("task", sample["id"])], output)

        return score

    return made


def task_records(file: Path, needed: tuple[str, ...], source: str) -> list[dict[str, Any]]:
    """The records of a file of JSON lines that each have some fields. A record may be of any length.

    Raises:
        BadInput: The file cannot be read, or a record has not all of the fields.
    """
    found: list[dict[str, Any]] = []
    try:
        with open_regular(file) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    found.append(_record(line, f"{file}:{number}", needed, source))
    except OSError as error:
        raise BadInput(
            f"{file} cannot be read: {error.strerror}; get the file from {source}"
        ) from error
    if not found:
        raise BadInput(f"{file} has no tasks; get the file from {source}")
    return found


def _record(line: bytes, where: str, needed: tuple[str, ...], source: str) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{where} cannot be read: {error}; get the file from {source}") from error
    missing = [name for name in needed if not isinstance(fields, dict) or name not in fields]
    if missing:
        raise BadInput(
            f"{where} is no task, as it has no {missing[0]!r}; get the file from {source}"
        )
    known: dict[str, Any] = fields
    return known
