"""What stays with a procedure when it changes: its earlier versions, its votes, and what is known of each text.

All of it stands in the procedure's metadata, beside the user's own values, so that every memory keeps it and every copy
takes it along. `add` and `update` of the memories go through `changes`, `merged` and `revised`.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from typing_extensions import TypedDict

from stepcraft.errors import BadInput
from stepcraft.memory.procedure import Procedure

MAX_VERSIONS = 50
"""How many earlier versions a procedure keeps; the oldest one goes first."""

_OF_PROCEDURE = ("history", "votes", "also")
"""Lists that belong to a procedure whatever its text is; nothing that is added takes an entry out of them."""

_OF_TEXT = ("approved", "built", "stale")
"""What was said of one text: another text does not have it, and the earlier version takes it along."""


class Version(TypedDict):
    """An earlier version of a procedure."""

    output: str
    input: str
    steps: list[str]
    source: str
    metadata: dict[str, Any]
    """The metadata of this version, without what belongs to the procedure."""
    until: str
    """When it was replaced (ISO 8601, UTC)."""


def now() -> str:
    """The time in ISO 8601, UTC; to the microsecond, so that no two votes are the same."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def listed(value: Any) -> list[Any]:  # noqa: ANN401 - any JSON value
    """The entries under one of our names in metadata; a value of the user's that is no list is an entry, so that it stays."""
    if isinstance(value, list):
        entries: list[Any] = value
        return entries
    return [] if value is None else [value]


def latest(procedures: Iterable[Procedure]) -> dict[str, Procedure]:
    """Return the last procedure of each id, with the others of that id as its versions."""
    found: dict[str, Procedure] = {}
    for procedure in procedures:
        before = found.get(procedure.id, procedure)
        found[procedure.id] = procedure if before == procedure else merged(before, procedure)
    return found


def changes(kept: Mapping[str, Procedure], added: Iterable[Procedure]) -> dict[str, Procedure]:
    """Return what a memory has to write, by id.

    Args:
        kept: what is stored under the ids, as far as there is any.
        added: the procedures to add, one an id.
    """
    written: dict[str, Procedure] = {}
    for procedure in added:
        before = kept.get(procedure.id)
        if before is None:
            written[procedure.id] = procedure
        elif before != procedure and (whole := merged(before, procedure)) != before:
            written[procedure.id] = whole
    return written


def merged(kept: Procedure, added: Procedure) -> Procedure:
    """Return the procedure to store where one is added under the id of another.

    It is the added one, with the versions and votes of both. Where it differs from the stored one in more than these, the
    stored one becomes a version.
    """
    metadata = dict(added.metadata)
    if _text(kept) == _text(added):
        metadata = {
            name: kept.metadata[name] for name in _OF_TEXT if name in kept.metadata
        } | metadata
    for name in _OF_PROCEDURE:
        if name in kept.metadata:
            metadata[name] = _joined(name, kept.metadata[name], metadata.get(name))
    return _replacing(kept, added, metadata)


def revised(kept: Procedure, changed: Procedure) -> Procedure:
    """Return the procedure to store where `update` made one of another.

    Of the metadata, versions, votes and links are kept where the changed one leaves them out; all else is as it says.

    Raises:
        BadInput: the changed one has another id.
    """
    if changed.id != kept.id:
        raise BadInput(
            f"an update of {kept.id} made a procedure with the id {changed.id}; keep the id, as dataclasses.replace does"
        )
    stays = {name: kept.metadata[name] for name in _OF_PROCEDURE if name in kept.metadata}
    return _replacing(kept, changed, stays | dict(changed.metadata))


def versions(procedure: Procedure) -> list[Version]:
    """Return the earlier versions of a procedure, oldest first; what else stands there is left out."""
    return [
        _version(entry) for entry in listed(procedure.metadata.get("history")) if _is_version(entry)
    ]


