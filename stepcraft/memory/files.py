"""Reading procedures from JSONL, JSON and CSV files, and writing them to JSONL."""

import json
import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from stepcraft.errors import AddReport, AddStopped, BadInput, Failed, MemoryFailure
from stepcraft.files import named_path
from stepcraft.memory.procedure import Procedure, is_uuid
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.records import check_file, records
from stepcraft.text.lists import read_steps

__all__ = [
    "FIELDS",
    "check_file",
    "import_file",
    "json_line",
    "read_all",
    "read_procedures",
    "write_jsonl",
]

FIELDS = ("output", "input", "steps", "source", "id", "metadata")
"""The fields of a record; any others go into the metadata."""

MAX_BYTES = 200_000_000
"""The largest file that is a memory itself; larger ones can be imported."""

_NEEDED = ("output", "input", "steps")
_NAMED_FIELDS = 100
_log = logging.getLogger(__name__)


def read_procedures(
    path: str | Path, *, fields: Mapping[str, str] | None = None
) -> Iterator[tuple[int, Procedure | Failed]]:
    """Read a file, and yield the line of each record with its procedure, or with the reason why it is none.

    Steps are a list, or a text that holds a JSON list or numbered lines. An id that is no UUID goes into the metadata,
    as unknown fields do.

    Args:
        path: a .jsonl, .json (an array, or one object a line) or .csv (with a header) file, in UTF-8.
        fields: the names of fields in the file where they differ, as in `{"output": "title"}`.

    Raises:
        BadInput: the file cannot be read, has no records, or none of them has the fields of a procedure.
    """
    names = _column_names(fields or {})
    found: set[str] = set()
    total = foreign = 0
    for record in records(Path(path)):
        total += 1
        missing = (
            []
            if record.values is None
            else [name for name in _NEEDED if names[name] not in record.values]
        )
        if missing:
            foreign += 1
            found |= set(islice(record.values or (), _NAMED_FIELDS - len(found)))
        yield (
            record.line,
            _outcome(f"{path}:{record.line}", record.values, record.reason, missing, names),
        )
    if not total:
        raise BadInput(f"{path} is empty: it holds no records")
    if foreign == total:
        raise BadInput(
            f"no record of {path} has the fields {', '.join(names[name] for name in _NEEDED)}; "
            f"they have {', '.join(sorted(found))[:300] or 'none'}. "
            "Say what they are called, such as --map output=title,input=ingredients,steps=directions"
        )


