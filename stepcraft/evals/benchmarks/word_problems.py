"""GSM8K and GSM-Hard: mathematics word problems, answered with a program (PAL; RAT §4)."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.evals.benchmarks.benchmark import Benchmark
from stepcraft.evals.samples import Sample
from stepcraft.evals.sandbox import Sandbox
from stepcraft.evals.scores import numbers_equal
from stepcraft.llm.reply import text_of
from stepcraft.records import records
from stepcraft.text.markdown import code_blocks

_PROGRAM = "Answer with a Python program in one fenced block that computes the answer and prints nothing but the number."


async def program_accuracy(sandbox: Sandbox, sample: Sample, output: Mapping[str, Any]) -> dict[str, float]:
    """Whether the program in an answer prints the right number, in its last line.

    Raises:
        SandboxFailure: The sandbox failed.
    """
    answer = str(output.get("answer") or "")
    blocks = [answer[block.start : block.stop] for block in code_blocks(answer)]
    ran = await sandbox.arun(text_of(max(blocks, key=len, default=answer)))
    printed = ran.stdout.split()
    right = (
        ran.ended == "done" and bool(printed) and numbers_equal(printed[-1], sample.get("answers", [""])[0])
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
            raise BadInput(f"{file}:{record.line} is no word problem: it has no question or no answer")
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
        "MIT",
        source,
        read=_problems,
        score_code=lambda sandbox: partial(program_accuracy, sandbox),
        fields={"finish": "code"},
    )
    for name, told, source in (
        ("gsm8k", "", "https://github.com/openai/grade-school-math"),
        ("gsm-hard", " with large numbers", "https://huggingface.co/datasets/reasoning-machines/gsm-hard"),
    )
)
