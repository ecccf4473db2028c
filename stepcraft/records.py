"""The raw records of JSONL, JSON and CSV files, each with the line that it starts on."""

import csv
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepcraft.errors import BadInput

_NOT_UTF8 = re.compile("[\udc80-\udcff]")
"""What `surrogateescape` makes of a byte that is not UTF-8."""


@dataclass(frozen=True)
class Record:
    """A record: the line it starts on, and its values, or None and why they cannot be read."""

    line: int
    values: dict[str, Any] | None
    reason: str = ""


def records(path: Path) -> Iterator[Record]:
    """The records of a file, by the ending of its name.

    Raises:
        BadInput: as `check_file`.
    """
    check_file(path)
    try:
        yield from _READERS[path.suffix.lower()](path)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error


def check_file(path: Path) -> None:
    """Look whether a file can be read.

    Raises:
        BadInput: it is not there, cannot be read, is in UTF-16, or of another kind.
    """
    if path.is_dir():
        raise BadInput(f"{path} is a folder; name a file in it")
    if path.suffix.lower() not in _READERS:
        raise BadInput(f"{path} is not a kind of file that is read; name a .jsonl, .json or .csv file")
    try:
        with path.open("rb") as file:
            start = file.read(2)
    except FileNotFoundError as error:
        raise BadInput(f"there is no file {path}; check the name") from error
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error
    if start in (b"\xff\xfe", b"\xfe\xff"):
        raise BadInput(f"{path} is in UTF-16; save it as UTF-8")


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        yield from file


def _json_lines(path: Path) -> Iterator[Record]:
    for number, line in enumerate(_lines(path), 1):
        if line.strip():
            yield _json_record(number, line)


def _json_record(line: int, text: str) -> Record:
    if reason := _not_utf8(text):
        return Record(line, None, reason)
    try:
        return _object(line, json.loads(text))
    except ValueError as error:
        return Record(line, None, f"it is not JSON: {error}")
    except RecursionError:
        return Record(line, None, "it is nested too deeply")


def _object(line: int, value: object) -> Record:
    if isinstance(value, dict):
        return Record(line, value)  # pyright: ignore[reportUnknownArgumentType] - what JSON makes of an object
    return Record(line, None, f"it is a {type(value).__name__}, not an object with fields")


def _json(path: Path) -> Iterator[Record]:
    """An array, one object, or, as such files are also named, one object a line."""
    text = "".join(_lines(path))
    start = len(text) - len(text.lstrip())
    if text[start : start + 1] == "[":
        yield from _array(text, start + 1)
        return
    whole = _json_record(1 + text.count("\n", 0, start), text)
    if whole.values is not None or "\n" not in text.strip():
        yield from [whole] if text.strip() else []
    else:
        yield from _json_lines(path)


def _array(text: str, position: int) -> Iterator[Record]:
    """The items of an array up to the first that is not JSON: what follows it cannot be told apart."""
    decoder, line, counted = json.JSONDecoder(), 1, 0
    while True:
        position = _skip(text, position)
        line, counted = line + text.count("\n", counted, position), position
        if text[position : position + 1] == "]":
            return
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            yield Record(line, None, f"it is not JSON ({error}), and the rest of the file was not read")
            return
        reason = _not_utf8(text[position:end])
        yield Record(line, None, reason) if reason else _object(line, value)
        position = end


def _skip(text: str, position: int) -> int:
    """The first position at or after this one that holds neither space nor comma."""
    match = re.compile(r"[\s,]*").match(text, position)
    return match.end() if match else position


def _csv(path: Path) -> Iterator[Record]:
    reader = csv.reader(_lines(path), strict=True)
    header: list[str] | None = None
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield Record(line, None, f"it is not CSV: {error}")
            continue
        if header is None:
            header = [name.strip() for name in row]
        elif row:
            yield _row(line, header, row)


def _row(line: int, header: list[str], row: list[str]) -> Record:
    if reason := _not_utf8("".join(row)):
        return Record(line, None, reason)
    if len(row) != len(header):
        return Record(line, None, f"it has {len(row)} cells, and the header has {len(header)}")
    return Record(line, dict(zip(header, row, strict=True)))


def _not_utf8(text: str) -> str:
    found = _NOT_UTF8.search(text)
    return (
        f"it is not UTF-8 (byte 0x{ord(found[0]) - 0xDC00:02x} at character {found.start() + 1})"
        if found
        else ""
    )


_READERS: dict[str, Callable[[Path], Iterator[Record]]] = {
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json,
    ".csv": _csv,
}
