"""What a benchmark is: samples, what scores them, and where they come from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.evals.benchmarks.derived import pooled
from stepcraft.evals.evaluate import Scorer, known_scores
from stepcraft.evals.samples import Sample, read_samples
from stepcraft.evals.sandbox import Sandbox

CodeScorer = Callable[[Sandbox], Scorer]
"""What makes the scorer of answers that are programs."""


@dataclass(frozen=True)
class Benchmark:
    """Samples with what scores them."""

    name: str
    line: str
    """What it measures, in one line."""
    licence: str
    source: str
    """Where its samples come from."""
    citation: str = ""
    """The paper that it was published with."""
    read: Callable[[Path], list[Sample]] = read_samples
    """The samples in its file."""
    packaged: Path | None = None
    """Its file, where the package has it."""
    score: Scorer = known_scores
    score_code: CodeScorer | None = None
    """What scores answers that are programs, which are run in a sandbox."""
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Settings that its methods have unless others are named, such as the memory."""
    settings: Callable[[Path], Mapping[str, Any]] = pooled
    """Settings that its methods have because of what is in its file: by default its passages are searched."""

    def samples(self, data: Path | None) -> list[Sample]:
        """The samples in a local file, or in the file of the package where none is named.

        Raises:
            BadInput: No file is named and the package has none, or the file cannot be read.
        """
        file = data or self.packaged
        if file is None:
            raise BadInput(
                f"{self.name} is not part of the package; get it from {self.source} and name its file with --data"
            )
        return self.read(file)
