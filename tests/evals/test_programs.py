"""Programs as answers: the rules by which evalplus compares results, limits, what is no result, and pass@k."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from stepcraft.evals.repeats import task_scores

from stepcraft import BadInput, SandboxFailure
from stepcraft.evals.benchmarks import humaneval, mbpp
from stepcraft.evals.benchmarks.programs import Task, passes, program_of
from stepcraft.evals.directory import Outcome
from stepcraft.evals.evaluate import evaluate
from stepcraft.evals.methods import Method
from stepcraft.evals.reports.markdown import markdown
from stepcraft.evals.samples import Sample, repeated
from stepcraft.evals.sandbox import Sandbox
from stepcraft.evals.summary import summarise
from tests.scripted import ScriptedModel


def compared(
    solution: str,
    base: list[Any],
    plus: list[Any] | None = None,
    *,
    entry: str = "f",
    **comparison: Any,
) -> Task:
    """A task whose results are compared with those of a solution."""
    return Task(
        id="1",
        question="?",
        entry=entry,
        solution=solution,
        suites={"pass@1, base": base, "pass@1, plus": plus or []},
        comparison={"atol": 0, "shape": "", **comparison},
    )


def scores(sandbox: Sandbox, task: Task, answer: str) -> list[float]:
    return list(asyncio.run(passes(sandbox, task, {"answer": answer})).values())


def function(body: str, name: str = "f") -> str:
    return f"def {name}(*a): {body}"


@pytest.mark.parametrize(
    ("task", "answer", "right"),
    [
        (compared(function("return a[0] / 3"), [[1]]), function("return a[0] / 3 + 1e-8"), True),
        (compared(function("return a[0] / 3"), [[1]]), function("return a[0] / 3 + 1e-5"), False),
        (compared(function("return 5.0"), [[1]]), function("return 5"), True),
        (compared(function("return 5.5"), [[1]], atol=1), function("return 6"), False),
        (
            compared(function("return [0.1, 0.2]"), [[1]]),
            function("return [0.1, 0.2 + 1e-9]"),
            True,
        ),
        (
            compared(function("return [0.1, 0.2]"), [[1]]),
            function("return (0.1, 0.2 + 1e-9)"),
            False,
        ),
        (compared(function("return float('inf')"), [[1]]), function("return 1.0"), False),
        (compared(function("return float('nan')"), [[1]]), function("return float('nan')"), False),
        (compared(function("return (1, 2)"), [[1]]), function("return (2, 1)"), False),
        # The first result makes the suite one of floats.
        (
            compared(function("return a[0]"), [[0.5], [10**9]]),
            function("return a[0] + (a[0] > 1)"),
            True,
        ),
        (compared(function("return a[0]"), [[10**9]]), function("return a[0] + 1"), False),
        (
            compared(function("return (1, 2)", "Diff"), [[1]], entry="Diff"),
            function("return [2, 1]", "Diff"),
            True,
        ),
        (
            compared(function("return 1", "check_str"), [[1]], entry="check_str"),
            function("return 'yes'", "check_str"),
            True,
        ),
        (
            compared("def find_zero(xs): return 0", [[[-6, 2]]], entry="find_zero", atol=1e-4),
            "def find_zero(xs): return 3.00001",
            True,
        ),
        (
            compared("def find_zero(xs): return 0", [[[-6, 2]]], entry="find_zero", atol=1e-4),
            "def find_zero(xs): return 3.01",
            False,
        ),
        (
            compared(function("return a[0].pop()"), [[[1, 2]], [[3]]]),
            function("a[0].clear(); return 2"),
            False,
        ),
        (
            compared(function("return type(a[0])"), [[[1]]], shape="tuples"),
            function("return tuple"),
            True,
        ),
        (
            compared(function("return a[0]"), [[[[1, 1], []]]], shape="sets first"),
            function("return [{1}, {}]"),
            True,
        ),
    ],
)
def test_results_are_compared_as_evalplus_does(
    sandbox: Sandbox, task: Task, answer: str, right: bool
) -> None:
    assert scores(sandbox, task, answer) == [right, right]


def test_a_program_can_pass_the_base_alone(sandbox: Sandbox) -> None:
    task = compared(function("return a[0] + 1"), [[1], [2]], [[3]])
    assert scores(sandbox, task, function("return {1: 2, 2: 3}[a[0]]")) == [1.0, 0.0]
    assert scores(sandbox, task, function("return 4")) == [0.0, 0.0]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I cannot.",
        "def g(): pass",
        "def f(*a): raise SystemExit(0)",
        "import os\ndef f(*a): os._exit(0)",
        "def f(*a):\n    print('1 0 1')\n    return 3",
        "def f(*a):\n    while True:\n        try:\n            pass\n        except Exception:\n            pass",
        "def f(*a): return 10 ** 10 ** 9",
        "def f(*a): return [0] * 10 ** 10",
        "if __name__ == '__main__':\n    def f(*a): return 2",
    ],
)
def test_what_is_no_right_program(sandbox: Sandbox, answer: str) -> None:
    assert scores(sandbox, compared(function("return 2"), [[1]], [[2]]), answer) == [0.0, 0.0]


def test_the_time_that_a_call_has_follows_that_of_the_solution(sandbox: Sandbox) -> None:
    slow = "def f(x):\n    for _ in range({}): pass\n    return x"
    task = compared(slow.format(10_000_000), [[1]])
    assert scores(sandbox, task, slow.format(20_000_000)) == [1.0, 1.0]


def test_a_solution_that_fails_is_no_wrong_answer(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxFailure, match=r"the tests of 1 cannot be run, .*: IndexError"):
        scores(sandbox, compared(function("return a[1]"), [[1]]), function("return 1"))


def test_assertions(sandbox: Sandbox) -> None:
    prelude = "import math\ndef half(x): return x / 2\ndef f(x):\n    '''Twice.'''\n"
    tests = "def check(f):\n    assert f(2) == half(8)\ncheck(f)"
    task = Task("1", "?", "f", "", {"pass@1": tests}, prelude=prelude)
    assert scores(sandbox, task, "```python\ndef f(x): return math.floor(x * 2)\n```") == [1.0]
    assert scores(sandbox, task, "```python\ndef f(x): return x\n```") == [0.0]


def test_the_program_of_an_answer() -> None:
    answer = "Call it:\n```\nprint(f(1), 'and', f(2), 'and', f(3))\n```\nIt is\n```python\ndef f(x): return x\n```"
    assert program_of(answer, "f") == "def f(x): return x"
    assert program_of("def f(x): return x") == "def f(x): return x"


@pytest.mark.parametrize(
    ("read", "line", "problem"),
    [
        (
            humaneval.tasks,
            '{"task_id": "HumanEval/0"}',
            ":1 is no task, as it has no 'prompt'; get the file from https",
        ),
        (humaneval.plus_tasks, "[]", ":1 is no task, as it has no 'task_id'"),
        (mbpp.tasks, "{", ":1 cannot be read"),
        (mbpp.plus_tasks, "", "has no tasks"),
    ],
)
def test_files_that_are_none_of_the_benchmark(
    tmp_path: Path, read: Any, line: str, problem: str
) -> None:
    (tmp_path / "tasks.jsonl").write_text(line)
    with pytest.raises(BadInput, match=problem):
        read(tmp_path / "tasks.jsonl")


def outcome(task: str, number: int, right: float, error: str = "") -> Outcome:
    sample = Sample(id=f"{task}#{number}", question="?", task=task)
    named = {"pass@1, base": right, "length": 4 * right}
    return Outcome(
        method="m", id=sample["id"], sample=sample, output={}, error=error, scores=named, usage={}, seconds=0, warnings=[]
    )  # fmt: skip


def test_pass_at_k_of_several_answers() -> None:
    made = [outcome("a", number, float(number <= 2)) for number in range(1, 7)]
    made += [outcome("b", number, 0.0) for number in range(1, 7)]
    found = task_scores(made)
    assert list(found) == ["pass@1, base", "pass@5, base", "pass@6, base", "length"]
    assert found["pass@1, base"] == {"a": pytest.approx(2 / 6), "b": 0.0}
    assert found["pass@5, base"] == {
        "a": 1.0,
        "b": 0.0,
    }  # 4 wrong ones of 6 leave none of 5 without a right one
    assert found["length"]["a"] == pytest.approx(8 / 6)
    assert list(task_scores([*made, outcome("c", 1, 1.0), outcome("c", 2, 1.0, "failed")])) == [
        "pass@1, base",
        "length",
    ]


def test_several_answers_of_a_run(tmp_path: Path) -> None:
    """Two of three answers to the first question are right, and one of three to the second."""
    samples = repeated(
        [Sample(id="HumanEval/0", question="One?"), Sample(id="HumanEval/1", question="Two?")], 3
    )
    assert [sample["id"] for sample in samples[:3]] == [
        "HumanEval/0#1",
        "HumanEval/1#1",
        "HumanEval/0#2",
    ]
    replies = iter(["yes", "no", "yes", "no", "no", "yes"])
    model = ScriptedModel(lambda *_: next(replies))
    methods = [Method("direct", "direct", options={"model": model})]

    def right(_sample: Sample, output: Any) -> dict[str, float]:
        return {"pass@1": float(output["answer"] == "yes")}

    asyncio.run(evaluate(methods, samples, tmp_path, scorers=[right], concurrency=1))
    found = summarise(tmp_path).methods[0]
    assert {name: score.mean for name, score in found.scores.items()} == {
        "pass@1": pytest.approx(0.5),
        "pass@3": 1.0,
    }
    assert "| method | pass@1 | pass@3 |" in markdown(summarise(tmp_path))
    kept = [
        json.loads(line)["sample"]
        for line in (tmp_path / "samples.jsonl").read_text("utf-8").splitlines()
    ]
    assert [(sample["task"], sample["seed"]) for sample in kept][:3] == [
        ("HumanEval/0", 1),
        ("HumanEval/1", 1),
        ("HumanEval/0", 2),
    ]
