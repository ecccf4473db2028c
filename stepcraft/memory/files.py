"""Read procedures from text files, and write them to JSONL."""

import ast
import json
import logging
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import chain
from pathlib import Path
from shutil import copymode
from typing import Any
from uuid import uuid4

from langchain_core.utils.iter import batch_iterate

from stepcraft.errors import BadInput, Failed, MemoryFailure
from stepcraft.files import named_path
from stepcraft.memory.history import MARKS, had_text, with_text
from stepcraft.memory.procedure import FIELDS, Procedure, check_has_all, has_our_form
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.records import Record, file_encoding, records
from stepcraft.secrets import excerpt
from stepcraft.text.lists import outside_steps, read_steps
from stepcraft.text.markdown import code_blocks
from stepcraft.text.sentences import sentences

_OTHER_NAMES = {
    "output": ("title", "name", "goal", "headline"),
    "input": ("recipeingredient", "ingredients", "needs", "resources", "supply", "tool"),
    "steps": ("recipeinstructions", "instructions", "directions", "step", "method"),
}
_TEXTS = ("text", "step", "itemListElement", "instruction")
"""The fields of a step object that can hold its text, including those of schema.org."""
_TITLES = ("description", "name")
"""The fields used if a schema.org object, or one with a single field, has none of `_TEXTS`."""
_OF_SCHEMA = ("name", "description", "requiredQuantity", *_TEXTS)
"""The fields of a schema.org object that say what to do or what is needed."""
_ORDER = re.compile(
    r"(?:\w*[_-])?u?u?id|steps?[_ -]?(?:number|no|index|id)"
    r"|(?:image|photo|video|thumbnail)\w*|(?:created|updated)\w*|@\w+",
    re.IGNORECASE,
)
"""The fields of an object that only give its place in a list, in a database or on a page."""
_COUNTS = ("number", "position")
"""The fields that give an object's position in a list if their values count up, as in 1, 2, 3."""
OUTSIDE = "outside_steps"
"""The metadata key for the lines that belong to no step."""
_NO = re.compile(r"\s*(?:no|not|n|false|f|0|none|never|-)\s*", re.IGNORECASE)
_NUMBERED = re.compile(
    r"[(#\s]*(?:(?:(?:step|stage|phase|item|ing(?:redient)?|instruction|direction)s?|schritt"
    r"|[e\u00e9]tape|paso|passo|stap|steg|krok|\u0448\u0430\u0433|\u6b65[\u9aa4\u9a5f]"
    r"|\u624b\u9806|\ub2e8\uacc4)[\W_]*)?\d{1,9}(?:\.0)?[.):\s]*",
    re.IGNORECASE,
)
"""A position in a list, such as "2." or "Step 2", in several languages; "M8" is a name."""
_WITH_NUMBER = re.compile(r"(\D*)(\d{1,9})")
_KIND = re.compile(
    r"(?:how_?to_?)?(?:text|step|section|instruction|direction|paragraph|list_?item|item|task"
    r"|action|command|code)",
    re.IGNORECASE,
)
_ORDER_IF = (
    (re.compile(r"order|index|idx|no|num|step", re.IGNORECASE), _NUMBERED),
    (re.compile(r"type|kind", re.IGNORECASE), _KIND),
)
"""Fields that belong to `_ORDER` if their value has this form: "no" may also be an answer."""
_AT_ONCE = 1_000
"""The number of procedures that are looked up in a memory at once."""
_MAX_AROUND = 1_000
"""The maximum length of a field around records that goes into the metadata of each."""


def _r_vector(text: str) -> object:
    """Read an R vector, such as c("flour", "yeast")."""
    return ast.literal_eval(f"[{text[2:].removesuffix(')')}]")


_LISTS = ((("[", "{"), json.loads), ("[", ast.literal_eval), ("c(", _r_vector))
"""The beginnings of texts that contain a list (JSON, Python or R), and functions that read them."""
_PIPED = re.compile(r"[^|\n]*[^|\s](?:\|[^|\s][^|\n]*)+")
"""Matches items separated by `|` without spaces; a `|` with spaces is taken for a shell pipe."""

_log = logging.getLogger(__name__)


