"""Earlier versions of a procedure, kept with it: when it was changed, why, and by whom."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime

from stepcraft.errors import BadInput
from stepcraft.memory.procedure import Procedure, Version

MOST_VERSIONS = 20
"""Earlier versions that are kept of a procedure; older ones go."""

_reason: ContextVar[tuple[str, str]] = ContextVar("reason", default=("", ""))


@contextmanager
def reason(why: str, by: str = "") -> Generator[None]:
    """Say why, and by whom, procedures are changed within the block."""
    token = _reason.set((why, by))
    try:
        yield
    finally:
        _reason.reset(token)


def same_text(first: Procedure, second: Procedure) -> bool:
    """Tell whether two procedures read the same, whatever source and metadata they have."""
    return (first.output, first.input, first.steps) == (second.output, second.input, second.steps)


def with_versions(stored: Procedure, new: Procedure) -> Procedure:
    """Return a procedure that takes the place of the stored one, with that among its versions."""
    earlier = tuple(new.versions or stored.versions)
    if not same_text(stored, new):
        why, by = _reason.get()
        now = datetime.now(UTC).isoformat(timespec="seconds")
        latest = Version(
            at=now,
            why=why,
            by=by,
            output=stored.output,
            input=stored.input,
            steps=list(stored.steps),
        )
        earlier = (latest, *earlier)[:MOST_VERSIONS]
    return new if earlier == new.versions else replace(new, versions=earlier)


def with_text(kept: Procedure, new: Procedure) -> Procedure:
    """Return the kept procedure with the output, the input and the steps of a new one."""
    return replace(kept, output=new.output, input=new.input, steps=new.steps)


def undone(procedure: Procedure, number: int = 1) -> Procedure:
    """Return a procedure with the text of an earlier version, for `ProcedureMemory.update`.

    The text that it has now becomes the latest of its versions, so that this can be undone, too.

    Args:
        procedure: The procedure.
        number: Which of its versions: 1 for the latest.

    Raises:
        BadInput: It has no such version.
    """
    if not 1 <= number <= (count := len(procedure.versions)):
        raise BadInput(
            f"{procedure.id} has {count} earlier versions, and no version {number}; "
            "`stepcraft memory history ID` lists them"
        )
    version = procedure.versions[number - 1]
    steps = tuple(version["steps"])
    return replace(procedure, output=version["output"], input=version["input"], steps=steps)
