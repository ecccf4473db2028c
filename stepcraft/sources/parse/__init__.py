"""Parsers, each for one kind of document. They run in the processes that `isolated` starts."""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from stepcraft.sources.corpus.markup import MAX_HEADING
from stepcraft.text.clean import clean

MAX_TAGS = 100_000
"""The maximum number of opening and closing tags read; this many take about five seconds."""

SECONDS = 9.0
"""The processor time after which no further part of a file is begun; one may take five seconds."""

TITLES = ("title", "name", "subject", "question", "headline")
"""The names of fields that can hold the title of a record."""

Parsed: TypeAlias = tuple[str, list[str], str]
"""What a parser returns for the bytes of a file: its title, its parts (pages, cells or the whole
text), and a note on anything that was not read, or not read correctly.
"""

_Item = TypeVar("_Item")

_MARKUP = re.compile(
    r"^([ \t]*)(?=#{1,6}[ \t]+\S|`{3}|~{3}|<(?:script|pre|style|textarea|!--|\?))", re.MULTILINE
)
"""Where Markdown would begin a heading, a fenced block, or HTML that goes on over blank lines."""


def as_plain(text: str, escape: str = "\\") -> str:
    """Return text with a backslash before what Markdown would not read as text."""
    return _MARKUP.sub(lambda begin: begin[0] + escape, text)


def as_heading(title: str) -> str:
    """Return a title on one line and cut to a heading's length, or "" if it contains no words."""
    return " ".join(title.split())[:MAX_HEADING] if any(map(str.isalnum, title)) else ""


def as_paragraphs(text: str) -> str:
    """Return a cleaned text with one blank line between its paragraphs."""
    return clean(re.sub(r"\n\s*\n", "\n\n", text))


def as_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as a table in Markdown, the first one as its header."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, f"|{' --- |' * len(rows[0])}")
    return "\n".join(lines)


def in_time(items: Iterable[_Item], notes: list[str], name: str, seconds: float) -> Iterator[_Item]:
    """Yield the parts of a file until the processor time is used up, but at least the first one.

    Args:
        items: The parts.
        notes: A list to which a note is added if not all parts were read.
        name: What the note calls the parts.
        seconds: The time after which no further part is yielded.
    """
    started = time.process_time()
    for number, item in enumerate(items):
        if number and time.process_time() - started > seconds:
            notes.append(f"only its first {number:,} {name} were read")
            return
        yield item


def first_few(items: Sequence[object], most: int) -> str:
    """Return the first few items as text, and how many more there are."""
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return ", ".join(map(str, items[:most])) + more
