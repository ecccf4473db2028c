"""ASQA: ambiguous questions, answered at length for each of their readings (Stelmakh et al. 2022; RPG §4).

Read are the official format, `ASQA.json` (its split `dev`: `ambiguous_question`, `qa_pairs` with `short_answers`, `annotations` with
`long_answer`), its rows on the Hugging Face hub, and ALCE's, which have `question` and retrieved passages (`docs`): these
are pooled as the corpus.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stepcraft.evals.benchmarks.benchmark import Benchmark
from stepcraft.evals.benchmarks.entries import (
    Entry,
    checked,
    entries,
    refuse,
    text_of,
    texts_of,
    whole,
)
from stepcraft.evals.gold import retrieval_scores
from stepcraft.evals.samples import Sample
from stepcraft.evals.scores import contains, need_rouge, rouge_lsum


def long_answer_scores(sample: Sample, output: Mapping[str, Any]) -> dict[str, float]:
    """STR-EM, the share of the readings of which a short answer occurs, and ROUGE-Lsum against the best long answer.

    Both as in ASQA's and ALCE's official scripts.
    """
    answer = str(output.get("answer") or "")
    scores: dict[str, float] = {}
    if readings := sample.get("contains"):
        scores["STR-EM"] = contains(answer, readings)
    if golds := sample.get("long_answers"):
        scores["ROUGE-Lsum"] = max(rouge_lsum(answer, gold) for gold in golds)
    return scores | retrieval_scores(sample.get("gold", ()), output)


def _questions(file: Path) -> list[Sample]:
    need_rouge()
    samples: list[Sample] = []
    for one in _rows(file):
        question = text_of(one.fields, "ambiguous_question", "question")
        readings = [
            texts_of(pair.get("short_answers")) for pair in _objects(one.fields.get("qa_pairs"))
        ]
        told = [text_of(given, "long_answer") for given in _objects(one.fields.get("annotations"))]
        if not question or not any(readings) or not any(told):
            refuse(
                one.where,
                "ASQA",
                "question, no short_answers in qa_pairs, or no long_answer in annotations",
            )
        sample = Sample(id=one.id, question=question)
        sample["contains"], sample["long_answers"] = (
            [*filter(None, readings)],
            [*filter(None, told)],
        )
        samples.append(sample)
    return checked(samples, file, "ASQA")


def _rows(file: Path) -> Iterator[Entry]:
    value = whole(file) if file.suffix.lower() == ".json" else None
    dev = value.get("dev") if isinstance(value, Mapping) else None
    if not isinstance(dev, Mapping):
        yield from entries(file, "sample_id", "id")
        return
    for name, fields in dev.items():
        yield Entry(fields if isinstance(fields, Mapping) else {}, f"{file}, {name}", str(name))


def _objects(value: object) -> Sequence[Mapping[str, Any]]:
    listed: Iterable[object] = value if isinstance(value, list) else ()
    return [one for one in listed if isinstance(one, Mapping)]


BENCHMARKS = (
    Benchmark(
        "asqa",
        "ambiguous questions with long answers: short answers of each reading (STR-EM), ROUGE-Lsum",
        "Apache 2.0",
        "https://github.com/google-research/language/tree/master/language/asqa",
        read=_questions,
        score=long_answer_scores,
        fields={"kind": "long"},
        citation="Stelmakh et al., ASQA: Factoid Questions Meet Long-Form Answers, EMNLP 2022",
    ),
)
