"""GSM8K and GSM-Hard: mathematics word problems, answered with a program (PAL; RAT §4)."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.evals.benchmarks.benchmark import Benchmark
from stepcraft.evals.benchmarks.programs import program_of
from stepcraft.evals.benchmarks.source import Release
from stepcraft.evals.samples import Sample
from stepcraft.evals.sandbox import Sandbox
from stepcraft.evals.scores import numbers_equal
from stepcraft.records import records

_PROGRAM = "Answer with a Python program in one fenced block that computes the answer and prints nothing but the number."


async def program_accuracy(
    sandbox: Sandbox, sample: Sample, output: Mapping[str, Any]
) -> dict[str, float]:
    """Whether the program in an answer prints the right number, in its last line.

    Raises:
        SandboxFailure: The sandbox failed.
    """
    ran = await sandbox.arun(program_of(str(output.get("answer") or "")))
    printed = ran.stdout.split()
    right = (
        ran.ended == "done"
        and bool(printed)
        and numbers_equal(printed[-1], sample.get("answers", [""])[0])
    )
    return {"right": float(right), "program ran": float(ran.ended == "done")}


def _problems(file: Path) -> list[Sample]:
    """GSM8K (`question`, `answer` that ends in "#### 18") and GSM-Hard (`input`, `target`)."""
    samples: list[Sample] = []
    for record in records(file):
        fields = record.values or {}
        question = fields.get("question", fields.get("input"))
        answer = fields.get("target", str(fields.get("answer", "")).rpartition("####")[2])
        if not question or not str(answer).strip():
            raise BadInput(
                f"{file}:{record.line} is no word problem: it has no question or no answer"
            )
        samples.append(
            Sample(
                id=str(record.line),
                question=f"{question}\n{_PROGRAM}",
                answers=[str(answer).strip().replace(",", "")],
            )
        )
    return samples


BENCHMARKS = tuple(
    Benchmark(
        name,
        f"mathematics word problems{told}, answered with a program that is run in a sandbox",
        licence,
        source,
        citation=citation,
        release=release,
        read=_problems,
        score_code=lambda sandbox, _: partial(program_accuracy, sandbox),
        fields={"rat": {"finish": "code"}, "rat_paper": {"finish": "code", "k": 1}},
    )
    for name, told, licence, source, citation, release in (
        (
            "gsm8k",
            "",
            "MIT",
            "https://github.com/openai/grade-school-math",
            "Training Verifiers to Solve Math Word Problems, 2021, arXiv 2110.14168",
            Release(
                "https://raw.githubusercontent.com/openai/grade-school-math/"
                "3101c7d5072418e28b9008a6636bde82a006892c/grade_school_math/data/test.jsonl",
                "3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14",
            ),
        ),
        (
            "gsm-hard",
            " with large numbers",
            "Apache-2.0",
            "https://github.com/reasoning-machines/pal",
            "PAL: Program-aided Language Models, ICML 2023, arXiv 2211.10435",
            Release(
                "https://raw.githubusercontent.com/reasoning-machines/pal/"
                "f81ca2a9777f002f98a6b4d0f10b61bd5c8feb02/datasets/gsmhardv2.jsonl",
                "2032b0188a49ac0ec38cbe1e695e7d62d6dddc44bbb64f920728aca710e9ddef",
            ),
        ),
    )
)
