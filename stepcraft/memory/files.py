"""Reading procedures from text files, and writing them to JSONL."""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput, Failed, MemoryFailure
from stepcraft.files import named_path
from stepcraft.memory.procedure import Procedure, has_our_form, is_uuid
from stepcraft.records import Record, records
from stepcraft.text.lists import read_steps

FIELDS = (
    *("output", "input", "steps", "source", "id", "metadata", "tags", "key"),
    *("expires", "outcomes", "versions"),
)
"""The fields of a record; any others go into the metadata."""

_MAY_BE_JSON: dict[str, type] = {
    "input": list,
    "steps": list,
    "metadata": dict,
    "tags": dict,
    "outcomes": dict,
    "versions": list,
}
"""The fields that may be texts of JSON, as in a CSV file, and what they then hold."""

_log = logging.getLogger(__name__)


def read_procedures(
    path: str | Path, failed: list[Failed], *, fields: Mapping[str, str] | None = None
) -> Iterator[Procedure]:
    """Yield the procedures of a file.

    Steps are a list, or a text that holds a JSON list or numbered lines. An id that is no UUID, and
    fields such as tags that hold something else than ours, go into the metadata, as unknown fields
    do.

    Args:
        path: A .jsonl, .json (an array, or one object a line) or .csv (with a header) file, in
            UTF-8.
        failed: Takes the records that are none, with their lines.
        fields: The names of fields in the file where they differ, as in `{"output": "title"}`.

    Raises:
        BadInput: The file cannot be read, or none of its records is a procedure.
    """
    names = {field: field for field in FIELDS} | dict(fields or {})
    reason, is_read = "it is empty", False
    for record in records(Path(path)):
        try:
            yield _procedure(record, names)
            is_read = True
        except BadInput as error:
            reason = str(error)
            failed.append(Failed(f"{path}:{record.line}", reason))
    if not is_read:
        raise BadInput(
            f"no record of {path} is a procedure: {reason}. Say what its fields are called, as in "
            "--map output=title,input=ingredients,steps=directions"
        )


def read_all(path: str | Path) -> list[Procedure]:
    """Return all procedures of a file; a warning is logged for each record that is none.

    Raises:
        BadInput: As `read_procedures`.
    """
    failed: list[Failed] = []
    procedures = list(read_procedures(path, failed))
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
    draft = path.with_name(f".{path.name}.draft")
    try:
        with draft.open("w", encoding="utf-8") as file:
            for procedure in procedures:
                file.write(json_line(procedure) + "\n")
                written += 1
        draft.replace(path)
    except MemoryFailure:  # of the memory that is exported; it is an OSError, too
        raise
    except OSError as error:
        raise MemoryFailure(f"{path} cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):  # its name may be too long even if that of the file is not
            draft.unlink(missing_ok=True)
    return written


def json_line(procedure: Procedure) -> str:
    """Format a procedure as one line of JSON, which `read_procedures` reads."""
    return json.dumps(procedure.to_dict(), ensure_ascii=False)


def _procedure(record: Record, names: Mapping[str, str]) -> Procedure:
    if record.values is None:
        raise BadInput(record.reason)
    rest = {name: value for name, value in record.values.items() if value not in (None, "")}
    fields = {field: rest.pop(name) for field, name in names.items() if name in rest}
    if "id" in fields and not is_uuid(str(fields["id"])):
        rest["id"] = fields.pop("id")
    fields |= {
        field: _parsed(fields[field], kind)
        for field, kind in _MAY_BE_JSON.items()
        if field in fields
    }
    rest |= {name: fields.pop(name) for name in [*fields] if not has_our_form(name, fields[name])}
    if "key" in fields:
        fields["key"] = str(fields["key"])
    if isinstance(needs := fields.get("input"), list):
        fields["input"] = ", ".join(map(str, needs))
    if isinstance(steps := fields.get("steps"), str):
        fields["steps"] = read_steps(steps) or [steps]
    if isinstance(metadata := fields.setdefault("metadata", {}), dict):
        fields["metadata"] = {**rest, **metadata}
    others = {name: value for name, value in rest.items() if name not in FIELDS}
    return Procedure.from_dict({**others, "id": "", **fields})


def _parsed(value: Any, kind: type) -> Any:  # noqa: ANN401 - any JSON value
    """Parse a text that holds JSON of a kind; any other value is returned as it is."""
    if isinstance(value, str) and value.strip()[:1] in ("[", "{"):
        with suppress(ValueError, RecursionError):
            parsed = json.loads(value)
            return parsed if isinstance(parsed, kind) else value
    return value
