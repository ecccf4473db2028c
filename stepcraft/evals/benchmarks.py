"""The benchmarks by name: their samples, what scores them, and where they come from."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.evals.evaluate import Scorer, known_scores
from stepcraft.evals.samples import Sample, read_samples
from stepcraft.evals.sandbox import Sandbox
from stepcraft.evals.scores import numbers_equal
from stepcraft.evals.textworld import PLAN_FORMAT, Task, execute, read_plan, tasks
from stepcraft.llm.reply import text_of
from stepcraft.records import records
from stepcraft.text.markdown import code_blocks

_DATA = Path(str(files("stepcraft.evals") / "data"))


@dataclass(frozen=True)
class Benchmark:
    """Samples with what scores them."""

    name: str
    line: str
    """What it measures, in one line."""
    licence: str
    source: str
    """Where its samples come from."""
    read: Callable[[Path | None], list[Sample]]
    """The samples: of a local file, or of the package where it has them."""
    score: Scorer = known_scores
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Settings that its methods have unless others are named, such as the memory."""
    runs_code: bool = False
    """Whether its answers are programs, which are run in a sandbox."""


def benchmark(name: str) -> Benchmark:
    """A benchmark by its name.

    Raises:
        BadInput: There is none with this name.
    """
    if name not in BENCHMARKS:
        near = difflib.get_close_matches(name, BENCHMARKS, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there is {', '.join(BENCHMARKS)}"
        raise BadInput(f"there is no file and no benchmark {name!r:.80}; {hint}")
    return BENCHMARKS[name]


def named_samples(
    named: str, data: Path | None, limit: int | None, sandbox: Sandbox | None = None
) -> tuple[list[Sample], Scorer, Mapping[str, Any]]:
    """The samples of a benchmark or of a file, what scores them, and the settings that they bring.

    Args:
        named: The name of a benchmark, or a file.
        data: The file of a benchmark that is not part of the package.
        limit: The number of samples; None for all.
        sandbox: What runs the programs of a benchmark of code; bubblewrap by default.

    Raises:
        BadInput: There is no such file or benchmark, or its samples cannot be read.
        SandboxFailure: The answers are programs, and there is no sandbox to run them in.
    """
    if named in BENCHMARKS or not (Path(named).suffix or Path(named).exists()):
        known = benchmark(named)
        samples, score = known.read(data)[:limit], known.score
        if known.runs_code:
            sandbox = sandbox or Sandbox()
            sandbox.probe()
            score = partial(program_accuracy, sandbox)
        return samples, score, known.fields
    if data is not None:
        raise BadInput(f"--data {data} is for a benchmark, and {named} is a file of its own; leave it out")
    return read_samples(Path(named), limit), known_scores, {}


def _packaged(name: str, file: Path | None) -> list[Sample]:
    return read_samples(file or _DATA / f"{name}.jsonl")


def _from_file(name: str, source: str, file: Path | None) -> list[Sample]:
    if file is None:
        raise BadInput(
            f"{name} is not part of the package; get it from {source} and name its file with --data"
        )
    return read_samples(file)


def _textworld(file: Path | None) -> list[Sample]:
    if file is not None:
        raise BadInput(f"textworld makes its tasks itself; leave out --data {file}")
    return [Sample(id=task.id, question=f"{task.question}\n{PLAN_FORMAT}") for task in tasks()]


def executability(sample: Sample, output: Mapping[str, Any]) -> dict[str, float]:
    """Whether the plan in an answer can be carried out, strictly and with table, furnace and fuel supplied (RAT §4)."""
    task = _tasks()[sample["id"]]
    steps: Sequence[str] = output.get("steps") or []
    plan = read_plan("\n".join(steps) or str(output.get("answer") or ""))
    return {
        name: float(execute(plan.steps, task.target, lenient=lenient).executable)
        for name, lenient in (("executable", False), ("executable, lenient", True))
    }


def _tasks() -> dict[str, Task]:
    return {task.id: task for task in tasks()}


async def program_accuracy(sandbox: Sandbox, sample: Sample, output: Mapping[str, Any]) -> dict[str, float]:
    """Whether the program in an answer prints the right number, in its last line (PAL; RAT §4).

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


def _word_problems(name: str, source: str, file: Path | None) -> list[Sample]:
    """GSM8K (`question`, `answer` that ends in "#### 18") and GSM-Hard (`input`, `target`)."""
    if file is None:
        raise BadInput(
            f"{name} is not part of the package; get it from {source} and name its file with --data"
        )
    samples: list[Sample] = []
    for record in records(file):
        fields = record.values or {}
        question = fields.get("question", fields.get("input"))
        answer = fields.get("target", str(fields.get("answer", "")).rpartition("####")[2])
        if not question or not str(answer).strip():
            raise BadInput(f"{file}:{record.line} is no problem of {name}: it has no question or no answer")
        samples.append(
            Sample(
                id=str(record.line),
                question=f"{question}\n{_PROGRAM}",
                answers=[str(answer).strip().replace(",", "")],
            )
        )
    return samples


_PROGRAM = "Answer with a Python program in one fenced block that computes the answer and prints nothing but the number."
_GSM8K = "https://github.com/openai/grade-school-math"
_GSM_HARD = "https://huggingface.co/datasets/reasoning-machines/gsm-hard"
_HOTPOTQA = "https://hotpotqa.github.io"

BENCHMARKS: dict[str, Benchmark] = {
    one.name: one
    for one in (
        *(
            Benchmark(
                f"lgstep-{split}",
                f"procedures for LangGraph and LangSmith, the {told}; the memory is the bundled one",
                "that of this package",
                "this package",
                partial(_packaged, f"lgstep-{split}"),
            )
            for split, told in (("val", "24 of middle length"), ("test", "42 longest"))
        ),
        *(
            Benchmark(
                f"lgstep-renamed-{split}",
                f"the same as lgstep-{split} with every product and API name replaced: a domain that no model knows",
                "that of this package",
                "this package",
                partial(_packaged, f"lgstep-renamed-{split}"),
                fields={"memory": str(_DATA / "lgstep-renamed-memory.jsonl")},
            )
            for split in ("val", "test")
        ),
        Benchmark(
            "textworld",
            "100 crafting tasks of Minecraft 1.16, carried out in a text world (RAT's embodied planning)",
            "that of this package; recipes from minecraft-data (MIT)",
            "this package",
            _textworld,
            executability,
        ),
        Benchmark(
            "hotpotqa",
            "questions of several hops with short answers: exact match and F1",
            "CC BY-SA 4.0",
            _HOTPOTQA,
            partial(_from_file, "hotpotqa", _HOTPOTQA),
        ),
        *(
            Benchmark(
                name,
                f"mathematics word problems{told}, answered with a program that is run in a sandbox",
                "MIT",
                source,
                partial(_word_problems, name, source),
                fields={"finish": "code"},
                runs_code=True,
            )
            for name, told, source in (("gsm8k", "", _GSM8K), ("gsm-hard", " with large numbers", _GSM_HARD))
        ),
    )
}
"""The benchmarks by name."""
