"""HumanEval and MBPP, also with the additional inputs of evalplus (RAT §4, code generation)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepcraft_papers.programs import Task, code_benchmark, task_records
from stepcraft_papers.source import Release

_COMPLETE = """\
Complete this function in Python. Answer with one fenced block that holds the whole function, and \
with it all imports and other functions that it needs.

```python
{}
```"""
_WRITE = """\
{} Answer with one fenced block of Python that holds the whole function, and with it all imports \
and other functions that it needs. It must hold that:

```python
{}
```"""
_HUMANEVAL = "https://github.com/openai/human-eval"
_HUMANEVAL_PLUS = "https://github.com/evalplus/humanevalplus_release"
_MBPP = "https://github.com/google-research/google-research/tree/master/mbpp"
_MBPP_PLUS = "https://github.com/evalplus/mbppplus_release"
_FUNCTION = ("task_id", "prompt", "entry_point", "canonical_solution")
_INPUTS = ("base_input", "plus_input", "atol")
_MBPP_SECONDS = 10
"""CPU seconds for a program with its assertions; those of task 123 take four seconds."""
_SHAPES: Mapping[str, tuple[int, ...]] = {
    "tuples": (
        *(2, 116, 132, 143, 222, 261, 273, 394, 399, 421, 424),
        *(429, 470, 560, 579, 596, 616, 630, 726, 740, 744, 809),
    ),
    "lists of tuples": (63, 64, 70, 94, 120, 237, 272, 299, 400, 409, 417, 438, 473, 614, 780),
    "list of tuples first": (75, 413, 444, 753),
    "tuple second": (106, 750),
    "sets first": (115,),
    "float and complex": (124,),
    "tuple first": (250, 307, 405, 446, 617, 720, 763, 808),
    "complex": (252,),
    "tuples of tuples": (259, 278, 401, 445),
    "all tuples": (580, 615, 791),
    "dictionary of tuples first": (722,),
}
"""The MBPP+ tasks with arguments of types that JSON lacks (evalplus 0.3.1)."""
_SHAPE_OF = {number: shape for shape, numbers in _SHAPES.items() for number in numbers}


def humaneval_tasks(file: Path) -> list[Task]:
    """Return the tasks of HumanEval.

    Raises:
        BadInput: The file cannot be read or is not the HumanEval file.
    """
    return [
        _complete(task, {"pass@1": f"{task['test']}\ncheck({task['entry_point']})"}, None)
        for task in task_records(file, (*_FUNCTION, "test"), _HUMANEVAL)
    ]


def humaneval_plus_tasks(file: Path) -> list[Task]:
    """Return the HumanEval+ tasks, whose results are compared with those of a solution.

    Raises:
        BadInput: The file cannot be read or is not the HumanEval+ file.
    """
    return [
        _complete(task, _suites(task), {"atol": task["atol"], "shape": ""})
        for task in task_records(file, (*_FUNCTION, *_INPUTS), _HUMANEVAL_PLUS)
    ]


def mbpp_tasks(file: Path) -> list[Task]:
    """Return tasks 11 to 175 of MBPP, on which RAT was measured (RAT §4).

    Raises:
        BadInput: The file cannot be read or is not the MBPP file.
    """
    needed = ("task_id", "text", "code", "test_setup_code", "test_list")
    return [
        Task(
            id=str(task["task_id"]),
            question=_WRITE.format(task["text"].strip(), "\n".join(task["test_list"])),
            entry="",
            solution=task["code"],
            prelude=task["test_setup_code"],
            suites={"pass@1": "\n".join(task["test_list"])},
            seconds=_MBPP_SECONDS,
        )
        for task in task_records(file, needed, _MBPP)
        if 11 <= task["task_id"] <= 175
    ]


def mbpp_plus_tasks(file: Path) -> list[Task]:
    """Return the first 164 tasks of MBPP+, on which RAT was measured (RAT §4).

    Raises:
        BadInput: The file cannot be read or is not the MBPP+ file.
    """
    needed = (*_FUNCTION, *_INPUTS, "assertion")
    return [_mbpp_plus(task) for task in task_records(file, needed, _MBPP_PLUS)][:164]


def _complete(
    task: dict[str, Any], suites: dict[str, Any], comparison: dict[str, Any] | None
) -> Task:
    return Task(
        id=str(task["task_id"]),
        question=_COMPLETE.format(task["prompt"].strip("\n")),
        entry=task["entry_point"],
        solution=task["prompt"] + task["canonical_solution"],
        # The imports and helpers that stand before the signature, and the function without a body.
        prelude=task["prompt"],
        suites=suites,
        comparison=comparison,
    )


def _mbpp_plus(task: dict[str, Any]) -> Task:
    lines = task["prompt"].strip().strip("\"'").splitlines()
    text = [line for line in lines if line.strip() and not line.startswith("assert ")]
    shown = [line for line in task["assertion"].splitlines() if line.startswith("assert ")]
    number = int(task["task_id"].rpartition("/")[2])
    return Task(
        id=task["task_id"],
        question=_WRITE.format(" ".join(text), "\n".join(shown[:1])),
        entry=task["entry_point"],
        solution=task["canonical_solution"],
        suites=_suites(task),
        comparison={"atol": task["atol"], "shape": _SHAPE_OF.get(number, "")},
    )


def _suites(task: dict[str, Any]) -> dict[str, Any]:
    return {"pass@1, base": task["base_input"], "pass@1, plus": task["plus_input"]}


_EVALPLUS = (
    "Liu et al., Is Your Code Generated by ChatGPT Really Correct?, NeurIPS 2023, arXiv 2305.01210"
)
HUMANEVAL = code_benchmark(
    "humaneval",
    "164 functions in Python by signature and docstring, run with their tests: pass@1",
    humaneval_tasks,
    source=_HUMANEVAL,
    licence="MIT",
    citation="Chen et al., Evaluating Large Language Models Trained on Code, arXiv 2107.03374",
    release=Release(
        "https://raw.githubusercontent.com/openai/human-eval/"
        "6d43fb980f9fee3c892a914eda09951f772ad10d/data/HumanEval.jsonl.gz",
        "b796127e635a67f93fb35c04f4cb03cf06f38c8072ee7cee8833d7bee06979ef",
    ),
)
HUMANEVAL_PLUS = code_benchmark(
    "humaneval+",
    "the same with many more inputs, compared with a right solution: pass@1, base and plus",
    humaneval_plus_tasks,
    source=_HUMANEVAL_PLUS,
    licence="Apache-2.0",
    citation=_EVALPLUS,
    release=Release(
        "https://github.com/evalplus/humanevalplus_release/releases/download/v0.1.10/"
        "HumanEvalPlus.jsonl.gz"
    ),
)
MBPP = code_benchmark(
    "mbpp",
    "165 short functions in Python (tasks 11 to 175), run with their tests: pass@1",
    mbpp_tasks,
    source=_MBPP,
    licence="CC BY 4.0",
    citation="Austin et al., Program Synthesis with Large Language Models, 2021, arXiv 2108.07732",
    release=Release(
        "https://raw.githubusercontent.com/google-research/google-research/"
        "2251e8c67a7fe7d6348714967ee101080b28e956/mbpp/mbpp.jsonl"
    ),
)
MBPP_PLUS = code_benchmark(
    "mbpp+",
    "164 of them with many more inputs, compared with a right solution: pass@1, base and plus",
    mbpp_plus_tasks,
    source=_MBPP_PLUS,
    licence="Apache-2.0",
    citation=_EVALPLUS,
    release=Release(
        "https://github.com/evalplus/mbppplus_release/releases/download/v0.2.0/MbppPlus.jsonl.gz"
    ),
)
