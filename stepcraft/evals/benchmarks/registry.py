"""The benchmarks by name."""

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.evals.benchmarks import (
    asqa,
    champ,
    eli5,
    hotpotqa,
    humaneval,
    lgstep,
    mbpp,
    popqa,
    pubhealth,
    recipenlg,
    textworld,
    two_wiki,
    word_problems,
    writing,
)
from stepcraft.evals.benchmarks.benchmark import Benchmark
from stepcraft.evals.benchmarks.derived import pooled
from stepcraft.evals.evaluate import Scorer, known_scores
from stepcraft.evals.samples import Sample, read_samples
from stepcraft.evals.sandbox import Sandbox

BENCHMARKS: dict[str, Benchmark] = {
    one.name: one
    for module in (
        lgstep,
        textworld,
        writing,
        asqa,
        eli5,
        two_wiki,
        hotpotqa,
        popqa,
        pubhealth,
        recipenlg,
        champ,
        word_problems,
        humaneval,
        mbpp,
    )
    for one in module.BENCHMARKS
}


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
        data: The file of a benchmark, in place of its published one.
        limit: The number of samples; None for all. The passages of all are searched.
        sandbox: What runs the programs of a benchmark of code; bubblewrap by default.

    Raises:
        BadInput: There is no such file or benchmark, or its samples cannot be read.
        SourceFailure: The file of a benchmark cannot be downloaded.
        SandboxFailure: The answers are programs, and there is no sandbox to run them in.
    """
    if _is_benchmark(named):
        known = benchmark(named)
        samples, score = known.samples(data)[:limit], known.score
        if known.score_code:
            sandbox = sandbox or Sandbox()
            sandbox.probe()
            return samples, known.score_code(sandbox, known.file(data)), known.fields
        return (
            samples,
            score,
            {**known.fields, **(known.settings(known.file(data)) if data or known.release else {})},
        )
    if data is not None:
        raise BadInput(
            f"--data {data} is for a benchmark, and {named} is a file of its own; leave it out"
        )
    file = Path(named)
    return read_samples(file, limit), known_scores, pooled(file)


def described(named: str, data: Path | None) -> dict[str, str] | None:
    """What the configuration of an evaluation tells of a benchmark; None for a file.

    Raises:
        BadInput: There is no such benchmark, or its file cannot be used.
        SourceFailure: Its file cannot be downloaded.
    """
    return benchmark(named).about(data) if _is_benchmark(named) else None


def _is_benchmark(named: str) -> bool:
    return named in BENCHMARKS or not (Path(named).suffix or Path(named).exists())
