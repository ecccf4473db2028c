"""GSM8K and GSM-Hard: mathematics word problems, answered with a program (PAL; RAT §4)."""

import math
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from stepcraft.evals.benchmark import Benchmark
from stepcraft.evals.samples import Sample
from stepcraft_papers.entries import entries, file_benchmark
from stepcraft_papers.programs import program_of
from stepcraft_papers.sandbox import need_sandbox, run_program
from stepcraft_papers.source import Release

_PROGRAM = (
    "Answer with a Python program in one fenced block that computes the answer and prints nothing "
    "but the number."
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


async def program_accuracy(sample: Sample, output: Mapping[str, Any]) -> dict[str, float]:
    """Score whether the last number that the program in an answer prints is the right one.

    Numbers that differ by less than 0.001 count as equal (as in PAL's official script, Gao et al.
    2022).

    Raises:
        SandboxFailure: The sandbox failed.
    """
    outcome = await run_program(program_of(str(output.get("answer") or "")))
    printed, ran = outcome.stdout.split()[-1:], outcome.ended == "done"
    differences = [abs(_number(n) - _number(sample.get("answers", [""])[0])) for n in printed]
    return {"right": float(ran and min(differences, default=1) < 1e-3), "program ran": float(ran)}


def _number(text: str) -> float:
    """Return the number in a text, which can have thousands separators, or NaN if it is not one."""
    try:
        number = float(_THOUSANDS.sub("", text))
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def _problems(name: str, file: Path) -> list[Sample]:
    """Read GSM8K (`question`, `answer` that ends in "#### 18") and GSM-Hard (`input`, `target`)."""
    need_sandbox()
    samples: list[Sample] = []
    for entry in entries(file):
        question = entry.fields.get("question", entry.fields.get("input"))
        solution = str(entry.fields.get("answer", "")).rpartition("####")[2]
        answer = str(entry.fields.get("target", solution)).strip().replace(",", "")
        if not question or not answer:
            entry.refuse(name, "question or no answer")
        samples.append(Sample(id=entry.id, question=f"{question}\n{_PROGRAM}", answers=[answer]))
    return samples


def _benchmark(
    name: str, which: str, *, source: str, licence: str, citation: str, release: Release
) -> Benchmark:
    return file_benchmark(
        name,
        f"mathematics word problems{which}, answered with a program that is run in a sandbox",
        partial(_problems, name),
        source=f"https://github.com/{source}",
        score=program_accuracy,
        settings={"rat": {"finish": "code"}, "rat_paper": {"finish": "code", "k": 1}},
        licence=licence,
        citation=citation,
        release=release,
    )


GSM8K = _benchmark(
    "gsm8k",
    "",
    source="openai/grade-school-math",
    licence="MIT",
    citation="Cobbe et al., Training Verifiers to Solve Math Word Problems, 2021, arXiv 2110.14168",
    release=Release(
        "https://raw.githubusercontent.com/openai/grade-school-math/"
        "3101c7d5072418e28b9008a6636bde82a006892c/grade_school_math/data/test.jsonl",
        "3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14",
    ),
)
GSM_HARD = _benchmark(
    "gsm-hard",
    " with large numbers",
    source="reasoning-machines/pal",
    licence="Apache-2.0",
    citation="Gao et al., PAL: Program-aided Language Models, ICML 2023, arXiv 2211.10435",
    release=Release(
        "https://raw.githubusercontent.com/reasoning-machines/pal/"
        "f81ca2a9777f002f98a6b4d0f10b61bd5c8feb02/datasets/gsmhardv2.jsonl",
        "2032b0188a49ac0ec38cbe1e695e7d62d6dddc44bbb64f920728aca710e9ddef",
    ),
)
