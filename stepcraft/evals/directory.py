"""The directory of an evaluation: its configuration, and one line for each finished sample of a method.

Lines are appended as samples finish, so that a run that is killed at any moment goes on where it stopped: what is in the
directory is not asked again, and of a line that was cut off the rest is cut off too. They are forced to the disk every
second; where the machine itself fails, the samples since then are run again. What judges say of the outputs is kept in the
same way, in a file beside them.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NotRequired, Self

from typing_extensions import TypedDict

from stepcraft.errors import BadInput
from stepcraft.evals.samples import Sample
from stepcraft.files import named_path
from stepcraft.journal import LOCK, FolderLock, LineFile, read_lines

CONFIGURATION = "configuration.json"
SAMPLES = "samples.jsonl"
_BEGUN = "configuration.new"
"""The configuration while it is written."""

_DIFFERING = {
    "methods": "methods or settings",
    "prompts": "prompts (an instruction or a reply format was changed)",
    "version": "version of Stepcraft",
}
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
    seconds: float
    warnings: list[str]
    began: NotRequired[str]
    """When it was begun, as ISO 8601 in UTC."""
    trace: NotRequired[str]
    """The id of the root run, under which LangSmith has its trace; "" where no run was begun."""
    models: NotRequired[list[str]]
    """The models as their providers named them; a server does not tell."""
    versions: NotRequired[dict[str, str]]
    """The versions of the packages that ran it."""
    prompts: NotRequired[str]
    """Identifies the prompts; "" for a graph of one's own."""
    seed: NotRequired[int | None]
    """The seed of a method that draws at random."""
    usd: NotRequired[float | None]
    """What it cost; None where a price is unknown."""


class RunDirectory:
    """The directory of one evaluation; held by one process at a time.

    Args:
        path: The directory; it is made if it is not there.
        configuration: What the evaluation is about, as JSON.

    Raises:
        BadInput: The directory belongs to an evaluation with another configuration or to one that is running, holds
            other files, or cannot be written.
    """

    def __init__(self, path: Path, configuration: Mapping[str, Any]) -> None:
        self.path = named_path(path)
        wanted: dict[str, Any] = dict(configuration)
        try:
            self._lock = FolderLock(self.path, "an evaluation is running into")
        except OSError as error:
            raise BadInput(f"{path} cannot be used for an evaluation: {error.strerror}") from error
        try:
            if self._is_new(wanted):
                text = json.dumps(wanted, indent=2, ensure_ascii=False)
                (self.path / _BEGUN).write_text(text + "\n", encoding="utf-8")
                (self.path / _BEGUN).replace(self.path / CONFIGURATION)
            self._file = LineFile(self.path / SAMPLES)
        except OSError as error:
            self._lock.close()
            raise BadInput(f"{path} cannot be used for an evaluation: {error.strerror}") from error
        except BaseException:
            self._lock.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._file.close()
        finally:
            self._lock.close()

    def add(self, outcome: Outcome) -> None:
        """Append an outcome; when this returns, the end of the process loses nothing of it.

        Raises:
            RunStopped: It cannot be written, for example because the disk is full.
        """
        self._file.add(outcome)

    def _is_new(self, wanted: Mapping[str, Any]) -> bool:
        file = self.path / CONFIGURATION
        if not file.exists():
            others = sorted(
                one.name for one in self.path.iterdir() if one.name not in {LOCK, _BEGUN}
            )
            if others:
                raise BadInput(
                    f"{self.path} holds other files, such as {others[0]!r}; name a directory of its own"
                )
            return True
        known = read_configuration(self.path)
        differing = sorted(
            name for name in {*known, *wanted} if known.get(name) != wanted.get(name)
        )
        if differing:
            told = " and ".join(_DIFFERING.get(name, name) for name in differing)
            raise BadInput(
                f"{self.path} belongs to an evaluation with other {told}; name another directory, or start it with the "
                "configuration that it was begun with"
            )
        return False


def check_names(what: str, names: Sequence[str]) -> None:
    """Check that what is kept under each name is found again.

    Args:
        what: What they name, such as "method".
        names: The names.

    Raises:
        BadInput: One is there twice.
    """
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise BadInput(f"the {what} {name!r:.80} is there twice; give each its own")
        seen.add(name)


def read_configuration(path: Path) -> dict[str, Any]:
    """The configuration of an evaluation.

    Raises:
        BadInput: There is none, or it cannot be read.
    """
    try:
        known: dict[str, Any] = json.loads((path / CONFIGURATION).read_text("utf-8"))
    except OSError as error:
        raise BadInput(f"{path} is no directory of an evaluation: {error.strerror}") from error
    except ValueError as error:
        raise BadInput(
            f"{path / CONFIGURATION} is damaged: {error}; name another directory"
        ) from error
    return known


def read_outcomes(path: Path) -> Iterator[Outcome]:
    """Yield the outcomes in the order in which they were written.

    Raises:
        BadInput: There are none, or a line is damaged.
    """
    try:
        yield from read_lines(path / SAMPLES)
    except OSError as error:
        raise BadInput(f"{path} is no directory of an evaluation: {error.strerror}") from error
