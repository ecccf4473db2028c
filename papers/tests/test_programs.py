"""Programs as answers: evalplus' rules of comparison, limits, and what is no result."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepcraft.errors import BadInput
from stepcraft_papers import python_tasks
from stepcraft_papers.programs import Task, passes, program_of
from stepcraft_papers.sandbox import SandboxFailure

pytestmark = pytest.mark.usefixtures("sandbox")


def compared(
    solution: str, base: list[Any], plus: list[Any] | None = None, entry: str = "f", **rules: Any
) -> Task:
    """A task whose results are compared with those of a solution."""
    suites = {"pass@1, base": base, "pass@1, plus": plus or []}
    rules = {"atol": 0, "shape": "", **rules}
    return Task("1", "?", entry, solution, suites, comparison=rules)


def scores(task: Task, answer: str) -> list[float]:
    sample: Any = {"id": "1#2", "task": "1", "question": "?"}
    return list(asyncio.run(passes({"1": task}, sample, {"answer": answer})).values())


def function(body: str, name: str = "f") -> str:
    return f"def {name}(*a): {body}"


def returns(value: str, name: str = "f") -> str:
    return function(f"return {value}", name)


@pytest.mark.parametrize(
    ("solution", "first", "answer", "right", "rules"),
    [
        ("a[0] / 3", 1, "a[0] / 3 + 1e-8", True, {}),
        ("a[0] / 3", 1, "a[0] / 3 + 1e-5", False, {}),
        ("5.5", 1, "6", False, {"atol": 1}),
        ("[0.1, 0.2]", 1, "[0.1, 0.2 + 1e-9]", True, {}),
        ("[0.1, 0.2]", 1, "(0.1, 0.2 + 1e-9)", False, {}),
        ("float('nan')", 1, "float('nan')", False, {}),
        ("a[0]", 10**9, "a[0] + 1", False, {}),
        ("(1, 2)", 1, "[2, 1]", True, {"entry": "Diff"}),
        ("1", 1, "'yes'", True, {"entry": "check_str"}),
        ("0", [-6, 2], "3.00001", True, {"entry": "find_zero", "atol": 1e-4}),
        ("0", [-6, 2], "3.01", False, {"entry": "find_zero", "atol": 1e-4}),
        ("type(a[0])", [1], "tuple", True, {"shape": "tuples"}),
        ("a[0]", [[1, 1], []], "[{1}, {}]", True, {"shape": "sets first"}),
    ],
)
def test_results_are_compared_as_evalplus_does(
    solution: str, first: object, answer: str, right: bool, rules: dict[str, Any]
) -> None:
    name = rules.get("entry", "f")
    task = compared(returns(solution, name), [[first]], **rules)
    assert scores(task, returns(answer, name)) == [right, right]


@pytest.mark.parametrize(
    ("task", "answer", "right"),
    [
        # The first result makes the suite one of floats.
        (compared(returns("a[0]"), [[0.5], [10**9]]), returns("a[0] + (a[0] > 1)"), True),
        # What a call does to its arguments is not seen by the next.
        (
            compared(returns("a[0].pop()"), [[[1, 2]], [[3]]]),
            "def f(a): a.clear(); return 2",
            False,
        ),
        (
            compared(returns("a"), [[[[1, [2]]], 3]], shape="list of tuples first"),
            returns("([(1, [2])], 3)"),
            True,
        ),
    ],
)
def test_suites_of_several_calls(task: Task, answer: str, right: bool) -> None:
    assert scores(task, answer) == [right, right]


def test_a_program_can_pass_the_base_alone() -> None:
    task = compared(returns("a[0] + 1"), [[1], [2]], [[3]])
    assert scores(task, returns("{1: 2, 2: 3}[a[0]]")) == [1.0, 0.0]
    assert scores(task, returns("4")) == [0.0, 0.0]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "def f(*a): raise SystemExit(0)",
        "import os\ndef f(*a): os._exit(0)",
        "def f(*a):\n    print('1 0 1')\n    return 3",
        "def f(*a):\n    while True:\n        try: pass\n        except Exception: pass",
        "def f(*a): return 10 ** 10 ** 9",
        "def f(*a): return [0] * 10 ** 10",
        "if __name__ == '__main__':\n    def f(*a): return 2",
    ],
)
def test_what_is_no_right_program(answer: str) -> None:
    assert scores(compared(returns("2"), [[1]], [[2]]), answer) == [0.0, 0.0]


def test_the_time_that_a_call_has_follows_that_of_the_solution() -> None:
    slow = "def f(x):\n    for _ in range({}): pass\n    return x"
    task = compared(slow.format(10_000_000), [[1]])
    assert scores(task, slow.format(20_000_000)) == [1.0, 1.0]


def test_a_solution_that_fails_is_no_wrong_answer() -> None:
    with pytest.raises(SandboxFailure, match=r"the tests of 1 cannot be run, .*: IndexError"):
        scores(compared(returns("a[1]"), [[1]]), returns("1"))


def test_assertions() -> None:
    prelude = "import math\ndef half(x): return x / 2\ndef f(x):\n    '''Twice.'''\n"
    tests = "def check(f):\n    assert f(2) == half(8)\ncheck(f)"
    task = Task("1", "?", "f", "", {"pass@1": tests}, prelude=prelude)
    assert scores(task, "```python\ndef f(x): return math.floor(x * 2)\n```") == [1.0]
    assert scores(task, "```python\ndef f(x): return x\n```") == [0.0]


def test_the_program_of_an_answer() -> None:
    call, helper = "print(f(1), 'and', f(2), 'and', f(3))", "def f(x): return x"
    answer = f"Call it:\n```\n{call}\n```\nIt is\n```python\n{helper}\n```"
    assert program_of(answer, "f") == helper
    assert program_of(answer) == call, "without a name the longest block is the program"
    assert program_of(helper) == helper


@pytest.mark.parametrize(
    ("read", "line", "problem"),
    [
        (python_tasks.humaneval_tasks, '{"task_id": "HumanEval/0"}', ":1 is no task, as it has no"),
        (python_tasks.humaneval_plus_tasks, "[]", ":1 is no task, as it has no 'atol'"),
        (python_tasks.mbpp_plus_tasks, "", "has no tasks; get the file from https"),
    ],
)
def test_files_that_are_none_of_the_benchmark(
    tmp_path: Path, read: Callable[[Path], object], line: str, problem: str
) -> None:
    (tmp_path / "tasks.jsonl").write_text(line)
    with pytest.raises(BadInput, match=problem):
        read(tmp_path / "tasks.jsonl")
