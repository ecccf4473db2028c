"""The records in JSONL, JSON, CSV and TSV files, each with the line on which it starts."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, TextIO, cast

from stepcraft.encoding import Encoding, Unreadable, encoding_of
from stepcraft.errors import BadInput
from stepcraft.files import named_path, open_regular

MAX_RECORD = 4_000_000
"""The maximum length of a record; a longer one is skipped."""

MAX_JSON = 500_000_000
"""The maximum length of a .json file, which is read as a whole."""

_TOO_LONG = f"it is longer than {MAX_RECORD:,} characters"
_MAX_LISTS = 150_000
"""The maximum number of opening brackets in a record."""
_CHUNK = 250_000
_SAMPLE = 1_000_000
"""The number of bytes examined to detect the encoding."""
_FIRST_ROWS = 50
"""The number of rows examined to detect a CSV file's delimiter and header."""
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
"""A byte that is not valid UTF-8, as decoded by the error handler `surrogateescape`."""
_SEPARATORS = re.compile(r"[\s,]*(?:\]\s*\[[\s,]*)*")
"""What stands between items, which includes the end of an array and the beginning of another."""
_LINES = re.compile(r"[^\n]*+(?<![{\[,:])\n\s*+\S")
"""A line that, unlike the first one of an indented value, need not continue on the next."""


@dataclass(frozen=True)
class Record:
    """A record in a file."""

    line: int
    """The number of the line on which it starts, from 1."""
    values: dict[str, Any] | None
    """Its fields, or None if it cannot be read."""
    reason: str = ""
    """Why it cannot be read."""
    items: list[Any] | None = None
    """Its items, if it is a list."""


def records(path: Path) -> Iterator[Record]:
    """Yield the records in a file, whose suffix determines the format.

    A record that cannot be read is yielded with the reason, and reading continues with the next.

    Raises:
        BadInput: The file does not exist, is not a regular file, cannot be opened, is not text, or
            has an unknown suffix.
    """
    path = named_path(path)
    if path.is_dir():
        raise BadInput(f"{path} is a folder; name a file in it")
    if path.suffix.lower() not in _READERS:
        raise BadInput(
            f"{path} is not a kind of file that is read; name a .jsonl, .json, .csv or .tsv file"
        )
    try:
        yield from _READERS[path.suffix.lower()](path)
    except FileNotFoundError as error:
        raise BadInput(f"there is no file {path}; check the name") from error
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error


def file_encoding(path: Path) -> Encoding:
    """Return the encoding of a file, based on its first lines (of a table, not only ASCII ones).

    Raises:
        BadInput: It is not text.
        OSError: It cannot be read.
    """
    is_table = path.suffix.lower() in {".csv", ".tsv"}
    with open_regular(path) as file:
        data = rest = file.read(_SAMPLE + 1)
        while is_table and len(rest) > _SAMPLE and data.isascii():
            rest = file.read(_SAMPLE + 1)
            data = data[: _SAMPLE + 1] + rest
    if len(rest) > _SAMPLE:  # cut after a whole line, or else after a whole UTF-8 character
        data = data[: data.rfind(b"\n") + 1] or data.decode(errors="ignore").encode()
    try:
        encoding = encoding_of(data)
    except Unreadable as error:
        raise BadInput(f"{path} cannot be read: {error}") from error
    # JSON is always Unicode, so lines that are not valid UTF-8 are reported one by one.
    is_other = encoding.note and not is_table and not encoding.name.startswith(("utf-16", "utf-8-"))
    return Encoding("utf-8") if is_other else encoding


def _text(path: Path) -> TextIO:
    name = file_encoding(path).name
    errors = "surrogateescape" if name.startswith("utf-8") else "replace"  # for `_not_utf8`
    return io.TextIOWrapper(open_regular(path), name, errors)


def _lines(path: Path) -> Iterator[str]:
    """Yield the lines in a file, truncating longer ones to `MAX_RECORD + 1` characters."""
    with _text(path) as file:
        while line := file.readline(MAX_RECORD + 1):
            yield line
            while line and not line.endswith("\n"):
                line = file.readline(_CHUNK)


def _is_cut(line: str) -> bool:
    return len(line) > MAX_RECORD and not line.endswith("\n")


def _read_json_lines(path: Path) -> Iterator[Record]:
    for number, line in enumerate(_lines(path), 1):
        if line.strip():
            yield _json_record(number, line, _TOO_LONG if _is_cut(line) else _too_wide(line))


