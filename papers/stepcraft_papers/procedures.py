"""RecipeNLG and CHAMP: procedures, the longest of which have to be written (AAG §4.1).

RecipeNLG (Bień et al. 2020) can be read in the official format, `full_dataset.csv` (`title`, and
`ingredients` and `directions` as JSON lists), or as procedures (`output`, `input`, `steps`). Only
the first 10,000 usable recipes are read; it is not known which 10,000 the paper used. CHAMP (Mao et
al. 2024) can be read in the official format, `v0.json` from the package champ-dataset, whose
concepts and hints are not shown, or as MATH records (`problem`, `type`, `solution`), with the
sentences of the solution as the steps.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.evals.benchmark import Benchmark
from stepcraft.evals.passages import cached
from stepcraft.evals.samples import Sample
from stepcraft.evals.scoring import Scorer, default_scores
from stepcraft.text.lists import read_steps
from stepcraft.text.sentences import sentences
from stepcraft_papers.entries import (
    Entry,
    entries,
    file_benchmark,
    mapping_of,
    objects_of,
    text_of,
    texts_of,
    whole,
)

_RECIPES = 10_000
_FRACTION = re.compile(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}")
_MARKUP = re.compile(r"[$,{}]|\\(?:left|right|text|boxed|[!,;()\[\]])")
_BEFORE, _BEHIND = r"(?<![\w.\-])(?<!\d/)", r"(?!\w|\.\d|/\d)"
"""Prevent an answer from matching inside a longer number, word or fraction."""
_Reader = Callable[[Path], Iterable[Sample]]


def _split(name: str, read: _Reader, file: Path) -> tuple[list[Sample], list[Sample], list[Sample]]:
    """Sort procedures by the total length of their steps and split them as the paper does.

    The longest fifth is the test set, the next longest tenth is the validation set, and the rest is
    the memory. The sizes are 56, 27 and 193 procedures for LCStep, 2,000, 1,000 and 7,000 for
    RecipeNLG, and 54, 27 and 189 for CHAMP.
    """
    samples = sorted(read(file), key=lambda sample: sum(map(len, sample.get("steps", []))))
    count = len(samples)
    if count < 10:
        raise BadInput(
            f"{file} has {count} procedures, and {name} is split into a memory, a validation and a "
            "test set; name a file with at least 10"
        )
    rest = count - round(count * 0.2)
    memory = rest - round(count * 0.1)
    return samples[:memory], samples[memory:rest], samples[rest:]


def _part(name: str, read: _Reader, part: int, file: Path) -> list[Sample]:
    return _split(name, read, file)[part]


def _memory(name: str, read: _Reader, file: Path) -> dict[str, Any]:
    """Return the setting that makes methods use the remaining procedures as their memory."""
    lines = (
        {
            "output": sample["question"],
            "input": sample.get("resources", ""),
            "steps": sample.get("steps", []),
        }
        for sample in _split(name, read, file)[0]
    )
    return {"memory": str(cached(f"{file.stem}-memory", lines))}


def _benchmarks(
    name: str,
    title: str,
    read: _Reader,
    *,
    score: Scorer = default_scores,
    source: str,
    licence: str,
    citation: str,
) -> Iterator[Benchmark]:
    for part, split, which in ((1, "val", "tenth of middle length"), (2, "test", "longest fifth")):
        yield file_benchmark(
            f"{name}-{split}",
            f"{title}, the {which}; the memory is the rest of the file",
            partial(_part, name, read, part),
            score=score,
            searched=partial(_memory, name, read),
            source=source,
            licence=licence,
            citation=citation,
        )


def _recipes(file: Path) -> Iterator[Sample]:
    return islice(_usable_recipes(file), _RECIPES)


def _usable_recipes(file: Path) -> Iterator[Sample]:
    """Yield the recipes that have ingredients and directions."""
    for entry in entries(file, "id"):
        fields = entry.fields
        dish = text_of(fields, "title", "output")
        ingredients = texts_of(fields.get("ingredients", fields.get("input")))
        steps = texts_of(fields.get("directions", fields.get("steps")))
        if not {"directions", "steps"} & fields.keys() or not {"title", "output"} & fields.keys():
            entry.refuse("RecipeNLG", "title or no directions")
        if dish and ingredients and steps:
            yield Sample(id=entry.id, question=dish, resources=", ".join(ingredients), steps=steps)


def solution_scores(sample: Sample, output: Mapping[str, Any]) -> dict[str, float]:
    """Score how well the steps fit the gold steps, and whether the last step names the answer.

    The answer is searched for without markup and whitespace, with fractions written as 1/2, and
    does not match inside a longer number, word or fraction. This definition is ours; the papers use
    a model as a judge.
    """
    answer = str(output.get("answer") or "")
    steps = output.get("steps") or read_steps(answer)
    gold = Sample(id="", question="", steps=sample.get("steps", []))
    last = steps[-1] if steps else answer
    right = any(_names(last, wanted) for wanted in sample.get("answers", ()))
    return default_scores(gold, {"steps": steps, "answer": answer}) | {"right answer": float(right)}


def _names(step: str, answer: str) -> bool:
    letters = "".join(_plain(answer).split())
    pattern = _BEFORE + r"\s*".join(map(re.escape, letters)) + _BEHIND
    return bool(letters) and re.search(pattern, _plain(step)) is not None


def _plain(text: str) -> str:
    return _MARKUP.sub("", _FRACTION.sub(r"\1/\2", text)).casefold().strip()


def _problems(file: Path) -> Iterator[Sample]:
    problems = mapping_of(whole(file), "problems")
    if not problems:
        yield from map(_math, entries(file, "uid", "id"))
    for name, fields in problems.items():
        yield _champ(Entry(mapping_of(fields), f"{file}, {name}", name))


def _champ(entry: Entry) -> Sample:
    steps = [
        _raw(step, "_text", "_raw_text")
        for step in objects_of(mapping_of(entry.fields, "solution").get("steps"))
    ]
    problem = _raw(entry.fields, "_text", "_raw_text")
    answer = _raw(entry.fields, "_answer", "_raw_answer")
    if not problem or not answer or not steps or not all(steps):
        entry.refuse("CHAMP", "text, answer or steps")
    return _solved(entry, problem, text_of(entry.fields, "category"), steps, answer)


def _raw(fields: Mapping[str, Any], *names: str) -> str:
    return text_of(fields, *names).replace("@@", "")


def _math(entry: Entry) -> Sample:
    problem, solution = text_of(entry.fields, "problem"), text_of(entry.fields, "solution")
    answer = _boxed(solution)
    if not problem or not answer:
        entry.refuse("CHAMP", "problem, or no solution with a boxed answer")
    return _solved(entry, problem, text_of(entry.fields, "type"), sentences(solution), answer)


def _solved(entry: Entry, problem: str, area: str, steps: list[str], answer: str) -> Sample:
    return Sample(
        id=entry.id,
        question=problem,
        resources=area or "mathematics",
        steps=steps if _names(steps[-1], answer) else [*steps, f"The answer is {answer}."],
        answers=[answer],
    )


def _boxed(solution: str) -> str:
    r"""Return the content of the last "boxed" command in a solution, or "" if there is none."""
    inside = solution.rpartition("\\boxed{")[2] if "\\boxed{" in solution else ""
    depth = 1
    for place, letter in enumerate(inside):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if not depth:
            return inside[:place].strip()
    return ""


RECIPENLG_VAL, RECIPENLG_TEST = _benchmarks(
    "recipenlg",
    "recipes",
    _recipes,
    source="https://recipenlg.cs.put.poznan.pl",
    licence="for research and teaching, not commercial",
    citation="Bień et al., RecipeNLG: A Cooking Recipes Dataset for Semi-Structured Text "
    "Generation, INLG 2020",
)
CHAMP_VAL, CHAMP_TEST = _benchmarks(
    "champ",
    "competition mathematics with solutions in steps",
    _problems,
    score=solution_scores,
    source="https://yujunmao1.github.io/CHAMP",
    licence="MIT",
    citation="Mao et al., CHAMP: A Competition-level Dataset for Fine-Grained Analyses of LLMs' "
    "Mathematical Reasoning Capabilities, Findings of ACL 2024",
)
