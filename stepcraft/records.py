"""The records of JSONL, JSON, CSV and TSV files, each with the line that it starts on."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO, cast

from stepcraft.errors import BadInput
from stepcraft.files import named_path, open_regular

MAX_RECORD = 4_000_000
"""The most characters of a record; a longer one is passed over."""

MAX_JSON = 500_000_000
"""The most characters of a .json file, which is read as a whole."""

_TOO_LONG = f"it is longer than {MAX_RECORD:,} characters"
_MAX_LISTS = 150_000
"""The most opening brackets of a record."""
_CHUNK = 250_000
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
"""What the error handler `surrogateescape` makes of a byte that is not UTF-8."""
_SEPARATORS = re.compile(r"[\s,]*")


@dataclass(frozen=True)
class Record:
    """A record of a file."""

    line: int
    """The number of the line that it starts on, from 1."""
    values: dict[str, Any] | None
    """Its fields; None if it cannot be read."""
    reason: str = ""
    """Why it cannot be read."""


def records(path: Path) -> Iterator[Record]:
    """Yield the records of a file; the suffix of its name tells the format.

    A record that cannot be read is yielded with the reason, and the records after it follow.

    Raises:
        BadInput: the file cannot be read (see `check_file`).
    """
    check_file(path)
    path = named_path(path)
    try:
        yield from _READERS[path.suffix.lower()](path)
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error


def check_file(path: Path) -> None:
    """Check that a file can be read.

    Raises:
        BadInput: it does not exist, is no regular file, cannot be opened, is in UTF-16, or has no
            known suffix.
    """
    path = named_path(path)
    if path.is_dir():
        raise BadInput(f"{path} is a folder; name a file in it")
    if path.suffix.lower() not in _READERS:
        raise BadInput(
            f"{path} is not a kind of file that is read; name a .jsonl, .json, .csv or .tsv file"
        )
    try:
        with open_regular(path) as file:
            start = file.read(2)
    except FileNotFoundError as error:
        raise BadInput(f"there is no file {path}; check the name") from error
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error
    if start in (b"\xff\xfe", b"\xfe\xff"):
        raise BadInput(f"{path} is in UTF-16; save it as UTF-8")


def _text(path: Path) -> TextIO:
    return io.TextIOWrapper(open_regular(path), "utf-8-sig", "surrogateescape", newline="")


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines of a file; of one that is too long `MAX_RECORD` characters and one more."""
    with _text(path) as file:
        while line := file.readline(MAX_RECORD + 1):
            yield line
            while (
                len(line) > MAX_RECORD
                and (rest := file.readline(_CHUNK))
                and not rest.endswith(("\n", "\r"))
            ):
                pass


def _read_json_lines(path: Path) -> Iterator[Record]:
    for number, line in enumerate(_lines(path), 1):
        if line.strip():
            yield _json_record(number, line)


def _read_json(path: Path) -> Iterator[Record]:
    """Read an array, one object, or one object a line, as such files are also named .json."""
    with _text(path) as file:
        text = file.read(MAX_JSON + 1)
    start = len(text) - len(text.lstrip())
    if len(text) > MAX_JSON:
        yield Record(1, None, f"it is longer than {MAX_JSON:,} characters; save it as .jsonl")
    elif text[start : start + 1] == "[":
        if reason := _too_wide(text, max(_MAX_LISTS, len(text) // 10)):
            yield Record(1, None, reason)
        else:
            yield from _array(text, start + 1)
    elif text.strip():
        whole = _json_record(1 + text.count("\n", 0, start), text)
        if whole.values is not None or "\n" not in text.strip():
            yield whole
        else:
            yield from _read_json_lines(path)


def _array(text: str, position: int) -> Iterator[Record]:
    """Read the items of an array, up to the first that is not JSON: what follows has no beginning.

    `position` is the offset after the bracket.
    """
    decoder, line, counted = json.JSONDecoder(), 1, 0
    while True:
        if match := _SEPARATORS.match(text, position):
            position = match.end()
        line, counted = line + text.count("\n", counted, position), position
        if text[position : position + 1] == "]":
            return
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            reason = f"it is not JSON ({error}), and the rest of the file was not read"
            yield Record(line, None, reason)
            return
        reason = _not_utf8(text[position:end])
        yield Record(line, None, reason) if reason else _object(line, value)
        position = end


def _json_record(line: int, text: str) -> Record:
    if reason := _TOO_LONG if len(text) > MAX_RECORD else _too_wide(text) or _not_utf8(text):
        return Record(line, None, reason)
    try:
        return _object(line, json.loads(text))
    except ValueError as error:
        return Record(line, None, f"it is not JSON: {error}")
    except RecursionError:
        return Record(line, None, "it is nested too deeply")


def _too_wide(text: str, most: int = _MAX_LISTS) -> str:
    """Return why a text is not parsed: few characters of JSON can make very many lists."""
    if len(text) > _MAX_LISTS and text.count("[") + text.count("{") > most:
        return f"it holds more than {_MAX_LISTS:,} lists and objects"
    return ""


def _object(line: int, value: object) -> Record:
    if isinstance(value, dict):
        return Record(line, cast("dict[str, Any]", value))
    return Record(line, None, f"it is a {type(value).__name__}, not an object with fields")


def _read_csv(path: Path, delimiter: str = ",") -> Iterator[Record]:
    csv.field_size_limit(max(csv.field_size_limit(), MAX_RECORD))
    reader = csv.reader(_lines(path), delimiter=delimiter, strict=True)
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
        if not row:
            continue  # a blank line, also before the header
        if header is None:
            header = [name.strip() for name in row]
        elif reason := _not_utf8("".join(row)):
            yield Record(line, None, reason)
        elif len(row) != len(header):
            yield Record(line, None, f"it has {len(row)} cells, and the header has {len(header)}")
        else:
            yield Record(line, dict(zip(header, row, strict=True)))


def _not_utf8(text: str) -> str:
    """Return why a text is not UTF-8, "" if it is."""
    if match := _NOT_UTF8.search(text):
        byte, place = ord(match[0]) - 0xDC00, match.start() + 1
        return f"it is not UTF-8 (byte 0x{byte:02x} at character {place})"
    return ""


_READERS: dict[str, Callable[[Path], Iterator[Record]]] = {
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".json": _read_json,
    ".csv": _read_csv,
    ".tsv": partial(_read_csv, delimiter="\t"),
}
