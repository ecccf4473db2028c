"""Read a file as text with headings, according to its suffix."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from stepcraft.files import open_regular
from stepcraft.sources.corpus.files import OFFICE
from stepcraft.sources.isolated import Unreadable, isolated
from stepcraft.text.clean import clean
from stepcraft.text.markdown import as_shown

MAX_BYTES = 50_000_000
"""The largest file that a parser gets."""

MAX_TEXT_BYTES = 20_000_000
"""The largest text: cleaning it holds up all other threads for a fifth of a second."""

MAX_BLOCKS = 50_000
"""The most headings and fenced blocks of a file; what follows is read as text."""

MAX_HEADING = 200
"""The most characters of a heading; a longer one is taken for text."""

SECONDS = 15.0
"""The processor time for a file that is parsed."""

_STRETCH = 100_000
_MARKDOWN = {".md", ".markdown", ".mdx", ".qmd", ".rmd", ".rst"}
"""Suffixes of what is read as Markdown, of which reStructuredText has the underlined titles."""
_PARSERS = {
    **dict.fromkeys((".html", ".htm", ".xhtml"), ("html:html", "")),
    **dict.fromkeys(OFFICE, ("office:office", "")),
    ".pdf": ("pdf:pdf", " p. {}"),
    ".ipynb": ("notebook:notebook", " cell {}"),
}
"""By suffix, the parser and what cites a part."""
_PARSER = MarkdownIt("commonmark").disable(["inline", "reference"])  # blocks alone
_FRONT_MATTER = re.compile(r"---\n(?=[\w-]+:)(.*?\n)---[ \t]*$", re.DOTALL | re.MULTILINE)
_TITLE = re.compile(r"^title:[ \t]*(.+)$", re.MULTILINE)


class Heading(NamedTuple):
    """A heading and its character offsets, underline included."""

    start: int
    stop: int
    level: int
    """1 is the outermost; 0 stands for a fenced block."""
    text: str


class Content(NamedTuple):
    """The text of a file."""

    title: str
    text: str
    blocks: Sequence[Heading] = ()
    """Headings and fenced blocks."""
    place: str = ":{}"
    """How a line, page or cell is cited by its number."""
    starts: Sequence[int] = ()
    """The offsets of pages or cells; empty where lines are counted."""
    cut: str = ""
    """What was not read because of a limit, a sentence; "" if all was."""


def content_of(path: Path) -> Content:
    """Read a file; one with an unknown suffix is read as plain text.

    Raises:
        Unreadable: It is too large, binary, damaged, or not permitted to be read.
    """
    suffix, title = path.suffix.lower(), file_title(path)
    if suffix in _PARSERS:
        return _parsed(_bytes(path, MAX_BYTES), title, *_PARSERS[suffix])
    text = _decoded(_bytes(path, MAX_TEXT_BYTES))
    return markdown_content(text, title) if suffix in _MARKDOWN else Content(title, text)


def file_title(path: Path) -> str:
    """Return the title of a file that has none of its own: its name, without what is no text."""
    return clean(path.name)


def markdown_content(text: str, title: str) -> Content:
    """Return Markdown as its readers see it; `title` serves where its front matter has none."""
    text = as_shown(text)
    if front := _FRONT_MATTER.match(text):
        if named := _TITLE.search(front[1]):
            title = _short(named[1].strip("\"' \t")) or title
        # The fields are text and their fences are none; the offsets stay.
        text = f"   \n{front[1]}   {text[front.end(1) + 3 :]}"
    return Content(title, text, list(islice(_blocks(text), MAX_BLOCKS)))


def markdown_headings(text: str) -> list[Heading]:
    """Return the headings of Markdown."""
    return [block for block in _blocks(text) if block.level]


def _blocks(text: str) -> Iterator[Heading]:
    """Yield headings and fenced blocks outside of lists and quotations.

    The text is parsed in stretches, since the parser makes a kilobyte of tokens of each heading.
    """
    start = 0
    while start < len(text):
        stop = text.find("\n", start + _STRETCH) + 1 or len(text)
        stretch, blocks = text[start:stop], list[Heading]()
        offsets = list(accumulate(map(len, re.split(r"(?<=\n)", stretch)), initial=start))
        for token, content in pairwise([*_PARSER.parse(stretch), Token("", "", 0)]):
            if token.level or token.type not in {"heading_open", "fence"} or not token.map:
                continue
            title = _short(content.content) if token.type == "heading_open" else ""
            if title or token.type == "fence":
                begin, end = (offsets[line] for line in token.map)
                blocks.append(Heading(begin, end, int(token.tag[1:]) if title else 0, title))
        if stop < len(text) and blocks and blocks[-1].start > start:
            stop = blocks.pop().start  # the next stretch begins with what may be cut
        yield from blocks
        start = stop


def _short(title: str) -> str:
    """Return a title on one line, "" for what is none."""
    line = " ".join(title.split()).strip("= ")  # the line above a title of reStructuredText
    return line if len(line) <= MAX_HEADING and any(map(str.isalnum, line)) else ""


def _parsed(data: bytes, title: str, parser: str, place: str) -> Content:
    name, parts, cut = isolated(f"stepcraft.sources.parse.{parser}", data, seconds=SECONDS)
    text, title = "\n\n".join(parts), _short(clean(name)) or title
    starts = list(accumulate((len(part) + 2 for part in parts), initial=0))
    content = Content(title, text) if parser == "pdf:pdf" else markdown_content(text, title)
    return content._replace(place=place, starts=starts, cut=cut)


def _bytes(path: Path, limit: int) -> bytes:
    """Return the content of a file of at most so many bytes."""
    try:
        with open_regular(path) as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise Unreadable(f"it cannot be read: {error.strerror}") from error
    if len(data) > limit:
        raise Unreadable(f"it is larger than {limit // 1_000_000} MB")
    return data


def _decoded(data: bytes) -> str:
    """Return text in UTF-8, else in Latin-1."""
    if b"\0" in data[:8192]:
        raise Unreadable("it is binary or in UTF-16")
    try:
        return clean(data.decode())
    except UnicodeDecodeError:
        return clean(data.decode("latin-1"))
