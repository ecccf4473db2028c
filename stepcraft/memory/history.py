"""Earlier versions of a procedure, stored with it, and when, why and by whom each was replaced."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

from stepcraft.errors import BadInput
from stepcraft.memory.procedure import Content, Procedure

MOST_VERSIONS = 20
"""The number of earlier versions that are kept for a procedure; older ones are dropped."""

MARKS = ("approved", "stale")
"""Metadata that applies to one text only: approving it does not approve the next one."""

_reason: ContextVar[tuple[str, str]] = ContextVar("reason", default=("", ""))


@contextmanager
def reason(why: str, by: str = "") -> Generator[None]:
    """Record why, and by whom, procedures are changed within the block."""
    token = _reason.set((why, by))
    try:
        yield
    finally:
        _reason.reset(token)


def content_of(written: Procedure | Mapping[str, Any]) -> Content:
    """Return the content of a procedure, a draft or a version."""
    fields = vars(written) if isinstance(written, Procedure) else written
    return Content(output=fields["output"], input=fields["input"], steps=[*fields["steps"]])


def same_text(first: Procedure, second: Procedure) -> bool:
    """Return whether two procedures have the same text, regardless of source and metadata."""
    return content_of(first) == content_of(second)


def is_earlier(procedure: Procedure, stored: Procedure) -> bool:
    """Return whether a procedure is an earlier version of the stored one."""
    state = _state_of(procedure)
    # The oldest versions were stored without tags and expiry.
    return any({**state, **each}.items() >= state.items() for each in stored.versions)


def had_text(stored: Procedure, procedure: Procedure) -> bool:
    """Return whether a procedure has the text of an earlier version, not of the stored one."""
    texts = map(content_of, stored.versions)
    return not same_text(stored, procedure) and content_of(procedure) in texts


def with_versions(stored: Procedure, new: Procedure) -> Procedure:
    """Return the replacement for a stored procedure, with the stored one among its versions.

    Changing anything but the text, the tags or the expiry creates no new version.
    """
    earlier = (*stored.versions, *(each for each in new.versions if each not in stored.versions))
    if earlier != stored.versions:  # an import of another history
        earlier = (*sorted(earlier, key=itemgetter("at"), reverse=True),)
    state = _state_of(stored)
    if state != _state_of(new):
        why, by = _reason.get()
        at = datetime.now(UTC).isoformat(timespec="seconds")
        marks = {name: mark for name in MARKS if (mark := stored.metadata.get(name))}
        latest: Any = {**state, **marks, "at": at, "why": why, "by": by}
        earlier = (latest, *earlier)
    earlier = earlier[:MOST_VERSIONS]
    return new if earlier == new.versions else replace(new, versions=earlier)


def with_text(kept: Procedure, new: Procedure | Mapping[str, Any]) -> Procedure:
    """Return the stored procedure with the output, the input and the steps of a new one.

    If the text differs, the result is neither approved nor stale.
    """
    content: dict[str, Any] = {**content_of(new)}
    return _marked(replace(kept, **content), kept, {})


def _marked(changed: Procedure, before: Procedure, marks: Mapping[str, Any]) -> Procedure:
    """Return a changed procedure with its own `MARKS` in place of the earlier ones."""
    if same_text(changed, before):
        return changed
    others = {name: each for name, each in changed.metadata.items() if name not in MARKS}
    return replace(changed, metadata={**others, **marks})


def undone(procedure: Procedure, number: int = 1) -> Procedure:
    """Return an earlier version of a procedure, for `ProcedureMemory.update`.

    The version that it replaces becomes the latest earlier one, so an undo can be undone too. An
    earlier text is approved or stale if it was so then.

    Args:
        procedure: The procedure.
        number: The number of the version, where 1 is the latest.

    Raises:
        BadInput: The procedure has no such version.
    """
    if not 1 <= number <= (count := len(procedure.versions)):
        raise BadInput(
            f"{procedure.id} has {count} earlier versions, and no version {number}; "
            "`stepcraft memory history ID` lists them"
        )
    version = procedure.versions[number - 1]
    state = _state_of(procedure)
    earlier: dict[str, Any] = {name: version.get(name, state[name]) for name in state}
    marks = {name: mark for name in MARKS if (mark := version.get(name))}
    return _marked(replace(procedure, **earlier), procedure, marks)


def _state_of(procedure: Procedure) -> dict[str, Any]:
    """Return the fields that a version records."""
    tags = {**procedure.tags}
    return {**content_of(procedure), "tags": tags, "expires": procedure.expires}
