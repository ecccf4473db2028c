"""The directory of an evaluation: its configuration, and one line for each finished sample.

Lines are appended as samples finish, so that a run that is killed at any moment goes on where it
stopped: what is in the directory is not asked again. What judges say is kept in the same way, in a
file beside them.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NotRequired, Self

from typing_extensions import TypedDict

from stepcraft.errors import BadInput
from stepcraft.evals.calls import Call
from stepcraft.evals.samples import Sample
from stepcraft.files import named_path
from stepcraft.journal import LOCK, FolderLock, LineFile, read_lines

CONFIGURATION = "configuration.json"
SAMPLES = "samples.jsonl"
CALLS = "calls.jsonl"
_NEW = "configuration.new"
"""The configuration while it is written."""

_DIFFERING = {"methods": "methods or settings", "version": "version of Stepcraft"}
"""What the parts of a configuration are in a message; the others are named as they are."""


class Outcome(TypedDict):
    """What a method made of a sample."""

    method: str
    id: str
    sample: Sample
    output: dict[str, Any]
    """The output of the graph; empty where it failed."""
    error: str
    """Why there is no output or no score, "" where there are both."""
    scores: dict[str, float]
    usage: dict[str, Any]
    """`calls`, `input_tokens` and `output_tokens`, in all and under `models` by model."""
    seconds: float
    warnings: list[str]
    began: NotRequired[str]
    """When it was begun, as ISO 8601 in UTC."""
    trace: NotRequired[str]
    """The id of the root run, under which LangSmith has its trace."""
    versions: NotRequired[dict[str, str]]
    """The versions of the packages that ran it."""
    usd: NotRequired[float | None]
    """What it cost; None where a price is unknown."""


class RunDirectory:
    """The directory of one evaluation; one process at a time has it open.

    Args:
        path: The directory; it is created if need be.
        configuration: What the evaluation is about, as JSON.
        keep_calls: Whether the model calls behind an outcome are kept, too.

    Raises:
        BadInput: The directory belongs to an evaluation with another configuration or to one that
            is running, holds other files, or cannot be written.
    """

    def __init__(
        self, path: Path, configuration: Mapping[str, Any], *, keep_calls: bool = False
    ) -> None:
        self.path = named_path(path)
        with ExitStack() as stack:
            try:
                lock = FolderLock(self.path, "an evaluation is running into")
                stack.callback(lock.close)
                self._configure(configuration)
                self._samples = stack.enter_context(LineFile(self.path / SAMPLES))
                self._calls = LineFile(self.path / CALLS) if keep_calls else None
                if self._calls:
                    stack.enter_context(self._calls)
            except OSError as error:
                raise BadInput(
                    f"{path} cannot be used for an evaluation: {error.strerror}"
                ) from error
            self._open = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def add(self, outcome: Outcome, calls: Sequence[Call] = ()) -> None:
        """Append an outcome; when this returns, the end of the process loses nothing of it.

        Raises:
            RunStopped: It cannot be written, for example because the disk is full.
        """
        if self._calls and calls:
            self._calls.add({"method": outcome["method"], "id": outcome["id"], "calls": calls})
        self._samples.add(outcome)

    def _configure(self, configuration: Mapping[str, Any]) -> None:
        """Write the configuration into an empty directory, and compare it with that of another."""
        if not (self.path / CONFIGURATION).exists():
            names = sorted({file.name for file in self.path.iterdir()} - {LOCK, _NEW})
            if names:
                raise BadInput(
                    f"{self.path} holds other files, such as {names[0]!r}; name a new directory"
                )
            text = json.dumps(configuration, indent=2, ensure_ascii=False)
            (self.path / _NEW).write_text(text + "\n", encoding="utf-8")
            (self.path / _NEW).replace(self.path / CONFIGURATION)
            return
        before = read_configuration(self.path)
        differing = [
            _DIFFERING.get(name, name)
            for name in sorted({*before, *configuration})
            if before.get(name) != configuration.get(name)
        ]
        if differing:
            raise BadInput(
                f"{self.path} belongs to an evaluation with other {' and '.join(differing)}; name "
                "another directory, or start it with the configuration that it was begun with"
            )


def read_configuration(path: Path) -> dict[str, Any]:
    """Return the configuration of an evaluation.

    Raises:
        BadInput: There is none, or it cannot be read.
    """
    try:
        configuration: dict[str, Any] = json.loads((path / CONFIGURATION).read_text("utf-8"))
    except OSError as error:
        raise BadInput(f"{path} is no directory of an evaluation: {error.strerror}") from error
    except ValueError as error:
        raise BadInput(f"{path / CONFIGURATION} is damaged: {error}") from error
    return configuration


def read_outcomes(path: Path) -> Iterator[Outcome]:
    """Yield the outcomes in the order in which they were written.

    Raises:
        BadInput: There are none, or a line is damaged.
    """
    try:
        yield from read_lines(path / SAMPLES)
    except OSError as error:
        raise BadInput(f"{path} is no directory of an evaluation: {error.strerror}") from error


def read_calls(path: Path) -> dict[tuple[str, str], list[Call]]:
    """Return the calls that were kept, by method and sample.

    Raises:
        BadInput: A line is damaged.
    """
    if not (path / CALLS).exists():
        return {}
    return {(line["method"], line["id"]): line["calls"] for line in read_lines(path / CALLS)}
