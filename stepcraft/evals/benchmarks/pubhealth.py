"""PubHealth: claims on public health, asked as closed questions (Kotonya and Toni 2020; RPG §4).

Read is the official format, `test.tsv` (`claim_id`, `claim`, `label`; the same in .csv or .jsonl, with the label as a word or as
the number that the Hugging Face hub gives it). Some rows of the official file are broken or have no label; they are left out,
as usual.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.evals.benchmarks.benchmark import Benchmark
from stepcraft.evals.benchmarks.entries import checked, text_of
from stepcraft.evals.samples import Sample
from stepcraft.records import records

LABELS = ("false", "mixture", "true", "unproven")
"""In the order of their numbers."""
_NAMED = re.compile(rf"(?<!not )\b(?:{'|'.join(LABELS)})\b")
_QUESTION = (
    "Is this claim true, false, a mixture of both, or unproven? Answer with one word: true, false, mixture or unproven.\n"
    "Claim: {}"
)


def accuracy(sample: Sample, output: Mapping[str, Any]) -> dict[str, float]:
    """Whether the label that an answer names first is the right one; "not true" names none."""
    named = _NAMED.search(str(output.get("answer") or "").lower())
    return {"accuracy": float(named is not None and named[0] in sample.get("answers", ()))}


def _claims(file: Path) -> list[Sample]:
    samples: list[Sample] = []
    for number, record in enumerate(records(file), 1):
        fields = record.values or {}
        if record.values is not None and ("claim" not in fields or "label" not in fields):
            raise BadInput(
                f"{file}:{record.line} is no record of PubHealth: it has no claim or no label; name its official file "
                "with --data"
            )
        claim, label = text_of(fields, "claim"), str(fields.get("label")).strip().lower()
        if label.isdecimal() and int(label) < len(LABELS):
            label = LABELS[int(label)]
        if claim and label in LABELS:
            samples.append(
                Sample(id=str(number), question=_QUESTION.format(claim), answers=[label])
            )
    return checked(samples, file, "PubHealth")


BENCHMARKS = (
    Benchmark(
        "pubhealth",
        "claims on public health that are true, false, a mixture or unproven: accuracy",
        "MIT",
        "https://github.com/neemakot/Health-Fact-Checking",
        read=_claims,
        score=accuracy,
        fields={"kind": "short"},
        citation="Kotonya and Toni, Explainable Automated Fact-Checking for Public Health Claims, EMNLP 2020",
    ),
)