def current(procedure: Procedure) -> Version:
    """Return the procedure as it is now in the form of its versions, with no end."""
    return Version(
        output=procedure.output,
        input=procedure.input,
        steps=list(procedure.steps),
        source=procedure.source,
        metadata={
            name: value for name, value in procedure.metadata.items() if name not in _OF_PROCEDURE
        },
        until="",
    )


def restored(number: int | None = None) -> Callable[[Procedure], Procedure]:
    """Return the change for `ProcedureMemory.update` that makes an earlier version the current one again.

    Args:
        number: the version, from 1 for the oldest; None for the last one before the current.

    Raises:
        BadInput: there is no such version (raised by the change).
    """

    def change(procedure: Procedure) -> Procedure:
        known = versions(procedure)
        place = len(known) if number is None else number
        if not known:
            raise BadInput(
                f"the procedure {procedure.id} has no earlier version; it has not been changed"
            )
        if not 1 <= place <= len(known):
            raise BadInput(
                f"the procedure {procedure.id} has no version {place}; its earlier versions are 1 to {len(known)}"
            )
        old = known[place - 1]
        return Procedure(
            id=procedure.id,
            output=old["output"],
            input=old["input"],
            steps=tuple(old["steps"]),
            source=old["source"],
            metadata=old["metadata"],
        )

    return change


def _replacing(kept: Procedure, new: Procedure, metadata: dict[str, Any]) -> Procedure:
    """The new procedure with this metadata, and with the kept one as its version where it was another."""
    if _own(kept) != _own(new):
        entries = listed(metadata.get("history"))
        brought = entries[len(listed(kept.metadata.get("history"))) :]
        replaced = current(kept)
        if not any(
            _is_version(entry) and {**_version(entry), "until": ""} == replaced for entry in brought
        ):
            metadata["history"] = [*entries, {**replaced, "until": now()}][-MAX_VERSIONS:]
    return Procedure.of_kept(
        id=kept.id,
        input=new.input,
        output=new.output,
        steps=new.steps,
        source=new.source,
        metadata=metadata,
    )


def _text(procedure: Procedure) -> tuple[object, ...]:
    return procedure.output, procedure.input, procedure.steps


def _own(procedure: Procedure) -> tuple[object, ...]:
    """What a version is told apart by: all but what is said of the procedure or of its text."""
    metadata = {
        name: value
        for name, value in procedure.metadata.items()
        if name not in (*_OF_PROCEDURE, *_OF_TEXT)
    }
    return *_text(procedure), procedure.source, metadata


def _joined(name: str, kept: Any, added: Any) -> object:  # noqa: ANN401 - any JSON values
    """Both lists, each entry once; of two values of the user's that are no lists the added one counts."""
    if added is None:
        return kept
    if not isinstance(kept, list) and not isinstance(added, list):
        return added
    known = listed(kept)
    new = [entry for entry in listed(added) if entry not in known]
    if not new:
        return known
    return sorted([*known, *new], key=_date) if name == "history" else [*known, *new]


def _date(entry: Any) -> str:  # noqa: ANN401 - any JSON value
    return str(entry.get("until", "")) if isinstance(entry, dict) else ""


def _is_version(entry: Any) -> bool:  # noqa: ANN401 - any JSON value
    if not isinstance(entry, dict):
        return False
    values: dict[str, Any] = entry
    steps: Any = values.get("steps")
    return (
        all(isinstance(values.get(name), str) for name in ("output", "input"))
        and isinstance(steps, list)
        and all(isinstance(step, str) for step in cast("list[object]", steps))
        and isinstance(values.get("source") or "", str)
        and isinstance(values.get("metadata") or {}, dict)
    )


def _version(entry: Any) -> Version:  # noqa: ANN401 - a JSON object
    return Version(
        output=entry["output"],
        input=entry["input"],
        steps=entry["steps"],
        source=entry.get("source") or "",
        metadata=entry.get("metadata") or {},
        until=str(entry.get("until") or ""),
    )
