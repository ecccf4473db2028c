"""CHAMP: competition mathematics with solutions in steps (Mao et al. 2024; AAG §4.1).

Read are the official format, `v0.json` of the package champ-dataset (`problems` by identifier, each with text, category,
answer and the steps of its solution), whose concepts and hints are not shown, and the records of MATH (`problem`, `type`,
`solution`), whose sentences are the steps.
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from stepcraft.evals.benchmarks.benchmark import Benchmark
from stepcraft.evals.benchmarks.entries import Entry, entries, refuse, text_of, whole
from stepcraft.evals.benchmarks.procedures import SPLITS, Read, Splits
from stepcraft.evals.evaluate import known_scores
from stepcraft.evals.samples import Sample
from stepcraft.text.lists import read_steps
from stepcraft.text.sentences import sentences

_FRACTION = re.compile(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}")
_GOES_BEFORE = re.compile(r"[\w.\-]\Z|\d/\Z")
"""What a longer number, word or fraction has before a part of it."""
_GOES_ON = re.compile(r"\w|\.\d|/\d")
"""How a longer number, word or fraction goes on."""
_MARKUP = re.compile(r"[$,{}]|\\(?:left|right|text|boxed|[!,;()\[\]])")


def solution_scores(sample: Sample, output: Mapping[str, Any]) -> dict[str, float]:
    """How well the steps fit the gold steps, and whether the last step names the answer.

    The answer is looked for without markup and blanks, with fractions written as 1/2, and not within a longer number, word
    or fraction. The definition is ours: the papers have a model judge it.
    """
    told = str(output.get("answer") or "")
    steps = output.get("steps") or read_steps(told)
    scores = known_scores(
        Sample(id="", question="", steps=sample.get("steps", [])), {"answer": told, "steps": steps}
    )
    last = steps[-1] if steps else told
    return scores | {
        "right answer": float(any(_names(last, answer) for answer in sample.get("answers", ())))
    }


def _names(step: str, answer: str) -> bool:
    text, wanted = _plain(step), "".join(_plain(answer).split())
    places = [place for place, letter in enumerate(text) if not letter.isspace()]
    letters = "".join(text[place] for place in places)
    at = letters.find(wanted) if wanted else -1
    while at >= 0:
        start, stop = places[at], places[at + len(wanted) - 1] + 1
        if not _GOES_BEFORE.search(text[max(0, start - 2) : start]) and not _GOES_ON.match(
            text, stop
        ):
            return True
        at = letters.find(wanted, at + 1)
    return False


def _plain(text: str) -> str:
    return _MARKUP.sub("", _FRACTION.sub(r"\1/\2", text)).casefold().strip()


def _problems(file: Path) -> Iterator[Read]:
    value = whole(file) if file.suffix.lower() == ".json" else None
    problems: Any = value.get("problems") if isinstance(value, Mapping) else None
    if isinstance(problems, Mapping):
        for name, fields in problems.items():
            yield _champ(
                str(name), f"{file}, {name}", fields if isinstance(fields, Mapping) else {}
            )
        return
    yield from map(_math, entries(file, "uid", "id"))


def _champ(name: str, where: str, fields: Mapping[str, Any]) -> Read:
    given: Any = fields.get("solution")
    listed: Any = given.get("steps") if isinstance(given, Mapping) else None
    steps = [
        text_of(step, "_text", "_raw_text").replace("@@", "")
        for step in (listed if isinstance(listed, list) else ())
        if isinstance(step, Mapping)
    ]
    problem = text_of(fields, "_text", "_raw_text").replace("@@", "")
    answer = text_of(fields, "_answer", "_raw_answer").replace("@@", "")
    if not problem or not answer or not steps or not all(steps):
        refuse(where, "CHAMP", "text, answer or steps")
    area = text_of(fields, "category") or "mathematics"
    return Read(
        id=name, output=problem, input=area, steps=_with_answer(steps, answer), answer=answer
    )


def _math(one: Entry) -> Read:
    problem, solution = text_of(one.fields, "problem"), text_of(one.fields, "solution")
    answer = _boxed(solution)
    if not problem or not answer:
        refuse(one.where, "CHAMP", "problem, or no solution with a boxed answer")
    area = text_of(one.fields, "type") or "mathematics"
    steps = _with_answer(sentences(solution), answer)
    return Read(id=one.id, output=problem, input=area, steps=steps, answer=answer)


def _with_answer(steps: list[str], answer: str) -> list[str]:
    """The steps, and one for the answer where the last of them does not name it."""
    return steps if _names(steps[-1], answer) else [*steps, f"The answer is {answer}."]


def _boxed(solution: str) -> str:
    r"""What the last \boxed of a solution holds; "" where there is none."""
    inside = solution.rpartition("\\boxed{")[2] if "\\boxed{" in solution else ""
    depth = 1
    for place, letter in enumerate(inside):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if not depth:
            return inside[:place].strip()
    return ""


_SPLITS = Splits("CHAMP", _problems)

BENCHMARKS = tuple(
    Benchmark(
        f"champ-{split}",
        f"competition mathematics with solutions in steps, the {told}; the memory is the rest of the file",
        "MIT",
        "https://yujunmao1.github.io/CHAMP",
        read=partial(_SPLITS.samples, split),
        score=solution_scores,
        settings=_SPLITS.memory,
        citation="Mao et al., CHAMP: A Competition-level Dataset for Fine-Grained Analyses of LLMs' Mathematical Reasoning "
        "Capabilities, Findings of ACL 2024",
    )
    for split, told in SPLITS
)
