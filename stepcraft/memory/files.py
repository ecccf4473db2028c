"""Reading procedures from JSONL, JSON and CSV files, and writing them to JSONL."""

import json
import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from stepcraft.errors import AddReport, AddStopped, BadInput, Failed, MemoryFailure
from stepcraft.files import named_path
from stepcraft.memory.procedure import Procedure, is_uuid
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.records import check_file, records
from stepcraft.text.lists import read_steps

FIELDS = ("output", "input", "steps", "source", "id", "metadata")
"""The fields of a record; any others go into the metadata."""

MAX_BYTES = 200_000_000
"""The largest file that is a memory itself; larger ones can be imported."""

_NEEDED = FIELDS[:3]
_log = logging.getLogger(__name__)


def read_procedures(
    path: str | Path, *, fields: Mapping[str, str] | None = None
) -> Iterator[tuple[int, Procedure | Failed]]:
    """Yield the line of each record with its procedure, or with the reason why it is none.

    Steps are a list, or a text that holds a JSON list or numbered lines. An id that is no UUID goes
    into the metadata, as unknown fields do.

    Args:
        path: A .jsonl, .json (an array, or one object a line) or .csv (with a header) file, in
            UTF-8.
        fields: The names of fields in the file where they differ, as in `{"output": "title"}`.

    Raises:
        BadInput: The file cannot be read, has no records, or none of them has the fields of a
            procedure.
    """
    if unknown := (fields or {}).keys() - set(FIELDS):
        raise BadInput(
            f"{min(unknown)!r} is no field of a procedure; the fields are {', '.join(FIELDS)}"
        )
    names = {field: field for field in FIELDS} | dict(fields or {})
    needed = {names[field] for field in _NEEDED}
    seen: set[str] = set()
    total = foreign = 0
    for record in records(Path(path)):
        total += 1
        reason = record.reason
        if record.values is not None and (missing := needed - record.values.keys()):
            foreign += 1
            seen.update(record.values)
            reason = f"it has no {' and no '.join(map(repr, sorted(missing)))}"
        if record.values is not None and not reason:
            try:
                yield record.line, _procedure(record.values, names)
                continue
            except BadInput as error:
                reason = str(error)
        yield record.line, Failed(f"{path}:{record.line}", reason)
    if not total:
        raise BadInput(f"{path} is empty: it holds no records")
    if foreign == total:
        raise BadInput(
            f"no record of {path} has the fields {', '.join(names[field] for field in _NEEDED)}; "
            f"they have {', '.join(sorted(seen))[:300] or 'none'}. "
            "Say what they are called, such as "
            "--map output=title,input=ingredients,steps=directions"
        )


def import_file(
    memory: ProcedureMemory,
    path: str | Path,
    *,
    fields: Mapping[str, str] | None = None,
    progress: Callable[[int], None] | None = None,
) -> AddReport:
    """Add the procedures of a file to a memory; the report lists the records that are none.

    Raises:
        BadInput: As `read_procedures`; nothing was added.
        AddStopped, MemoryFailure: As `ProcedureMemory.add`.
    """
    unread: list[Failed] = []
    lines: dict[str, int] = {}

    def readable() -> Iterator[Procedure]:
        for line, outcome in read_procedures(path, fields=fields):
            if isinstance(outcome, Failed):
                unread.append(outcome)
            else:
                lines[outcome.id] = line
                yield outcome

    def by_line(refused: list[Failed]) -> list[Failed]:
        return [*unread, *(Failed(f"{path}:{lines[each.where]}", each.reason) for each in refused)]

    try:
        report = memory.add(readable(), progress=progress)
    except AddStopped as stop:
        stop.report.failed = by_line(stop.report.failed)
        raise
    report.failed = by_line(report.failed)
    return report


def read_all(path: str | Path) -> list[Procedure]:
    """Return all procedures of a file; a warning is logged for each record that is none.

    Raises:
        BadInput: As `read_procedures`, or no record is a procedure, or the file is too large to be
            held in memory.
    """
    check_file(Path(path))
    if named_path(path).stat().st_size > MAX_BYTES:
        raise BadInput(
            f"{path} is larger than {MAX_BYTES // 1_000_000} MB, too large to be read into memory; "
            "import it into a .db file"
        )
    procedures: list[Procedure] = []
    failed: list[Failed] = []
    for _, outcome in read_procedures(path):
        if isinstance(outcome, Failed):
            failed.append(outcome)
        else:
            procedures.append(outcome)
    if not procedures:
        raise BadInput(f"no record of {path} is a procedure; {failed[0].where}: {failed[0].reason}")
    for failure in failed:
        _log.warning("%s is left out: %s", failure.where, failure.reason)
    return procedures


def write_jsonl(procedures: Iterable[Procedure], path: str | Path) -> int:
    """Write procedures, one JSON object a line, and return how many; an error leaves an old file.

    Raises:
        BadInput: No file can have this path.
        MemoryFailure: The file cannot be written.
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
        if isinstance(error, MemoryFailure):
            raise
        raise MemoryFailure(f"{path} cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):  # its name may be too long even if that of the file is not
            draft.unlink(missing_ok=True)
    return written


def json_line(procedure: Procedure) -> str:
    """Format a procedure as one line of JSON, which `read_procedures` reads."""
    return json.dumps(procedure.to_dict(), ensure_ascii=False)


def _procedure(values: Mapping[str, Any], names: Mapping[str, str]) -> Procedure:
    filled = {name: value for name, value in values.items() if value not in (None, "")}
    fields = {field: filled.pop(name) for field, name in names.items() if name in filled}
    metadata = _parsed(fields.pop("metadata", {}))
    if not isinstance(metadata, Mapping):
        filled["metadata"], metadata = metadata, {}
    if "id" in fields and not is_uuid(str(fields["id"])):
        filled["id"] = fields.pop("id")
    steps: Any = _parsed(fields.get("steps", []))
    if isinstance(steps, str):
        steps = read_steps(steps) or [steps]
    return Procedure(
        input=_joined(fields.get("input", "")),
        output=_joined(fields.get("output", "")),
        steps=steps,
        id=str(fields.get("id", "")),
        source=_joined(fields.get("source", "")),
        metadata={**filled, **metadata},
    )


def _joined(value: object) -> Any:  # noqa: ANN401 - Procedure refuses anything but texts
    """Join a list of texts, or a text that holds one, with commas."""
    items = _parsed(value)
    is_texts = isinstance(items, list) and all(isinstance(item, str) for item in items)
    return ", ".join(items) if is_texts else value


def _parsed(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Parse a text that holds a JSON list or object; any other value is returned as it is."""
    if isinstance(value, str) and value.strip()[:1] in ("[", "{"):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value