def read_procedures(
    path: str | Path,
    failed: list[Failed],
    *,
    fields: Mapping[str, str] | None = None,
    memory: ProcedureMemory | None = None,
) -> Iterator[Procedure]:
    """Yield the procedures in a file.

    Steps can be a list, or a string that contains a JSON list or numbered lines. An id that is not
    a UUID goes into the metadata, as do unknown fields, fields such as tags whose values do not
    have the expected form, the short fields of an object around several records, and, as
    `outside_steps`, the lines around a list of steps. A field that `fields` names for `expires`
    must contain dates.

    A record that has the text of an earlier one but other tags is refused, unless it has a key or
    id.

    Args:
        path: A .jsonl, .json (an array, or one object per line) or .csv (with a header) file in
            UTF-8.
        failed: Receives the records that are not procedures, with their line numbers.
        fields: A mapping from our field names to those in the file, where they differ, as in
            `{"output": "title"}`. With `{"tags": "team"}`, a text in the field team is the value of
            a tag with this name.
        memory: The memory that will receive them. If it has a later version of a record without a
            key or id, the later text is kept, with a warning.

    Raises:
        BadInput: The file cannot be read, it is a table without a column that `fields` names, or
            none of its records is a procedure.
    """
    for batch in batch_iterate(_AT_ONCE if memory else 1, _read(path, failed, dict(fields or {}))):
        derived = [procedure.id for _, procedure, has_id in batch if not has_id]
        kept = memory.get_many(derived) if memory else {}
        for place, procedure, has_id in batch:
            stored = None if has_id else kept.get(procedure.id)
            if stored and had_text(stored, procedure):
                _log.warning("%s: the memory has a later version, which is kept", place)
                yield with_text(procedure, stored)
            else:
                yield procedure


def _read(
    path: str | Path, failed: list[Failed], given: Mapping[str, str]
) -> Iterator[tuple[str, Procedure, bool]]:
    """Yield the procedures in a file with their places, and whether they have a key or id."""
    # What is given comes first, since a column may have the name of another field.
    names = {**given, **{field: field for field in FIELDS if field not in given}}
    reason, is_read = "it is empty", False
    tags: dict[str, Mapping[str, str]] = {}
    is_table = Path(path).suffix.lower() in {".csv", ".tsv"}
    found = (
        (_with_our_names(each, given), around)
        for wrapped in records(Path(path))
        for each, around in _unwrapped(wrapped, names)
    )
    for record, around in found:
        columns = record.values if is_table else None
        if columns and (unknown := {*given.values()} - {*columns}):
            raise BadInput(
                f"{path} has no column {min(unknown)!r}; its columns are {', '.join(columns)}"
            )
        place = f"{path}:{record.line}"
        try:
            procedure = _procedure(record, names, given)
            if around:
                metadata = {**_unmarked(around), **procedure.metadata}
                procedure = replace(procedure, metadata=metadata)
            id_ = (record.values or {}).get(names["id"])
            has_id = bool(procedure.key) or has_our_form("id", id_)
            if procedure.tags and not has_id:
                _check_tags(procedure, tags)
            yield place, procedure, has_id
            is_read = True
        except BadInput as error:
            reason = str(error)
            failed.append(Failed(place, reason))
    if note := file_encoding(named_path(path)).note:
        _log.warning("%s: %s", path, note)
    if not is_read:
        raise BadInput(
            f"no record of {path} is a procedure: {reason}. Say what its fields are called, as in "
            "--map output=title,input=ingredients,steps=directions"
        )


def read_all(path: str | Path) -> list[Procedure]:
    """Return all procedures in a file, logging a warning for each record that is not one.

    Raises:
        BadInput: As for `read_procedures`.
    """
    failed: list[Failed] = []
    procedures = list(read_procedures(path, failed))
    for failure in failed:
        _log.warning("%s is left out: %s", failure.where, failure.reason)
    return procedures


