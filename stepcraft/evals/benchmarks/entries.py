"""The records of benchmarks' files, each with the place that a message names."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from stepcraft.errors import BadInput
from stepcraft.evals.samples import Sample
from stepcraft.files import named_path, open_regular
from stepcraft.records import records
from stepcraft.text.clean import clean

_MAX_WHOLE = 500_000_000
"""The largest file that is read as one JSON value, in bytes."""


@dataclass(frozen=True)
class Entry:
    """A record of a benchmark's file."""

    fields: Mapping[str, Any]
    where: str
    """The file and line, for messages."""
    id: str
    """The first of the fields for an identifier that is there, else the number of the record."""


def entries(file: Path, *ids: str) -> Iterator[Entry]:
    """Yield the records of a file.

    Args:
        file: The file.
        ids: The fields that may hold an identifier.

    Raises:
        BadInput: The file, or a record of it, cannot be read.
    """
    for number, record in enumerate(records(file), 1):
        where = f"{file}:{record.line}"
        if record.values is None:
            raise BadInput(f"{where} cannot be read: {record.reason}")
        given = [
            str(record.values[name]) for name in ids if record.values.get(name) not in (None, "")
        ]
        yield Entry(record.values, where, given[0] if given else str(number))


def whole(file: Path) -> Any:  # noqa: ANN401 - whatever JSON holds
    """The JSON value that a file is, for benchmarks whose official file is one large object.

    Raises:
        BadInput: It cannot be read, is larger than 500 MB, or is no JSON.
    """
    try:
        with open_regular(named_path(file)) as opened:
            data = opened.read(_MAX_WHOLE + 1)
        if len(data) > _MAX_WHOLE:
            raise BadInput(f"{file} is larger than {_MAX_WHOLE // 1_000_000} MB; name a part of it")
        return json.loads(data)
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{file} is not JSON: {error}") from error


def text_of(fields: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that holds a text, cleaned; "" where none does."""
    return next((text for name in names if (text := _text(fields.get(name)))), "")


def texts_of(value: object) -> list[str]:
    """The texts of a list, of a JSON list in a text (as tables have it), or of a text; none of anything else."""
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = json.loads(value)
        except ValueError:
            return [text] if (text := _text(value)) else []
    parts: Iterable[object] = value if isinstance(value, list) else [value]
    return [text for part in parts if (text := _text(part))]


def _text(value: object) -> str:
    return clean(value).strip() if isinstance(value, str) else ""


def refuse(where: str, name: str, needed: str) -> NoReturn:
    """Refuse a record that is in no format of a benchmark.

    Raises:
        BadInput: Always.
    """
    raise BadInput(
        f"{where} is no record of {name}: it has no {needed}; name its official file with --data"
    )


def checked(samples: list[Sample], file: Path, name: str) -> list[Sample]:
    """The samples, if there are any and each has an id of its own.

    Raises:
        BadInput: There are none, or an id occurs twice.
    """
    if not samples:
        raise BadInput(f"{file} has no samples of {name}; name its official file with --data")
    seen: set[str] = set()
    for sample in samples:
        if sample["id"] in seen:
            raise BadInput(
                f"{file} has the id {sample['id']!r:.80} twice; give each record an id of its own"
            )
        seen.add(sample["id"])
    return samples
