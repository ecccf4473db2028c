"""Split a file into passages: texts of at most 1,000 characters, each with a title and a place to cite."""

import json
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepcraft.errors import BadInput, SourceFailure
from stepcraft.files import open_regular
from stepcraft.records import records
from stepcraft.sources.corpus.content import Content, UnreadableFile, content_of, file_title
from stepcraft.sources.corpus.formats import MAX_HEADING
from stepcraft.text.clean import clean

if TYPE_CHECKING:
    from langchain_text_splitters import RecursiveCharacterTextSplitter

VERSION = 2
"""The version of how files are read and split; a change of it has every file indexed again."""

CHARACTERS = 1000
"""The most characters of a passage."""

MAX_PASSAGES = 1_000_000
"""The most passages of a file."""

MAX_BROKEN = 10_000
"""The most records of a file that cannot be read, after which it is not read further."""

_STRETCH = 200_000
_TITLES = ("title", "name", "heading", "headline", "subject")
_TEXTS = (
    "text",
    "content",
    "contents",
    "page_content",
    "body",
    "passage",
    "document",
    "abstract",
    "summary",
)
_PROSE = ["\n\n", "\n", ". ", "\u3002", "; ", ", ", " ", ""]


@dataclass(frozen=True)
class Passage:
    """A part of a file."""

    title: str
    text: str
    place: str
    """Where it is in the file, as a suffix of the path: ":12" (a line), " p. 3" or " cell 4"."""


def passages(path: Path, broken: list[str]) -> Iterator[Passage]:
    """Yield the passages of a file, in order. Each record of a JSONL, CSV or JSON file is one, or several if long.

    Args:
        path: the file.
        broken: takes the reasons of records that cannot be read; the others are yielded.

    Raises:
        UnreadableFile: the file cannot be read, or not beyond what was yielded.
    """
    try:
        is_records = path.suffix.lower() in {".jsonl", ".ndjson", ".csv"} or _is_array(path)
        found = _of_records(path, broken) if is_records else _of_content(content_of(path))
        yield from islice(found, MAX_PASSAGES)
        is_cut = next(found, None) is not None
    except (UnreadableFile, SourceFailure):
        raise
    except Exception as error:  # one file that nobody foresaw must not end a corpus
        raise UnreadableFile(f"it cannot be parsed ({type(error).__name__})") from error
    if is_cut:
        raise UnreadableFile(f"only its first {MAX_PASSAGES:,} passages were read")


def _of_content(content: Content) -> Iterator[Passage]:
    line, counted = 1, 0
    for title, start, stop in _sections(content):
        for text, offset in _split(content.text[start:stop], content.language):
            position = start + offset
            if content.starts:
                at = bisect_right(content.starts, position, key=lambda item: item[0]) - 1
                place = content.starts[at][1]
            else:
                line, counted = (
                    line + content.text.count("\n", counted, position),
                    max(counted, position),
                )
                place = f":{line}"
            yield Passage(title, text, place)
    if content.cut:
        raise UnreadableFile(content.cut)


def _is_array(path: Path) -> bool:
    if path.suffix.lower() != ".json":
        return False
    try:
        with open_regular(path) as file:
            return file.read(100).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
    except OSError:
        return False


def _of_records(path: Path, broken: list[str]) -> Iterator[Passage]:
    try:
        for record in records(path):
            if record.values is None:
                broken.append(f"line {record.line}: {record.reason}")
                if len(broken) == MAX_BROKEN:
                    raise UnreadableFile(
                        f"it is not read beyond {MAX_BROKEN:,} records that cannot be, the first in {broken[0]}"
                    )
                continue
            title, text = _title_and_text(record.values)
            for piece, _ in _split(text, ""):
                yield Passage(title or file_title(path), piece, f":{record.line}")
    except BadInput as error:
        raise UnreadableFile(str(error).replace(str(path), "it", 1)) from error


def _title_and_text(values: Mapping[str, Any]) -> tuple[str, str]:
    """The title and text of a record, by common field names; without a known text field, all fields are the text."""
    by_name = {
        name.lower(): value for name, value in values.items() if value not in (None, "", [], {})
    }
    title = next((by_name[name] for name in _TITLES if isinstance(by_name.get(name), str)), "")
    title = " ".join(clean(title).split())
    text = next((by_name[name] for name in _TEXTS if _is_text(by_name.get(name))), None)
    if text is None:
        text = [
            f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
            for name, value in values.items()
            if value not in (None, "", [], {})
        ]
    whole = clean(text if isinstance(text, str) else "\n".join(text))
    return (title, whole) if len(title) <= MAX_HEADING else ("", f"{title}\n{whole}")


def _is_text(value: object) -> bool:
    return isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(item, str) for item in value)
    )


def _sections(content: Content) -> Iterator[tuple[str, int, int]]:
    """The title, start and stop of the part under each heading; a heading with nothing under it is its own text.

    A title consists of that of the file and the headings above the part, the outermost first.
    """
    file, headings = content.title, content.headings
    top = headings[0] if headings and headings[0].level == 1 else None
    if top and not content.text[: top.start].strip():
        file = top.text
    stop = headings[0].start if headings else len(content.text)
    yield file, 0, stop
    above: list[tuple[int, str]] = []
    for number, heading in enumerate(headings):
        following = headings[number + 1] if number + 1 < len(headings) else None
        stop = following.start if following else len(content.text)
        above = [item for item in above if item[0] < heading.level] + [
            (heading.level, heading.text)
        ]
        path = [text for _, text in above]
        title = " › ".join(path if path[0] == file else [file, *path])
        alone = not content.text[heading.stop : stop].strip() and not (
            following and following.level > heading.level
        )
        yield title, heading.start if alone else heading.stop, stop


def _split(text: str, language: str) -> Iterator[tuple[str, int]]:
    """The pieces of a text with their offsets; only white space between them is lost."""
    bare = text.strip()
    if len(text) <= CHARACTERS or not bare:
        if bare:
            yield bare, len(text) - len(text.lstrip())
        return
    for start, stop in _stretches(text):
        for piece in _splitter(language).create_documents([text[start:stop]]):
            yield piece.page_content, start + int(piece.metadata["start_index"])


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    """Offsets of parts that are split one after the other: the splitter makes a list of the words of a whole text."""
    start = 0
    while len(text) - start > _STRETCH:
        ends = (
            text.rfind(end, start + _STRETCH // 2, start + _STRETCH) + len(end)
            for end in ("\n\n", "\n", " ")
        )
        stop = next((end for end in ends if end > start + _STRETCH // 2), start + _STRETCH)
        yield start, stop
        start = stop
    yield start, len(text)


@cache
def _splitter(language: str) -> "RecursiveCharacterTextSplitter":
    from langchain_text_splitters import Language, RecursiveCharacterTextSplitter  # noqa: PLC0415 - takes a second

    options: dict[str, Any] = {
        "chunk_size": CHARACTERS,
        "chunk_overlap": 0,
        "add_start_index": True,
    }
    if language:
        return RecursiveCharacterTextSplitter.from_language(Language(language), **options)
    return RecursiveCharacterTextSplitter(separators=_PROSE, keep_separator="end", **options)
