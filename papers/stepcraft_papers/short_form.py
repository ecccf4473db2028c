"""PopQA and PubHealth: questions with short answers (RPG §4).

PopQA (Mallen et al. 2023) can be read in the official format, `popQA.tsv` (`id`, `question`,
`possible_answers` as a JSON list), and in the format of Self-RAG's long-tail subset, with
`answers`. PubHealth (Kotonya and Toni 2020) can be read in the format used by RPG's authors,
`health_claims_processed.jsonl` from Self-RAG (`question`, `answers`: true or false), and in the
official format, `test.tsv` (`claim`, and `label` as a word or as its number on the Hugging Face
Hub), which has four labels. As usual, rows that are broken or have no label are left out; the
official file contains some.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.evals.samples import Sample
from stepcraft.records import records
from stepcraft_papers.entries import entries, file_benchmark, text_of, texts_of

LABELS = ("false", "mixture", "true", "unproven")
"""The labels, in the order of their numbers."""
_LABEL = re.compile(
    rf"((?:not|n't|\bnever|\bno)\s+(?:[\w']+\s+){{0,8}})?\b(un)?({'|'.join(LABELS)})\b"
)
"""A label, along with any negation of it in the same clause."""
_CLAIM = (
    "Is this claim true, false, a mixture of both, or unproven? Answer with one word: true, false, "
    "mixture or unproven.\nClaim: {}"
)
_TRUE_OR_FALSE = "Is this claim true or false? Answer with one word: true or false.\nClaim: {}"


def alias_accuracy(sample: Sample, output: Mapping[str, Any]) -> dict[str, float]:
    """Score whether an alias of the answer occurs, as in PopQA's official script.

    Each alias is tried as written, in lower case, and with only its first letter capitalised.
    """
    answer = str(output.get("answer") or "")
    forms = [
        form
        for alias in sample.get("answers", ())
        for form in (alias, alias.lower(), alias.capitalize())
    ]
    return {"accuracy": float(any(form in answer for form in forms))}


def label_accuracy(sample: Sample, output: Mapping[str, Any]) -> dict[str, float]:
    """Score whether the first label in an answer is the right one.

    Negated labels ("not true", "cannot be called true") are skipped.
    """
    answer = str(output.get("answer") or "").lower()
    labels = [
        "false" if match[2] else match[3] for match in _LABEL.finditer(answer) if not match[1]
    ]
    return {"accuracy": float(labels[:1] == sample.get("answers"))}


def _popqa(file: Path) -> list[Sample]:
    samples: list[Sample] = []
    for entry in entries(file, "id"):
        question = text_of(entry.fields, "question")
        answers = texts_of(entry.fields.get("possible_answers", entry.fields.get("answers")))
        if not question or not answers:
            entry.refuse("PopQA", "question or no possible_answers")
        samples.append(Sample(id=entry.id, question=question, answers=answers))
    return samples


def _pubhealth(file: Path) -> list[Sample]:
    samples: list[Sample] = []
    for number, record in enumerate(records(file), 1):
        fields = record.values or {"claim": "", "label": ""}
        if texts_of(fields.get("answers")):
            claim, labels = text_of(fields, "question"), texts_of(fields["answers"])
            question = _TRUE_OR_FALSE.format(claim)
            samples.append(Sample(id=str(number), question=question, answers=[labels[0].lower()]))
            continue
        if not {"claim", "label"} <= fields.keys():
            raise BadInput(
                f"{file}:{record.line} is no record of PubHealth: it has no claim or no label; "
                "name its official file with --data"
            )
        claim, label = text_of(fields, "claim"), str(fields["label"]).strip().lower()
        if label.isdecimal() and int(label) < len(LABELS):
            label = LABELS[int(label)]
        if claim and label in LABELS:
            samples.append(Sample(id=str(number), question=_CLAIM.format(claim), answers=[label]))
    return samples


POPQA = file_benchmark(
    "popqa",
    "short questions on entities of all degrees of fame: whether an alias of the answer occurs",
    _popqa,
    source="https://github.com/AlexTMallen/adaptive-retrieval",
    licence="MIT",
    citation="Mallen et al., When Not to Trust Language Models, ACL 2023",
    score=alias_accuracy,
    settings={"kind": "short"},
)
PUBHEALTH = file_benchmark(
    "pubhealth",
    "claims on public health that are true, false, a mixture or unproven: accuracy",
    _pubhealth,
    source="https://github.com/neemakot/Health-Fact-Checking",
    licence="MIT",
    citation="Kotonya and Toni, Explainable Automated Fact-Checking for Public Health Claims, "
    "EMNLP 2020",
    score=label_accuracy,
    settings={"kind": "short"},
)
