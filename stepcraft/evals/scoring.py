"""Compute the scores of an output, as far as its sample has reference data for them."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic import FiniteFloat, TypeAdapter

from stepcraft.evals.samples import RIGHT, Gold, Sample
from stepcraft.evals.scores import contains, exact_match, f1, plain_forms, rouge_lsum, steps_f1
from stepcraft.text.citations import with_prompt_marks, without_marks
from stepcraft.text.lists import read_steps

Scores = Mapping[str, float]
_LIST = re.compile(r"\[\d+[,\u2013-]")
"""A list in a right answer, such as [1, 2], from which citations cannot be told apart."""
Scorer = Callable[[Sample, Mapping[str, Any]], Scores | Awaitable[Scores]]
"""Returns the scores of an output by name, or none if the sample has no reference data for them."""

REFERENCE: Mapping[str, Sequence[str]] = {
    "exact match": ("answers",),
    "F1": ("answers",),
    "occurs": ("answers",),
    "contains": ("contains",),
    "steps": ("steps",),
    "ROUGE-Lsum": ("long_answers",),
    "gold passages": ("gold",),
    "gold sentences": ("gold",),
    "facts covered": ("facts",),
    "facts not contradicted": ("facts",),
    "rubric": ("rubric",),
    "reference": RIGHT,
    "support": (),
    "citation recall": (),
}
"""The fields of a sample that each score depends on; any other score may depend on all."""

_FINITE = TypeAdapter(dict[str, FiniteFloat])


async def scores_of(
    scorers: Iterable[Scorer], sample: Sample, output: Mapping[str, Any]
) -> dict[str, float]:
    """Return the scores of an output from all scorers.

    Raises:
        ValidationError: A score is not a finite number.
        Exception: Any error raised by a scorer.
    """
    scores: dict[str, float] = {}
    for scorer in scorers:
        result = scorer(sample, output)
        scores |= await result if isinstance(result, Awaitable) else result
    return _FINITE.validate_python(scores)


def default_scores(sample: Sample, output: Mapping[str, Any]) -> dict[str, float]:
    """Return every score for which the sample has reference data.

    For `answers`: exact match, F1, and whether an answer occurs in the output (the signs and
    decimal points of numbers count; other punctuation stands for a space or nothing). For
    `contains`: the share of the items that occur. For `steps`: the F1 of aligned steps. For
    `long_answers`: ROUGE-Lsum with the best match. For `gold`: the recall of gold passages and gold
    sentences, if the output has `evidence`. Marks that cite the evidence are ignored.
    """
    answer = str(output.get("answer") or "")
    evidence = output.get("evidence")
    if evidence and not _LIST.search(str(sample)):
        marked = with_prompt_marks(answer, len(evidence), unless_in=str(sample))
        answer = without_marks(marked, plain=False) or answer
    scores: dict[str, float] = {}
    if answers := sample.get("answers"):
        forms = [(gold, form) for gold in answers for form in plain_forms(gold)]
        scores |= {
            "exact match": max(exact_match(answer, [gold], form) for gold, form in forms),
            "F1": max(f1(answer, [gold], form) for gold, form in forms),
            "occurs": contains(answer, [answers]),
        }
    if parts := sample.get("contains"):
        scores["contains"] = contains(answer, parts)
    if steps := sample.get("steps"):
        scores["steps"] = steps_f1(output.get("steps") or read_steps(answer), steps)
    if long_answers := sample.get("long_answers"):
        scores["ROUGE-Lsum"] = max(rouge_lsum(answer, gold) for gold in long_answers)
    if evidence is not None:
        scores |= gold_scores(sample.get("gold", ()), evidence)
    return scores


def gold_scores(gold: Sequence[Gold], evidence: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return the recall of gold passages and gold sentences in an output's evidence.

    A gold passage is recalled if the evidence has a passage with the same title or, if the gold
    passage has no title, a passage that contains one of its sentences. A gold sentence is recalled
    if such a passage contains it, ignoring differences in whitespace.
    """
    passages = [
        (_folded(passage.get("title")).casefold(), _folded(passage.get("text")))
        for passage in evidence
    ]
    recalled, sentences = list[bool](), list[bool]()
    for wanted in gold:
        title = _folded(wanted["title"]).casefold()
        texts = [text for name, text in passages if not title or name == title]
        hits = [any(_folded(each) in text for text in texts) for each in wanted["sentences"]]
        recalled.append(bool(texts) if title else any(hits))
        sentences += hits
    scores = {"gold passages": recalled, "gold sentences": sentences}
    return {name: sum(hits) / len(hits) for name, hits in scores.items() if hits}


def _folded(text: object) -> str:
    return " ".join(str(text or "").split())
