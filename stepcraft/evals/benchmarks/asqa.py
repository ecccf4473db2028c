"""ASQA: ambiguous questions, answered at length for each of their readings (Stelmakh et al. 2022; RPG §4).

Read are the official format, `ASQA.json` (its split `dev`: `ambiguous_question`, `qa_pairs` with `short_answers`, `annotations` with
`long_answer`), its rows on the Hugging Face hub, and ALCE's, which have `question` and retrieved passages (`docs`): these
are pooled as the corpus.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stepcraft.evals.benchmarks.benchmark import Benchmark
from stepcraft.evals.benchmarks.entries import checked, entries, id_of, refuse, text_of, texts_of, whole
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
    for name, where, fields in _rows(file):
        question = text_of(fields, "ambiguous_question", "question")
        readings = [texts_of(pair.get("short_answers")) for pair in _objects(fields.get("qa_pairs"))]
        golds = [text for one in _objects(fields.get("annotations")) if (text := text_of(one, "long_answer"))]
        if not question or not any(readings) or not golds:
            refuse(where, "ASQA", "question, no short_answers in qa_pairs, or no long_answer in annotations")
        samples.append(
            Sample(id=name, question=question, contains=[one for one in readings if one], long_answers=golds)
        )
    return checked(samples, file, "ASQA")


def _rows(file: Path) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The id, the place and the fields of each question."""
    value = whole(file) if file.suffix.lower() == ".json" else None
    if isinstance(value, Mapping) and isinstance(dev := value.get("dev"), Mapping):
        for name, fields in dev.items():
            yield name, f"{file}, {name}", fields if isinstance(fields, Mapping) else {}
        return
    for where, fields in entries(file):
        yield id_of(fields, where, "sample_id", "id"), where, fields


def _objects(value: object) -> Sequence[Mapping[str, Any]]:
    listed: Iterable[object] = value if isinstance(value, list) else ()
    return [one for one in listed if isinstance(one, Mapping)]


BENCHMARKS = (
    Benchmark(
        "asqa",
        "ambiguous questions with long answers: short answers of each reading (STR-EM), ROUGE-Lsum",
        "Apache 2.0",
        "https://github.com/google-research/language/tree/master/language/asqa",
        _questions,
        score=long_answer_scores,
        citation="Stelmakh et al., ASQA: Factoid Questions Meet Long-Form Answers, EMNLP 2022",
    ),
)
