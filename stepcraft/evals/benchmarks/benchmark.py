"""What a benchmark is: samples, what scores them, and where they come from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.evals.benchmarks.derived import pooled
from stepcraft.evals.benchmarks.source import Release, digest, fetched, unpacked
from stepcraft.evals.evaluate import Scorer, known_scores
from stepcraft.evals.samples import Sample, read_samples
from stepcraft.evals.sandbox import Sandbox

CodeScorer = Callable[[Sandbox, Path], Scorer]
"""What makes the scorer of answers that are programs, from a sandbox and the file of the benchmark."""


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
    """The paper that it was published with: title, venue, year and arXiv number."""
    release: Release | None = None
    """Its file as it is published, where that can be downloaded."""
    read: Callable[[Path], list[Sample]] = read_samples
    """The samples in its file."""
    packaged: Path | None = None
    """Its file, where the package has it."""
    made: Callable[[], list[Sample]] | None = None
    """What makes its samples, where it has no file."""
    score: Scorer = known_scores
    score_code: CodeScorer | None = None
    """What scores answers that are programs, which are run in a sandbox."""
    fields: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Settings that its methods have unless others are named, such as the memory and the kind of answer; under the
    name of a graph, its own."""
    settings: Callable[[Path], Mapping[str, Any]] = pooled
    """Settings that its methods have because of what is in its file: by default its passages are searched."""

    def file(self, data: Path | None) -> Path:
        """The file that its samples are in: a local one, else that of the package, else the published one.

        Raises:
            BadInput: No file is named and there is no other, or the file cannot be used.
            SourceFailure: It cannot be downloaded.
        """
        if data or self.packaged:
            return unpacked(data) if data else Path(str(self.packaged))
        if self.release is None:
            raise BadInput(
                f"{self.name} is not part of the package; get it from {self.source} and name its file with --data"
            )
        return fetched(self.release)

    def samples(self, data: Path | None) -> list[Sample]:
        """The samples in its file, or those that are made.

        Raises:
            BadInput: No file is named and there is no other, one is named and none is used, or it cannot be read.
            SourceFailure: It cannot be downloaded.
        """
        if self.made:
            if data:
                raise BadInput(f"{self.name} makes its samples itself; leave out --data {data}")
            return self.made()
        return self.read(self.file(data))

    def about(self, data: Path | None) -> dict[str, str]:
        """What the configuration of an evaluation tells of it.

        Raises:
            BadInput: No file is named and there is no other, or the file cannot be used.
            SourceFailure: It cannot be downloaded.
        """
        told = {
            "name": self.name,
            "source": self.source,
            "licence": self.licence,
            "citation": self.citation,
        }
        has_file = data or self.packaged or self.release
        return {**told, "sha256": digest(self.file(data))} if has_file else told
