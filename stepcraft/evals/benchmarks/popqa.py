"""PopQA: questions on entities of all degrees of fame, answered in short (Mallen et al. 2023; RPG §4).

Read is the official format, `popQA.tsv` (`id`, `question`, `possible_answers` as a JSON list; the same in .csv or .jsonl), and
that of Self-RAG's long tail with `answers`. As in the official script, an answer is right if an alias occurs in it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepcraft.evals.benchmarks.benchmark import Benchmark
from stepcraft.evals.benchmarks.entries import checked, entries, refuse, text_of, texts_of
from stepcraft.evals.samples import Sample
from stepcraft.evals.scores import alias_accuracy


def accuracy(sample: Sample, output: Mapping[str, Any]) -> dict[str, float]:
    """Whether an alias of the answer occurs."""
    return {"accuracy": alias_accuracy(str(output.get("answer") or ""), sample.get("answers", ()))}


def _questions(file: Path) -> list[Sample]:
    samples: list[Sample] = []
    for one in entries(file, "id"):
        question = text_of(one.fields, "question")
        answers = texts_of(one.fields.get("possible_answers", one.fields.get("answers")))
        if not question or not answers:
            refuse(one.where, "PopQA", "question or no possible_answers")
        samples.append(Sample(id=one.id, question=question, answers=answers))
    return checked(samples, file, "PopQA")


BENCHMARKS = (
    Benchmark(
        "popqa",
        "short questions on entities of all degrees of fame: whether an alias of the answer occurs",
        "MIT",
        "https://github.com/AlexTMallen/adaptive-retrieval",
        read=_questions,
        score=accuracy,
        fields={"kind": "short"},
        citation="Mallen et al., When Not to Trust Language Models, ACL 2023",
    ),
)