def import_file(
    memory: ProcedureMemory,
    path: str | Path,
    *,
    fields: Mapping[str, str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> AddReport:
    """Add the procedures of a file to a memory; records that cannot be read are listed in the report.

    Raises:
        BadInput: as `read_procedures`; nothing was added.
        AddStopped, MemoryFailure: as `ProcedureMemory.add`.
    """
    unread: list[Failed] = []

    def readable() -> Iterator[Procedure]:
        for _, outcome in read_procedures(path, fields=fields):
            if isinstance(outcome, Failed):
                unread.append(outcome)
            else:
                yield outcome

    try:
        report = memory.add(readable(), progress=progress)
    except AddStopped as stop:
        stop.report.failed = unread + _with_lines(stop.report.failed, path, fields)
        raise
    report.failed = unread + _with_lines(report.failed, path, fields)
    return report


def _with_lines(
    failed: list[Failed], path: str | Path, fields: Mapping[str, str] | None
) -> list[Failed]:
    """Name lines instead of ids; the file is read again, because all its lines may not fit into memory."""
    if not failed:
        return []
    names = {failure.where for failure in failed}
    lines = {
        outcome.id: line
        for line, outcome in read_procedures(path, fields=fields)
        if isinstance(outcome, Procedure) and outcome.id in names
    }
    return [Failed(f"{path}:{lines[failure.where]}", failure.reason) for failure in failed]


def read_all(path: str | Path) -> list[Procedure]:
    """Read all procedures of a file; a warning is logged for each record that is none.

    Raises:
        BadInput: as `read_procedures`, or no record is a procedure, or the file is too large to be held in memory.
    """
    check_file(Path(path))
    if named_path(path).stat().st_size > MAX_BYTES:
        raise BadInput(
            f"{path} is larger than {MAX_BYTES // 1_000_000} MB, too large to be read into memory; import it into a .db file"
        )
    outcomes = [outcome for _, outcome in read_procedures(path)]
    failed = [outcome for outcome in outcomes if isinstance(outcome, Failed)]
    procedures = [outcome for outcome in outcomes if isinstance(outcome, Procedure)]
    if not procedures:
        raise BadInput(f"no record of {path} is a procedure; {failed[0].where}: {failed[0].reason}")
    for failure in failed:
        _log.warning("%s is left out: %s", failure.where, failure.reason)
    return procedures


def write_jsonl(procedures: Iterable[Procedure], path: str | Path) -> int:
    """Write procedures to a file, one JSON object a line, and return how many; an error leaves an old file unchanged.

    Raises:
        BadInput: no file can have this path.
        MemoryFailure: the file cannot be written.
    """
    path, written = named_path(path), 0
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with draft.open("x", encoding="utf-8") as file:
            for procedure in procedures:
                file.write(json_line(procedure) + "\n")
                written += 1
        draft.replace(path)
    except OSError as error:
        raise MemoryFailure(f"{path} cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):  # its name may be too long even if that of the file is not
            draft.unlink(missing_ok=True)
    return written


def json_line(procedure: Procedure) -> str:
    """Format a procedure as one line of JSON, which `read_procedures` reads."""
    return json.dumps(procedure.to_dict(), ensure_ascii=False)


def _column_names(fields: Mapping[str, str]) -> dict[str, str]:
    for field in fields:
        if field not in FIELDS:
            raise BadInput(
                f"{field!r} is no field of a procedure; the fields are {', '.join(FIELDS)}"
            )
    return {field: fields.get(field, field) for field in FIELDS}


def _outcome(
    where: str,
    values: Mapping[str, Any] | None,
    reason: str,
    missing: list[str],
    names: Mapping[str, str],
) -> Procedure | Failed:
    if values is None:
        return Failed(where, reason)
    if missing:
        return Failed(where, f"it has no {' and no '.join(repr(names[name]) for name in missing)}")
    try:
        return _procedure(values, names)
    except BadInput as error:
        return Failed(where, str(error))


def _procedure(values: Mapping[str, Any], names: Mapping[str, str]) -> Procedure:
    known = {
        field: values[name] for field, name in names.items() if values.get(name) not in (None, "")
    }
    extra = {
        name: value
        for name, value in values.items()
        if name not in names.values() and value not in (None, "")
    }
    metadata = _listed(known.get("metadata", {}))
    if not isinstance(metadata, Mapping):
        extra, metadata = {**extra, "metadata": metadata}, {}
    id = str(known.get("id", ""))  # noqa: A001 - the field is called id
    if id and not is_uuid(id):
        extra, id = {"id": known["id"], **extra}, ""  # noqa: A001 - the field is called id
    return Procedure(
        input=_joined(known.get("input", "")),
        output=_joined(known.get("output", "")),
        steps=_steps(known.get("steps", [])),
        id=id,
        source=_joined(known.get("source", "")),
        metadata={**extra, **metadata},
    )


def _joined(value: object) -> Any:  # noqa: ANN401 - Procedure refuses anything but texts
    """Join a list of texts, or a text that holds one, with commas."""
    items = _listed(value)
    if isinstance(items, str | Mapping):
        return value
    try:
        return ", ".join(items)
    except TypeError:
        return value


def _steps(value: object) -> Any:  # noqa: ANN401 - Procedure refuses anything but lists
    """Split a text that holds a JSON list or numbered lines into steps; a list is returned as it is."""
    items = _listed(value)
    return (read_steps(items) or [items]) if isinstance(items, str) else items


def _listed(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Parse a text that holds a JSON list or object; any other value is returned as it is."""
    if isinstance(value, str) and value.strip()[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value