def write_jsonl(procedures: Iterable[Procedure], path: str | Path) -> int:
    """Write procedures as JSON Lines and return how many; an error leaves the file unchanged.

    If the path is a symbolic link, the file that it leads to is written; it keeps its mode.

    Raises:
        BadInput: The path is not a valid file path.
        MemoryFailure: The file cannot be written.
    """
    # Unlike `resolve`, this keeps a link that leads to itself.
    path, written = Path(os.path.realpath(named_path(path))), 0
    draft = path.with_name(f".{path.name}.{uuid4().hex[:8]}.draft")  # two exports can run at once
    try:
        with draft.open("w", encoding="utf-8") as file:
            if path.exists():
                copymode(path, draft)
            for procedure in procedures:
                file.write(json_line(procedure) + "\n")
                written += 1
        draft.replace(path)
    except MemoryFailure:  # from the memory being exported; it is an OSError too
        raise
    except OSError as error:
        raise MemoryFailure(f"{path} cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):  # its name may be too long even if the file's own is not
            draft.unlink(missing_ok=True)
    return written


def json_line(procedure: Procedure) -> str:
    """Format a procedure as one line of JSON that `read_procedures` can read."""
    return json.dumps(procedure.to_dict(), ensure_ascii=False)


def _unwrapped(
    record: Record, names: Mapping[str, str]
) -> Iterator[tuple[Record, Mapping[str, Any]]]:
    """Yield the records nested in a record as a list or as field values, or else the record.

    Each comes with the short fields of the record around it; a warning names any longer ones.
    """
    values = record.values or {}
    has = {field: names[field] in values or bool(_named(values, field)) for field in _OTHER_NAMES}
    lists = [each for each in (record.items, *values.values()) if isinstance(each, list)]
    groups = [each for each in lists if any(_is_procedure(item, names) for item in each)]
    if has["output"] and (has["steps"] or has["input"] or not groups):
        yield record, {}
        return
    groups = groups or [each for each in lists if each and isinstance(each[0], dict)][:1]
    inside = [*chain.from_iterable(groups)]
    if not inside and all(isinstance(each, dict) for each in values.values()):
        inside = groups = [*values.values()]
    said = {name: each for name, each in values.items() if each and each not in groups}
    around = {name: each for name, each in said.items() if len(str(each)) <= _MAX_AROUND}
    if inside and (long := ", ".join(sorted(said.keys() - around.keys()))[:300]):
        _log.warning("line %s: fields around the records are left out: %s", record.line, long)
    for each in inside:
        if isinstance(each, dict):
            yield Record(record.line, each), around
        else:
            yield Record(record.line, None, "it is no object with fields"), {}
    if not inside:
        yield record, {}


def _is_procedure(value: object, names: Mapping[str, str]) -> bool:
    """Return whether a value from a list has fields for an output and for steps."""
    return isinstance(value, dict) and all(
        names[field] in value or _named(value, field) for field in ("output", "steps")
    )


def _named(values: Mapping[str, Any], field: str) -> list[str]:
    """Return the names that a record uses for a field, in any case, the likeliest first.

    Other names than ours come from schema.org and from collections of recipes.
    """
    names = {name.lower(): name for name in values}
    return [names[each] for each in (field, *_OTHER_NAMES[field]) if each in names]


def _with_our_names(record: Record, given: Mapping[str, str]) -> Record:
    """Return a record with the names of our fields in lower case; a table may capitalise them."""
    values = record.values or {}
    found = {name.lower(): name for name in values if name not in given.values()}
    capitalised = found.keys() & {*FIELDS} - given.keys() - values.keys()
    ours = {found[field]: field for field in capitalised}
    if not ours:
        return record
    return replace(record, values={ours.get(name, name): each for name, each in values.items()})


def _unmarked(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields with "no" as False: otherwise it would approve a procedure or make it stale."""
    denied = (name for name in fields.keys() & MARKS if _NO.fullmatch(str(fields[name])))
    return {**fields, **dict.fromkeys(denied, False)}


def _procedure(record: Record, names: Mapping[str, str], given: Mapping[str, str]) -> Procedure:
    if record.values is None:
        raise BadInput(record.reason)
    if _is_exported(record.values):
        return Procedure.from_dict(record.values)
    values = {
        name: value
        for name, value in record.values.items()
        if (value.strip() if isinstance(value, str) else value) not in (None, "")
    }
    fields: dict[str, Any] = {
        field: values[name]
        for field, name in names.items()
        if name in values and (field in given or name not in given.values())
    }
    rest = {name: value for name, value in values.items() if name not in names.values()}
    for field in _OTHER_NAMES.keys() - fields.keys():
        found = _named(rest, field) if names[field] == field else []
        lists: list[Any] = []
        for name in found:
            of_schema = [found[0].lower(), name.lower()] == ["supply", "tool"]
            if name == found[0] or of_schema:
                value = rest.pop(name)
                is_piped = field != "output" and isinstance(value, str) and _PIPED.fullmatch(value)
                lists.append(value.split("|") if is_piped else value)
        if lists:
            fields[field] = lists[0] if len(lists) == 1 else [*chain(*map(texts_of, lists))]
    check_has_all(fields, values)
    if names["tags"] != "tags" and not isinstance(_parsed(fields.get("tags", {})), dict | list):
        fields["tags"] = {names["tags"]: fields["tags"]}
    fields |= {name: read(fields[name]) for name, read in _READERS.items() if name in fields}
    rest |= {name: fields.pop(name) for name in _of_other_forms(fields, names)}
    if (needs := texts_of(fields["input"])) != [fields["input"]]:
        fields["input"] = ", ".join(need.replace("\n", " ") for need in needs)
    steps = texts_of(fields["steps"])
    if steps == [text := fields["steps"]]:
        steps, outside = _steps(text)
        rest |= {OUTSIDE: "\n".join(outside)} if outside else {}
    fields["steps"] = steps
    rest = _unmarked(rest)
    metadata = fields.get("metadata", {})
    others = {
        name if metadata.get(name, value) == value else f"{name} (2)": value
        for name, value in rest.items()
    }
    fields["metadata"] = {**others, **metadata}
    return Procedure.from_dict(fields)


def _of_other_forms(fields: Mapping[str, Any], names: Mapping[str, str]) -> list[str]:
    """Return the fields whose values belong in the metadata.

    An expiry whose field the caller named is never among them, so a wrong one is refused.
    """
    kept = {"expires"} if names["expires"] != "expires" else ()
    return [name for name in fields if name not in kept and not has_our_form(name, fields[name])]


def _check_tags(procedure: Procedure, earlier: dict[str, Mapping[str, str]]) -> None:
    """Reject a procedure that has the id of an earlier one but other tags; else, note its tags."""
    if (tags := earlier.setdefault(procedure.id, procedure.tags)) != procedure.tags:
        raise BadInput(
            f"it has the text of an earlier record, whose tags are {excerpt(tags)}, not "
            f"{excerpt(procedure.tags)}; to keep both, give each record a key, as in --map key=id"
        )


def _is_exported(values: Mapping[str, Any]) -> bool:
    """Return whether a record was written by `write_jsonl` and can be used as it is."""
    steps = values.get("steps")
    return (
        {"output", "input", "steps", "id", "metadata"} <= values.keys() <= {*FIELDS}
        and isinstance(steps, list)
        and all(isinstance(each, str) for each in [*steps, values["input"]])
        and all(has_our_form(name, value) for name, value in values.items())
    )


def _steps(text: str) -> tuple[list[str], list[str]]:
    """Return the steps in a text, and the lines around them.

    The steps are its items or lines, or else its sentences or, if it has code, the whole text.
    """
    steps = read_steps(text)
    has_code = any(code_blocks(text))
    if len(steps) > 1 or (steps and has_code):
        return steps, outside_steps(text, steps)
    return [text] if has_code else [each.strip() for each in sentences(text)], []


def texts_of(value: object) -> list[str]:
    """Return the strings in a list, which can be written in any of several forms.

    The value can be a list of strings or of objects that contain a string, an object with numbered
    or named strings, or a string with such a list in JSON, Python or R. Any other string is a
    single item, as is each string in a list.
    """
    text = value.strip() if isinstance(value, str) else ""
    for beginning, read in _LISTS:
        if text.startswith(beginning):
            # A Python dict can have numbers as keys.
            with suppress(ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                items = read(text)
                if isinstance(items, list | tuple | dict) and items:
                    return texts_of([*items] if isinstance(items, tuple) else items)
    if isinstance(value, dict) and not _text_of(value):
        if all(map(_NUMBERED.fullmatch, value)):
            return _items([value[name] for name in sorted(value, key=_number)])
        texts: list[str] = []
        for name, item in _in_order(value).items():
            items = [] if _is_order(str(name), item) else _items(item)
            if items and not (len(value) == 1 and isinstance(item, list)):
                items[0] = f"{name}: {items[0]}"  # above the others, if it is a group
            texts += items
        return texts
    return _items(value)


def _in_order(value: dict[str, Any]) -> dict[str, Any]:
    """Return an object, sorted if its names are one word with the numbers 1, 2, 3 and so on."""
    names = sorted(
        (each for each in map(_WITH_NUMBER.fullmatch, value) if each),
        key=lambda each: int(each[2]),
    )
    has_one_word = len({each[1] for each in names}) == 1 and len(names) == len(value)
    if has_one_word and _counts_up([int(each[2]) for each in names]):
        return {each[0]: value[each[0]] for each in names}
    return value


def _items(value: object, positions: Collection[str] = ()) -> list[str]:
    """Return the strings in a list or an object, without parsing them as lists.

    Args:
        value: The list or object.
        positions: The fields of `_COUNTS` that give the position of an object.
    """
    if isinstance(value, list):
        objects = [item for item in value if isinstance(item, dict)]
        positions = [name for name in _COUNTS if _counts_up([each.get(name) for each in objects])]
        items = (_items(item, positions) for item in value if item not in (None, ""))
        return list(chain.from_iterable(items))
    if not isinstance(value, dict):
        return [str(value)]
    text = _text_of(value)
    if text and "@type" in value:
        names = _OF_SCHEMA[bool(value.get("text")) :]  # the name is a short form of the text
        value = {name: value[name] for name in names if name in value}
    # For example, an ingredient and its amount, or a step's name and its command.
    rest = {
        name: each
        for name, each in value.items()
        if each is text or not (name in positions or _is_order(name, each))
    }
    if not text:
        return ["\n".join(_items([*rest.values()]))]
    # If the text is a list, other fields go into its first item if above it, else into its last.
    parts: list[list[str]] = [[]]
    for name, each in rest.items():
        if each is text:
            first, *others = _items(each) or [""]
            parts[-1].append(first)
            parts += [[other] for other in others]
        elif isinstance(each, list | dict):
            parts[-1] += texts_of(each)
        elif each is not None and not isinstance(each, bool):
            parts[-1].append(each if isinstance(each, str) else f"{name}: {each}")
    return ["\n".join(filter(None, lines)) for lines in parts if any(lines)]


def _is_order(name: str, value: object) -> bool:
    """Return whether a field only gives an object's place in a list, in a database or on a page."""
    return bool(_ORDER.fullmatch(name)) or any(
        names.fullmatch(name) and form.fullmatch(str(value)) for names, form in _ORDER_IF
    )


def _counts_up(values: list[object]) -> bool:
    """Return whether values are 1, 2, 3 and so on, or begin with 0."""
    texts = [str(value).removesuffix(".").removesuffix(".0") for value in values]
    numbers = [*map(str, range(len(values) + 1))]
    return texts in (numbers[:-1], numbers[1:])


def _text_of(value: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a text, or a list of steps
    """Return the value that holds a step object's text, or None if no single field does."""
    names = (*_TEXTS, *_TITLES) if "@type" in value or len(value) == 1 else _TEXTS
    texts = (value.get(name) for name in names)
    return next((text for text in texts if text and isinstance(text, str | list | dict)), None)


def _number(name: str) -> int:
    return int(re.sub(r"\D", "", name))


def _tags(value: object) -> object:
    """Return tags, converting numbers (such as years) and booleans to strings for searches."""
    value = _parsed(value)
    if not isinstance(value, dict):
        return value
    return {
        name: json.dumps(item) if isinstance(item, bool | int | float) else item
        for name, item in value.items()
        if item is not None
    }


def _date(value: object) -> object:
    """Return the date of an ISO date and time; return any other value as is."""
    with suppress(ValueError):
        return datetime.fromisoformat(str(value).strip()).date().isoformat()
    return value


def _parsed(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Parse a string that contains a list or an object; return any other value as is."""
    if isinstance(value, str) and value.strip()[:1] in ("[", "{"):
        with suppress(ValueError, RecursionError):
            return json.loads(value)
    return value


_READERS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("metadata", "outcomes", "versions"), _parsed),
    "tags": _tags,
    "key": str,
    "expires": _date,
}
"""Functions that convert field values from other forms, such as JSON in a CSV file."""
