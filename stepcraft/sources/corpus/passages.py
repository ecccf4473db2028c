"""Split a file into passages, each with a title and a location to cite."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from stepcraft.encoding import NotOpened, Unreadable
from stepcraft.errors import BadInput, SourceFailure
from stepcraft.records import file_encoding, records
from stepcraft.sources.corpus.content import Content, file_title, read_content
from stepcraft.sources.corpus.markup import MAX_HEADING, Heading
from stepcraft.sources.parse import TITLES
from stepcraft.sources.parse.data import as_lines
from stepcraft.text.clean import clean, one_line
from stepcraft.text.markdown import code_blocks

VERSION = 16
"""The version of the rules for reading and splitting files; changing it reindexes every file."""

CHARACTERS = 1000
"""The maximum length of a passage, not counting fences and repeated text."""

MAX_FENCE = 3000
"""The maximum length of a fenced block that is kept whole."""

_PART = re.compile(
    rf"""
    .{{1,{CHARACTERS}}} \Z
    | .{{500,998}} \n\n (?=\S)  # before a block that is not indented, such as a function
    | .{{500,998}} \n\n
    | .{{500,999}} \n
    | .{{1,999}} \n (?=[ \t>]*\|)  # between the rows of a table
    | .{{500,998}} ([.!?;]\s | \u3002)
    | .{{1,999}} \s
    | .{{{CHARACTERS}}}
    """,
    re.DOTALL | re.VERBOSE,
)
"""As much text as fits into a passage, ending at the best place to split."""

_PADDING = re.compile(r"(?<=[^ ] ) +|(?<=---)-+")
"""The spaces and dashes that only align the columns of a table."""
_MAX_REPEATED = 500
"""The maximum length of a table header or an opening fence that is repeated."""
_RECORDS = {".jsonl", ".ndjson", ".csv", ".tsv"}

Fields = tuple[Sequence[str], Sequence[str]]
"""The names of fields that can hold a record's title and its text; the first match is used."""
FIELDS: Fields = (TITLES, ("text",))


_Unit = tuple[str, int, int]
"""A title, and the offsets at which the text under it starts and ends."""


class Passage(NamedTuple):
    """A part of a file."""

    title: str
    text: str
    place: str
    """Its location in the file, as a suffix of the path: ":12" (a line), " p. 3" or " cell 4"."""


def fields_of(title: str, text: str) -> Fields:
    """Return the fields with the given names, ignoring case; "" means the default names."""
    titles, texts = FIELDS
    return (title.casefold(),) if title else titles, (text.casefold(),) if text else texts


def passages(path: Path, fields: Fields = FIELDS) -> Iterator[Passage]:
    """Yield the passages in a file; each record in a JSONL or CSV file yields one or more.

    A JSON file is read as records if `fields` differs from the default.

    Args:
        path: The file.
        fields: The fields that hold a record's title and text, ignoring case.

    Raises:
        Unreadable: The file, or a part of it, cannot be read; the rest has been yielded.
        NotOpened: The operating system cannot open or read it.
    """
    try:
        suffix = path.suffix.lower()
        if suffix in _RECORDS or (suffix == ".json" and fields != FIELDS):
            yield from _of_records(path, fields)
        else:
            yield from passages_of(read_content(path))
    except SourceFailure:
        raise
    except Exception as error:  # one bad file must not abort the whole corpus
        raise Unreadable(f"it cannot be parsed ({type(error).__name__})") from error


def passages_of(content: Content) -> Iterator[Passage]:
    """Yield the passages in a file's content; none crosses a heading.

    Raises:
        Unreadable: A part of the file was not read; the rest has been yielded.
    """
    number, counted = 1, 0
    wholes = [_trimmed(block, content.text) for block in content.blocks if not block.level]
    for title, begin, end in _packed(_units_of(content)):
        text = content.text[begin:end].strip()
        start = content.text.find(text, begin)
        if content.starts:
            number = bisect_right(content.starts, start)
        else:
            number, counted = number + content.text.count("\n", counted, start), start
        if text:
            stop = start + len(text)
            line = content.text.rfind("\n", max(0, begin - 1), start) + 1
            start = line if line >= begin else start  # a whole line keeps its indentation
            text = _completed(content.text[start:stop], max(begin, line), stop, wholes)
            yield Passage(title, text, content.place.format(number))
    if content.cut:
        raise Unreadable(content.cut)