def _read_json(path: Path) -> Iterator[Record]:
    """Read arrays, an object, or one object or list per line (some .json files are JSON Lines)."""
    with _text(path) as file:
        text = file.read(MAX_JSON + 1)
    start = len(text) - len(text.lstrip())
    lines = _LINES.match(text, start)
    reason = _too_wide(text, max(_MAX_LISTS, len(text) // 10))
    if len(text) > MAX_JSON:
        yield Record(1, None, f"it is longer than {MAX_JSON:,} characters; save it as .jsonl")
    elif text[start : start + 1] == "[" and not (lines and lines[0].endswith("[")):
        if reason:
            yield Record(1, None, reason)
        else:
            yield from _array(text, start + 1)
    elif text.strip():
        whole = _json_record(1 + text.count("\n", 0, start), text, reason)
        if whole.values is None and lines:
            yield from _read_json_lines(path)
        else:
            yield whole


def _array(text: str, position: int) -> Iterator[Record]:
    """Read the items of one or more arrays, up to invalid JSON because the rest cannot be located.

    `position` is the offset just after the first opening bracket.
    """
    decoder, line, counted = json.JSONDecoder(), 1, 0
    while True:
        if match := _SEPARATORS.match(text, position):
            position = match.end()
        line, counted = line + text.count("\n", counted, position), position
        if text[position : position + 1] == "]" and not text[position + 1 :].strip():
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


def _json_record(line: int, text: str, reason: str) -> Record:
    if reason := reason or _not_utf8(text):
        return Record(line, None, reason)
    try:
        return _object(line, json.loads(text))
    except ValueError as error:
        return Record(line, None, f"it is not JSON: {error}")
    except RecursionError:
        return Record(line, None, "it is nested too deeply")


def _too_wide(text: str, most: int = _MAX_LISTS) -> str:
    """Return why JSON has too many lists and objects to be parsed, or "" if it can be parsed."""
    if len(text) > _MAX_LISTS and text.count("[") + text.count("{") > most:
        return f"it holds more than {_MAX_LISTS:,} lists and objects"
    return ""


def _object(line: int, value: object) -> Record:
    if isinstance(value, dict):
        return Record(line, cast("dict[str, Any]", value))
    items = value if isinstance(value, list) else None
    reason = f"it is a {type(value).__name__}, not an object with fields"
    return Record(line, None, reason, items)


def _read_csv(path: Path, delimiter: str = "") -> Iterator[Record]:
    """Read rows below a header, reporting rows above it and repeated headers."""
    csv.field_size_limit(max(csv.field_size_limit(), MAX_RECORD))
    first = [line for line in islice(_lines(path), _FIRST_ROWS) if line.strip()]
    named = _SEP.fullmatch("".join(first[:1]))  # as Excel writes it
    signs = named[1] if named else delimiter or _DELIMITERS
    delimiter = max(signs, key=lambda sign: _cells(first, sign))
    share, _, most = _cells(first, delimiter)
    rows = [*filter(any, csv.reader(first, delimiter=delimiter))] if most else []
    filled = [any(row[1:]) for row in rows]
    is_filled = 2 * sum(filled) >= len(filled)
    # A bank names the account and the dates above the header, in several lines of fewer cells. If
    # there is one such line, or the first line of about the usual number is data, the header itself
    # is too short.
    above = [*takewhile(lambda row: len(row) < most - 1, rows)]
    first_long = rows[len(above)] if len(above) < len(rows) else []
    has_names = not any(cell.strip()[:1].isdigit() for cell in first_long)
    is_below = most > 2 and share >= 0.5 and len(above) > 1 and has_names
    least = most - 1 if is_below else 0
    header: list[str] = []
    names: list[str] = []
    for line, row, reason in _rows(path, delimiter):
        cells = [cell.strip() for cell in row]
        # A spreadsheet pads a title with empty cells, but a padded table can have one column.
        is_title = len(row) == 1 or len(row) < least or (is_filled and not any(cells[1:]))
        if reason or (header and row and (reason := _refused(cells, header))):
            yield Record(line, None, reason)
        elif not row or (named and line == 1) or not (header or any(cells)):
            continue  # a blank line, possibly before the header
        elif header:
            yield Record(line, dict(zip(names, row, strict=True)))
        elif is_title and most:
            yield Record(line, None, "it stands above the header")
        else:
            header, names = cells, _unique(cells)


def _rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str], str]]:
    """Yield each row with the line on which it starts, and why it cannot be read, or ""."""
    cut = 0

    def lines() -> Iterator[str]:
        nonlocal cut
        for number, line in enumerate(_lines(path), 1):
            cut = number if _is_cut(line) else cut
            yield line

    reader = csv.reader(lines(), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            for each in range(line, reader.line_num + 1):  # more than one if a quote is unclosed
                yield each, [], f"it is not CSV: {error}"
            continue
        yield line, row, _TOO_LONG if cut >= line else ""


def _refused(row: Sequence[str], header: Sequence[str]) -> str:
    """Return why a row cannot be used, or "" if it can."""
    if reason := _not_utf8("".join(row)):
        return reason
    if len(row) != len(header):
        return f"it has {len(row)} cells, and the header has {len(header)}"
    return "it repeats the header" if row == header else ""


_DELIMITERS = ";\t|,"
"""Delimiters that are tried; a comma comes last since it can be a decimal sign beside another."""
_SEP = re.compile(r"\ufeff?sep=(.)\s*")


def _cells(lines: Sequence[str], delimiter: str) -> tuple[float, int, int]:
    """Return the share and count of rows with the most common number of cells, and that number.

    A wrong delimiter can occur often in multi-line cells, but not in every row.
    """
    try:
        widths = [len(row) for row in csv.reader(lines, delimiter=delimiter)]
    except csv.Error:
        return 0.0, 0, 0
    counts = Counter(width for width in widths if width > 1)
    width = max(counts, key=lambda each: (counts[each], each), default=0)
    return counts[width] / max(1, len(widths)), counts[width], width


def _unique(names: Sequence[str]) -> list[str]:
    """Return the names of columns, numbering those that are empty or repeated."""
    unique: list[str] = []
    for place, name in enumerate(names, 1):
        free = name or f"column {place}"
        unique.append(f"{free} ({place})" if free in unique else free)
    return unique


def _not_utf8(text: str) -> str:
    """Return why a text is not UTF-8, or "" if it is."""
    if match := _NOT_UTF8.search(text):
        byte, place = ord(match[0]) - 0xDC00, match.start() + 1
        return f"it is not UTF-8 (byte 0x{byte:02x} at character {place})"
    return ""


_READERS: dict[str, Callable[[Path], Iterator[Record]]] = {
    ".jsonl": _read_json_lines,
    ".ndjson": _read_json_lines,
    ".json": _read_json,
    ".traj": _read_json,
    ".csv": _read_csv,
    ".tsv": partial(_read_csv, delimiter="\t"),
}
