"""Split a file into passages, each with a title and a place to cite."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from stepcraft.errors import BadInput, SourceFailure
from stepcraft.files import open_regular
from stepcraft.records import records
from stepcraft.sources.corpus.content import (
    MAX_HEADING,
    Content,
    Heading,
    UnreadableFile,
    content_of,
    file_title,
)
from stepcraft.text.clean import clean

VERSION = 3
"""The version of how files are read and split; a change of it has every file indexed again."""

CHARACTERS = 1000
"""The most characters of a passage without fences."""

MAX_FENCE = 3000
"""The most characters of a fenced block that is kept whole."""

_TITLES = ("title", "name", "heading", "headline", "subject")
_TEXTS = (
    "text", "content", "contents", "page_content", "body", "passage", "document", "abstract",
    "summary",
)  # fmt: skip
_BREAKS = [
    re.compile(pattern)
    for pattern in (
        r"(?<=\n)\n(?=\S)",  # before a block that is not indented, such as a function
        r"\n{2,}+",
        r"\n",
        r"(?<=[.!?;])\s|(?<=\u3002)",
        r"\s",
    )
]
"""Where a text that is too long is cut, the best places first."""


class Passage(NamedTuple):
    """A part of a file."""

    title: str
    text: str
    place: str
    """Where it is in the file, as a suffix of the path: ":12" (a line), " p. 3" or " cell 4"."""


def passages(path: Path) -> Iterator[Passage]:
    """Yield the passages of a file; each record of a JSONL, CSV or JSON file is one or several.

    Raises:
        UnreadableFile: The file, or a part of it, cannot be read; the rest has been yielded.
    """
    try:
        if path.suffix.lower() in {".jsonl", ".ndjson", ".csv"} or _is_array(path):
            yield from _of_records(path)
        else:
            yield from passages_of(content_of(path))
    except (UnreadableFile, SourceFailure):
        raise
    except Exception as error:  # one file that nobody foresaw must not end a corpus
        raise UnreadableFile(f"it cannot be parsed ({type(error).__name__})") from error


def passages_of(content: Content) -> Iterator[Passage]:
    """Yield the passages of a text; none reaches over a heading.

    Raises:
        UnreadableFile: A part of the file was not read; the rest has been yielded.
    """
    line, counted = 1, 0
    for title, start, stop in _sections(content):
        for begin, end in _pieces(content, start, stop):
            text = content.text[begin:end]
            begin += len(text) - len(text.lstrip())
            if content.starts:
                at = bisect_right(content.starts, begin, key=lambda part: part[0]) - 1
                place = content.starts[at][1]
            else:
                line, counted = line + content.text.count("\n", counted, begin), begin
                place = f":{line}"
            if text.strip():
                yield Passage(title, text.strip(), place)
    if content.cut:
        raise UnreadableFile(content.cut)


def _is_array(path: Path) -> bool:
    if path.suffix.lower() != ".json":
        return False
    with open_regular(path) as file:
        return file.read(100).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")


def _of_records(path: Path) -> Iterator[Passage]:
    broken, first = 0, ""
    try:
        for record in records(path):
            if record.values is None:
                broken, first = broken + 1, first or f"line {record.line}: {record.reason}"
                continue
            title, text = _title_and_text(record.values)
            for passage in passages_of(Content(title or file_title(path), text)):
                yield passage._replace(place=f":{record.line}")
    except BadInput as error:
        raise UnreadableFile(str(error).replace(str(path), "it", 1)) from error
    if broken:
        raise UnreadableFile(f"{broken:,} of its records cannot be read, the first in {first}")


def _title_and_text(values: Mapping[str, Any]) -> tuple[str, str]:
    """Return title and text by common field names; without such a text, all fields are it."""
    fields = {name: value for name, value in values.items() if value not in (None, "", [], {})}
    strings = {
        name.lower(): "\n".join(map(str, value)) if isinstance(value, list) else value
        for name, value in fields.items()
        if isinstance(value, str | list)
    }
    title = " ".join(clean(next((strings[name] for name in _TITLES if name in strings), "")).split())
    text = next((strings[name] for name in _TEXTS if name in strings), "") or "\n".join(
        f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for name, value in fields.items()
    )
    return (title, clean(text)) if len(title) <= MAX_HEADING else ("", clean(f"{title}\n{text}"))


def _sections(content: Content) -> Iterator[tuple[str, int, int]]:
    """Yield title, start and stop of the part under each heading.

    A title consists of that of the file and the headings above the part, the outermost first. A
    heading with nothing under it is its own text.
    """
    text = content.text
    headings = [*content.headings, Heading(len(text), len(text), 0, "")]
    starts_with_title = headings[0].level == 1 and not text[: headings[0].start].strip()
    file = headings[0].text if starts_with_title else content.title
    yield file, 0, headings[0].start
    above: list[Heading] = []
    for heading, following in pairwise(headings):
        above = [*(outer for outer in above if outer.level < heading.level), heading]
        names = [outer.text for outer in above]
        has_text = following.level > heading.level or text[heading.stop : following.start].strip()
        title = " › ".join(names if names[0] == file else [file, *names])
        yield title, heading.stop if has_text else heading.start, following.start


def _pieces(content: Content, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the offsets of a section's passages: as many units as fit into one."""
    begin = end = start
    for unit, after in _units_and_fences(content, start, stop):
        if after - begin > CHARACTERS and begin < end:
            yield begin, end
            begin = unit
        end = after
    yield begin, end


def _units_and_fences(content: Content, start: int, stop: int) -> Iterator[tuple[int, int]]:
    first = bisect_right(content.fences, start, key=lambda fence: fence.start - 1)
    after = bisect_right(content.fences, stop - 1, key=lambda fence: fence.start)
    for fence in content.fences[first:after]:
        if fence.stop - fence.start <= MAX_FENCE:
            yield from _units(content.text, start, fence.start)
            yield fence.start, fence.stop
            start = fence.stop
    yield from _units(content.text, start, stop)


def _units(text: str, start: int, stop: int, level: int = 0) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the largest units that fit into a passage."""
    if stop - start <= CHARACTERS:
        yield start, stop
    elif level == len(_BREAKS):
        yield from pairwise([*range(start, stop, CHARACTERS), stop])
    else:
        for match in _BREAKS[level].finditer(text, start, stop):
            yield from _units(text, start, match.end(), level + 1)
            start = match.end()
        yield from _units(text, start, stop, level + 1)