def _trimmed(block: Heading, text: str) -> Heading:
    """Return a block without the whitespace after it, unless it is an open fence."""
    body = text[block.start : block.stop].rstrip()
    is_open = not body.endswith(block.fence.strip(" \t>"))
    return block if is_open else block._replace(stop=block.start + len(body))


def _completed(text: str, start: int, stop: int, wholes: Sequence[Heading]) -> str:
    """Return a passage's text, restoring the table header or fences of a block that was split."""
    if first := _around(wholes, start):
        is_long = len(first.repeated) > _MAX_REPEATED
        repeated = _PADDING.sub("", first.repeated) if is_long else first.repeated
        text = f"{repeated}\n{text}" if len(repeated) <= _MAX_REPEATED else text
    last = _around(wholes, stop)
    if last and last.fence and not all(block.closed for block in code_blocks(text)):
        text = f"{text}\n{last.fence}"
    return text


def _around(wholes: Sequence[Heading], place: int) -> Heading | None:
    """Return the block that contains an offset, unless the offset is in its first line."""
    number = bisect_left(wholes, place, key=attrgetter("start")) - 1
    return wholes[number] if number >= 0 and place < wholes[number].stop else None


def _of_records(path: Path, fields: Fields) -> Iterator[Passage]:
    broken, first = 0, ""
    try:
        for record in records(path):
            if record.values is None:
                broken, first = broken + 1, first or f"line {record.line}: {record.reason}"
                continue
            title, text = _title_and_text(record.values, fields)
            for passage in passages_of(Content(title or file_title(path), text)):
                yield passage._replace(place=f":{record.line}")
    except BadInput as error:
        kind = Unreadable if isinstance(error.__cause__, Unreadable) else NotOpened
        raise kind(str(error).replace(str(path), "it", 1)) from error
    notes = [f"{broken:,} of its records cannot be read, the first in {first}"] if broken else []
    if note := file_encoding(path).note:
        notes.append(note)
    if notes:
        raise Unreadable("; ".join(notes))


def _title_and_text(values: Mapping[str, Any], fields: Fields) -> tuple[str, str]:
    """Return the title and the text of a record; without a text field, all fields form the text."""
    shown = {
        name: f"{name}: {value}" if isinstance(value, str) else as_lines({name: value})
        for name, value in values.items()
        if value not in (None, "", [], {})
    }
    by_name = {name.casefold(): text[len(name) + 1 :].strip() for name, text in shown.items()}
    title, text = (next(filter(None, map(by_name.get, names)), "") for names in fields)
    title = one_line(title)
    if text and len(title) > MAX_HEADING:
        text = f"{title}\n\n{text}"
    return title[:MAX_HEADING], clean(text or "\n".join(shown.values()))


def _packed(units: Iterable[_Unit]) -> Iterator[_Unit]:
    """Yield passages, each with as many consecutive units as fit."""
    title, start, stop = "", 0, 0
    for name, begin, end in units:
        if (name, begin) != (title, stop) or end - start > CHARACTERS:
            yield title, start, stop
            title, start = name, begin
        stop = end
    yield title, start, stop


def _units_of(content: Content) -> Iterator[_Unit]:
    """Yield the text under each heading in parts, and whole fenced blocks and tables, with titles.

    A title consists of the file's title and the headings above the text. A heading with nothing
    under it is treated as text.
    """
    text = content.text
    blocks = [*content.blocks, Heading(len(text), len(text), 1, "")]
    is_title = blocks[0].level == 1 and not text[: blocks[0].start].strip()
    title = file = blocks[0].text if is_title else content.title
    names: dict[int, str] = {}
    last = Heading(0, 0, 0, "")
    start = 0
    for block in blocks:
        longest = MAX_FENCE if block.fence else CHARACTERS
        if not block.level and block.stop - block.start > longest:
            continue
        if 0 < block.level <= last.level and not text[last.stop : block.start].strip():
            start = last.start
        yield from ((title, *part.span()) for part in _PART.finditer(text, start, block.start))
        start = block.stop
        if block.level:
            last = block
            names = {level: name for level, name in names.items() if level < block.level}
            names[block.level] = block.text
            title = " › ".join(name for name, _ in groupby([file, *names.values()]))
        else:
            yield title, block.start, block.stop
