"""Benchmarks: named samples with their scorers and the settings that methods need.

LGStep is the only benchmark in this package. Other distributions, such as `stepcraft-papers`,
register theirs as entry points in the group `stepcraft.benchmarks`; each loads a `Benchmark`:

    [project.entry-points."stepcraft.benchmarks"]
    gsm8k = "stepcraft_papers.word_problems:GSM8K"
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.evals.samples import Sample, read_samples
from stepcraft.evals.scoring import Scorer, default_scores
from stepcraft.registered import did_you_mean, installed, installed_names

GROUP = "stepcraft.benchmarks"
_DATA = Path(str(files("stepcraft.evals") / "data"))


@dataclass(frozen=True)
class Questions:
    """The samples in a benchmark or a file, ready to be evaluated."""

    samples: Sequence[Sample]
    scorers: Sequence[Scorer] = (default_scores,)
    """The functions that score an output; each may return several named scores and may be async."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Default settings for the methods, such as the memory and the sources, which the user can
    override.

    Settings under the name of a graph apply only to that graph: `{"rat": {"finish": "code"}}`.
    """
    version: str = ""
    """A version of whatever else affects the scores, such as the SHA-256 hash of a test file.
    """


@dataclass(frozen=True)
class Benchmark:
    """A named set of questions.

    `load` is called with the file given by the user (`--data`; None for the published one) and the
    number of samples (None for all). It raises BadInput if the file cannot be used and
    SourceFailure if it cannot be downloaded.
    """

    name: str
    description: str
    """What it measures, in one line."""
    load: Callable[[Path | None, int | None], Questions]
    source: str = ""
    """The address of its samples."""
    licence: str = ""
    citation: str = ""
    """The paper that introduced it: authors, title, venue, year."""

    def origin(self) -> dict[str, str]:
        """Return everything but the loader, for reports and the configuration."""
        return {name: value for name, value in vars(self).items() if isinstance(value, str)}


def benchmark_names() -> list[str]:
    """Return the names of the installed benchmarks, starting with those in this package."""
    return [*_LGSTEP, *installed_names(GROUP)]


def get_benchmark(name: str) -> Benchmark:
    """Return the benchmark with the given name.

    Raises:
        BadInput: No installed package has a benchmark with this name.
    """
    if benchmark := _LGSTEP.get(name) or installed(GROUP, name, Benchmark):
        return benchmark
    advice = did_you_mean(
        name, benchmark_names(), "for those of papers: pip install stepcraft-papers"
    )
    raise BadInput(f"there is no file and no benchmark {name!r:.80}; {advice}")


def _load_lgstep(
    split: str, settings: Mapping[str, Any], data: Path | None, limit: int | None
) -> Questions:
    return Questions(read_samples(data or _DATA / f"{split}.jsonl", limit), settings=settings)


_LGSTEP = {
    name: Benchmark(
        name=name,
        description=f"procedures for LangGraph and LangSmith, {which}",
        load=partial(_load_lgstep, name, settings),
        source="this package",
        licence="that of this package",
    )
    for split, size in (("val", "the 24 of middle length"), ("test", "the 42 longest"))
    for name, which, settings in (
        (f"lgstep-{split}", f"{size}; the memory is the bundled one", {}),
        (
            f"lgstep-renamed-{split}",
            f"{size}, with every product and API name replaced, so that no model knows them",
            {"memory": str(_DATA / "lgstep-renamed-memory.jsonl")},
        ),
    )
}
