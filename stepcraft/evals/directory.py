"""The directory of an evaluation: its configuration, and one line for each finished sample.

Lines are appended as samples finish, so that a run killed at any moment resumes where it stopped
without repeating any finished sample. Judgements are stored in the same way, in a separate file in
the directory.
"""

import json
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NotRequired

from typing_extensions import TypedDict

from stepcraft.errors import BadInput, NoAnswer
from stepcraft.evals.calls import Call
from stepcraft.evals.samples import Sample
from stepcraft.journal import LOCK, FolderLock, LineFile, read_lines

CONFIGURATION = "configuration.json"
SAMPLES = "samples.jsonl"
CALLS = "calls.jsonl"
_NEW = "configuration.new"
"""The name of the configuration file while it is being written."""


class Outcome(TypedDict):
    """The result of a method on a sample."""

    method: str
    id: str
    sample: Sample
    output: dict[str, Any]
    """The output of the graph, empty if it failed."""
    error: str
    """The reason why the output or the scores are missing, or "" if neither is."""
    scores: dict[str, float]
    usage: dict[str, Any]
    """`calls`, `input_tokens` and `output_tokens`, in total and per model under `models`, and the
    number of replies without token counts under `uncounted` if there are any.
    """
    seconds: float
    warnings: list[str]
    began: str
    """The start time in UTC, in ISO 8601 format."""
    trace: str
    """The id of the root run, under which LangSmith stores its trace."""
    usd: NotRequired[float | None]
    """The cost, or None if a price is unknown."""


def answered(outcome: Outcome) -> bool:
    """Return whether a sample was answered and its answer scored."""
    return not outcome["error"]


def is_unanswered(outcome: Outcome) -> bool:
    """Return whether the method ended without an answer, which counts as wrong."""
    return outcome["error"].partition(":")[0] == NoAnswer.__name__


@contextmanager
def run_directory(
    path: Path, configuration: Mapping[str, Any], *names: str
) -> Generator[list[LineFile]]:
    """Lock an evaluation's directory for this process, and open files in it for appending.

    Args:
        path: The directory, which is created if necessary.
        configuration: The methods, benchmark and package version of the evaluation, as JSON data.
        names: The names of the files.

    Raises:
        BadInput: The directory has answers from a method whose settings, code or files have
            changed, is in use, belongs to another evaluation, or contains other files.
        OSError: It is not writable.
    """
    with ExitStack() as stack:
        stack.enter_context(closing(FolderLock(path, "an evaluation is running into")))
        _configure(path, configuration)
        yield [stack.enter_context(LineFile(path / name)) for name in names]


def _configure(path: Path, configuration: Mapping[str, Any]) -> None:
    """Write the configuration, or add its methods to the one that the directory already has.

    Raises:
        BadInput: A method that has already answered now has other settings, code or files, the
            directory belongs to another evaluation, or it contains other files.
    """
    if (path / CONFIGURATION).exists():
        before, new = read_configuration(path), configuration["methods"]
        methods = before["methods"]
        contents = [item for it in new.values() for item in it.get("contents", {}).items()]
        for name in {outcome["method"] for outcome in read_outcomes(path) if outcome["output"]}:
            old = methods[name]
            earlier = old.setdefault("contents", {})
            changed = [it for it, digest in contents if earlier.get(it) not in {None, "", digest}]
            is_same = {**new.get(name, old), "contents": earlier} == old
            if changed or not is_same:
                how = f"an earlier version of {changed[0]}" if is_same else "other settings"
                raise BadInput(
                    f"{path} has answers of {name} with {how}; name another directory, and "
                    "`stepcraft eval compare` shows what changed"
                )
        configuration = {**configuration, "methods": {**methods, **new}}
        for name in ("version", "benchmark"):
            if before.get(name) != configuration.get(name):
                raise BadInput(
                    f"{path} belongs to an evaluation with another {name}; name another directory, "
                    "or start it as it was begun"
                )
    elif names := sorted({file.name for file in path.iterdir()} - {LOCK, _NEW}):
        raise BadInput(f"{path} holds other files, such as {names[0]!r}; name a new directory")
    text = json.dumps(configuration, indent=2, ensure_ascii=False)
    (path / _NEW).write_text(text + "\n", encoding="utf-8")
    (path / _NEW).replace(path / CONFIGURATION)


def read_configuration(path: Path) -> dict[str, Any]:
    """Return the configuration of an evaluation.

    Raises:
        BadInput: There is none, or it cannot be read.
    """
    try:
        configuration: dict[str, Any] = json.loads((path / CONFIGURATION).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} is no directory of an evaluation: {error}") from error
    return configuration


def read_outcomes(path: Path) -> Iterator[Outcome]:
    """Yield the outcomes in the order in which they were written.

    Raises:
        BadInput: A line is damaged.
    """
    return lines(path / SAMPLES)


def read_calls(path: Path) -> dict[tuple[str, str], list[Call]]:
    """Return the calls that were kept of the runs with the present outcomes, by method and sample.

    Raises:
        BadInput: A line is damaged.
    """
    traces = {(each["method"], each["id"]): each["trace"] for each in read_outcomes(path)}
    return {
        key: line["calls"]
        for line in lines(path / CALLS)
        if line.get("trace") in {None, traces.get(key := (line["method"], line["id"]))}
    }


def lines(file: Path) -> Iterator[Any]:
    """Yield the lines of a file in the directory, or none if it does not exist.

    Raises:
        BadInput: A line is damaged.
    """
    if file.exists():
        yield from read_lines(file)
