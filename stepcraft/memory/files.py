"""Reading procedures from text files, and writing them to JSONL."""

import ast
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput, Failed, MemoryFailure
from stepcraft.files import named_path
from stepcraft.memory.procedure import Procedure, has_our_form
from stepcraft.records import Record, file_encoding, records
from stepcraft.text.lists import read_steps
from stepcraft.text.sentences import sentences

FIELDS = (
    *("output", "input", "steps", "source", "id", "metadata", "tags", "key"),
    *("expires", "outcomes", "versions"),
)
"""The fields of a record; any others go into the metadata."""

_MAY_BE_JSON = ("metadata", "tags", "outcomes", "versions")
"""The fields that may be texts of JSON, as in a CSV file."""

_OTHER_NAMES = {
    "output": ("title", "name", "goal", "headline"),
    "input": ("recipeingredient", "ingredients", "needs", "resources", "supply", "tool"),
    "steps": ("recipeinstructions", "instructions", "directions", "step", "method"),
}
_TEXTS = ("text", "step", "itemListElement", "instruction", "description", "name")
"""The fields of a step that is an object, schema.org's among them."""


def _r_vector(text: str) -> object:
    """Read a vector of R, such as c("flour", "yeast")."""
    return ast.literal_eval(text.removeprefix("c"))


_LISTS = (
    (re.compile(r"\[|\{"), json.loads),
    (re.compile(r"\["), ast.literal_eval),
    (re.compile(r"c\("), _r_vector),
)
_PIPED = re.compile(r"[^|\n]*[^|\s](?:\|[^|\s][^|\n]*)+")
"""Items with a bar between them; one with blanks around it joins commands of a shell."""

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
    for record in (each for wrapped in records(Path(path)) for each in _unwrapped(wrapped, names)):
        try:
            yield _procedure(record, names)
            is_read = True
        except BadInput as error:
            reason = str(error)
            failed.append(Failed(f"{path}:{record.line}", reason))
    if note := file_encoding(named_path(path)).note:
        _log.warning("%s: %s", path, note)
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


def _unwrapped(record: Record, names: Mapping[str, str]) -> Iterator[Record]:
    """Yield a record, or the records that it holds: in a list, or by names of their own."""
    values = record.values or {}
    if names["output"] not in values and not _named(values, "output"):
        lists = [each for each in values.values() if isinstance(each, list)]
        inside = next((each for each in lists if each and isinstance(each[0], dict)), None)
        if inside is None and values and all(isinstance(each, dict) for each in values.values()):
            inside = [*values.values()]
        if inside is not None:
            for each in inside:
                is_record = isinstance(each, dict)
                reason = "" if is_record else "it is no object with fields"
                yield Record(record.line, each if is_record else None, reason)
            return
    yield record


def _named(values: Mapping[str, Any], field: str) -> str:
    """Return the name under which a record has a field in the words of others, "" if it has none.

    Those are schema.org's, and what collections of recipes use.
    """
    names = {name.lower(): name for name in values}
    return next((names[each] for each in _OTHER_NAMES[field] if each in names), "")


def _procedure(record: Record, names: Mapping[str, str]) -> Procedure:
    if record.values is None:
        raise BadInput(record.reason)
    rest = {name: value for name, value in record.values.items() if value not in (None, "")}
    fields = {field: rest.pop(name) for field, name in names.items() if name in rest}
    for field in _OTHER_NAMES.keys() - fields.keys():
        if name := _named(rest, field):
            fields[field] = rest.pop(name)
            is_piped = isinstance(fields[field], str) and _PIPED.fullmatch(fields[field])
            if is_piped and field != "output":
                fields[field] = fields[field].split("|")
    fields |= {field: _parsed(fields[field]) for field in _MAY_BE_JSON if field in fields}
    rest |= {name: fields.pop(name) for name in [*fields] if not has_our_form(name, fields[name])}
    if "key" in fields:
        fields["key"] = str(fields["key"])
    if "input" in fields and len(needs := texts_of(fields["input"])) > 1:
        fields["input"] = ", ".join(needs)
    if "steps" in fields:
        steps = texts_of(fields["steps"])
        fields["steps"] = _steps(steps[0]) if steps == [fields["steps"]] else steps
    if isinstance(metadata := fields.setdefault("metadata", {}), dict):
        fields["metadata"] = {**rest, **metadata}
    others = {name: value for name, value in rest.items() if name not in FIELDS}
    return Procedure.from_dict({**others, **fields})


def _steps(text: str) -> list[str]:
    """Return the steps of one text: its items or lines, else its sentences."""
    steps = read_steps(text) or [text]
    return [each.strip() for each in sentences(text)] if len(steps) == 1 else steps


def texts_of(value: object) -> list[str]:
    """Return the texts of a list as people write them.

    That is a list of texts, or of objects with one, or an object of numbered texts; or a text that
    holds one in JSON, Python or R. Any other text is one.
    """
    if isinstance(value, str):
        text = value.strip()
        for beginning, read in _LISTS:
            if beginning.match(text):
                with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                    if isinstance(items := read(text), list | tuple | dict) and items:
                        return texts_of([*items] if isinstance(items, tuple) else items)
        return [value]
    if isinstance(value, dict):
        named = [value[name] for name in _TEXTS if value.get(name)]
        inside = named[0] if named else [*value.values()]
        return texts_of(inside)
    if isinstance(value, list):
        return [text for item in value for text in (texts_of(item) if item else [])]
    return [str(value)]


def _parsed(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Parse a text that holds a list or an object; any other value is returned as it is."""
    if isinstance(value, str) and value.strip()[:1] in ("[", "{"):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value
