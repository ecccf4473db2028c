"""Parsers, each for one kind of document. They run in the processes that `isolated` starts."""

from typing import TypeAlias

from stepcraft.sources.corpus.markup import MAX_HEADING

TITLES = ("title", "name", "subject", "question", "headline")
"""The names of fields that can hold the title of a record."""

Parsed: TypeAlias = tuple[str, list[str], str]
"""What a parser returns for the bytes of a file: its title, its parts (pages, cells or the whole
text), and a note on anything that was not read, or not read correctly.
"""


def as_heading(title: str) -> str:
    """Return a title on one line and cut to a heading's length, or "" if it contains no words."""
    return " ".join(title.split())[:MAX_HEADING] if any(map(str.isalnum, title)) else ""
