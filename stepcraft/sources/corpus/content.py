"""Read a file as text with headings, choosing the parser by its suffix or content."""

import re
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import accumulate, chain, islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from stepcraft.encoding import NotOpened, Unreadable, decoded
from stepcraft.files import open_regular
from stepcraft.sources.corpus.markup import (
    MAX_HEADING,
    Heading,
    blanks,
    headings_of,
    title_of,
    without_commands,
    without_components,
    without_furniture,
)
from stepcraft.sources.isolated import isolated
from stepcraft.text.clean import clean
from stepcraft.text.markdown import as_shown, shown_heading

MAX_BYTES = 50_000_000
"""The maximum size of a file that is passed to a parser."""

MAX_TEXT_BYTES = 20_000_000
"""The maximum size of a text file; cleaning it stalls all other threads for 0.2 seconds."""

MAX_BLOCKS = 50_000
"""The maximum number of headings, fenced blocks and tables in a file; the rest is read as text."""

SECONDS = 15.0
"""The maximum processor time for parsing a file, in seconds."""

_OLD_OFFICE = b"\xd0\xcf\x11\xe0"
_STRETCH = 100_000
MARKDOWN = {".md", ".markdown", ".mdc", ".mdx", ".qmd", ".rmd"}
"""The suffixes of files that are read as Markdown."""
OFFICE = (".docx", ".pptx", ".xlsx")
"""Suffixes of files that are read only if MarkItDown is installed."""
_PARSERS = {
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html:html"),
    ".docx": "office:docx",
    ".pptx": "office:pptx",
    ".xlsx": "office:xlsx",
    ".pdf": "pdf:pdf",
    ".ipynb": "notebook:notebook",
    ".eml": "mail:mail",
    ".mbox": "mail:mbox",
    **dict.fromkeys((".mhtml", ".mht"), "mail:mhtml"),
    ".xml": "xml:xml",
    ".json": "data:json",
    ".epub": "book:epub",
    ".odt": "book:odt",
    ".rtf": "book:rtf",
}
"""The parser for each suffix."""
_PLACES = {
    "office:pptx": " slide {}",
    "pdf:pdf": " p. {}",
    "notebook:notebook": " cell {}",
    "mail:mbox": " message {}",
    "book:epub": " chapter {}",
}
"""The format for citing a part of a file, for parsers that return several parts."""
_OF_SEVERAL = {"book:epub", "mail:mbox"}
"""Parsers for files whose first heading is not the title of the whole file."""
_PARSER = MarkdownIt("commonmark").enable("table").disable(["inline", "reference"])  # blocks only
_BLOCKS = {"heading_open", "fence", "table_open"}
_MARKER = re.compile(r"[^\s>]")
"""A character of a list item's marker."""
_NO_CELLS = re.compile(r"^[^|\n]*$", re.MULTILINE)
_FRONT_MATTER = re.compile(
    r"(?P<mark>---|\+\+\+)\n(?=(?:[ \t]*+(?:#[^\n]*+)?\n)*+[\w\"'-]+[ \t]*[:=])"
    r"(?P<fields>(?:(?!(?:(?P=mark)|\.\.\.)[ \t]*$)"
    r"(?!\n#{1,6}[ ][^\n]*\n\n(?!\s*+[\w\"'-]+[ \t]*[:=]))[^\n]*+\n)++)(?:(?P=mark)|\.\.\.)[ \t]*$",
    re.MULTILINE,
)
_TITLES = ("title", "name")
_COMMENT = re.compile(r"^[ \t]*#{1,6}(?:[ \t][^\n]*)?$", re.MULTILINE)
_MOST_FIELDS = 20_000
"""The number of characters of front matter that are searched for a title."""
PAGE = ".webpage.md"
"""The suffix of the copies of web pages, whose passages have no line numbers."""
_MARKED_UP = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*<(?:(?P<html>(?P<doctype>!DOCTYPE[ ])?html[\s>])|!DOCTYPE[ ]|\?xml)",
    re.IGNORECASE,
)
"""The beginning of HTML or XML, possibly after a byte-order mark."""
_SAVED_PAGES = {".doc", ".xls"}
"""The suffixes of Office that programs give to web pages, which they may save in MIME format."""
_MAILBOX = re.compile(rb"From [^\n]*\d\d:\d\d[^\n]*\d{4}[^\n]*\n[\w-]+:")
"""The beginning of a mailbox, whose name often has no suffix."""
_OPENAPI = re.compile(rb"^[\"']?(?:openapi|swagger)[\"']?[ \t]*:", re.MULTILINE)
_DATA_URI = re.compile(
    r"(?:^\[[^\]\n]{1,80}\]:[ \t]*<)?data:[\w/+.-]{1,80};base64,[A-Za-z0-9+/=]{60,}+"
    r"(?:\s+[A-Za-z0-9+/=]{60,}+)*+(?:\s+[A-Za-z0-9+/]+={0,2}(?=[)>\"']))?>?",
    re.MULTILINE,
)
"""A base64 data URI in the text, including any link reference definition around it."""


class Content(NamedTuple):
    """The text of a file."""

    title: str
    text: str
    blocks: Sequence[Heading] = ()
    """Headings, fenced blocks and tables."""
    place: str = ":{}"
    """The format for citing a line, page or cell by its number."""
    starts: Sequence[int] = ()
    """The offsets of pages or cells; empty if lines are counted."""
    cut: str = ""
    """A note on anything that was not read, or not read correctly, or "" if there is none."""


def read_content(path: Path) -> Content:
    """Read a file; one with an unknown suffix is read as plain text.

    Raises:
        Unreadable: It is too large, binary or damaged.
        NotOpened: The operating system cannot open or read it.
    """
    suffix, title = path.suffix.lower().replace(".asciidoc", ".adoc"), file_title(path)
    if parser := _PARSERS.get(suffix):
        return _parsed(_bytes(path, MAX_BYTES), title, parser)
    data = _bytes(path, MAX_TEXT_BYTES)
    if parser := _parser_for(data, suffix):
        with suppress(Unreadable):  # if parsing fails, read it as plain text
            return _parsed(data, title, parser)
    if data.startswith(b"{\\rtf"):
        raise Unreadable("it is RTF; name it .rtf")
    text, note = decoded(data)
    text = clean(text)
    if suffix in MARKDOWN:
        if path.name.endswith(PAGE):  # whose marks were converted when it was fetched
            return markdown_content(text, title)._replace(cut=note, place="")
        return markdown_content(as_shown(without_components(text)), title)._replace(cut=note)
    text = without_commands(text, suffix)
    headings = headings_of(text, suffix)[:MAX_BLOCKS]
    shown = without_furniture(text) if suffix == ".txt" else text
    return Content(title_of(text, suffix) or title, shown, headings, cut=note)


def _parser_for(data: bytes, suffix: str) -> str:
    """Return the parser that the content of a text file calls for, or ""."""
    begins = _MARKED_UP.match(data)
    # The source of a program can begin with the bare tag.
    if begins and (begins["doctype"] or not begins["html"] or suffix in {"", *_SAVED_PAGES}):
        return _PARSERS[".html" if begins["html"] else ".xml"]
    if suffix in _SAVED_PAGES and b"MIME-Version:" in data[:_MOST_FIELDS]:
        return _PARSERS[".mhtml"]
    if not suffix and _MAILBOX.match(data):
        return _PARSERS[".mbox"]
    is_openapi = suffix in {".yaml", ".yml"} and _OPENAPI.search(data[:_MOST_FIELDS])
    return "data:openapi" if is_openapi else ""


def file_title(path: Path) -> str:
    """Return the title for a file that does not state one: its file name, cleaned."""
    return clean(path.name)


def markdown_content(text: str, title: str, starts: Sequence[int] = ()) -> Content:
    """Return Markdown with its headings.

    Args:
        text: The text.
        title: The title if there is none in the front matter.
        starts: The offsets of parts that are documents of their own, and the end of the last one.
    """
    text = _DATA_URI.sub(blanks, text)
    start = len(text) - len(text.lstrip())
    if front := _FRONT_MATTER.match(text, start):
        title = _short(_title_in(front["fields"], is_toml=front["mark"] == "+++")) or title
        # Keep the fields as text, but not the delimiters, nor comments, which look like headings.
        fields, end = _COMMENT.sub(blanks, front["fields"]), front.end("fields")
        text = f"{text[:start]}   \n{fields}   {text[end + 3 :]}"
    parts = (_blocks(text, *part) for part in pairwise(starts or (0, len(text))))
    blocks = [
        block._replace(text=shown_heading(block.text) or block.text)
        for block in islice(chain.from_iterable(parts), MAX_BLOCKS)
    ]
    return Content(title, text, blocks)


def _title_in(fields: str, *, is_toml: bool) -> str:
    """Return the title in front matter, or "" if there is no readable one."""
    with suppress(ValueError, yaml.YAMLError, RecursionError):
        short = fields[:_MOST_FIELDS]
        loader = yaml.BaseLoader  # which creates only strings, lists and mappings
        values: Any = tomllib.loads(short) if is_toml else yaml.load(short, loader)  # noqa: S506
        if isinstance(values, dict):
            by_name = {name.lower(): value for name, value in values.items()}
            title = next((by_name[it] for it in _TITLES if isinstance(by_name.get(it), str)), "")
            # JSON escapes a character such as an emoji as two surrogates.
            return clean(title.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    return ""


def markdown_headings(text: str) -> list[Heading]:
    """Return the headings in a Markdown text."""
    return [block for block in _blocks(text, 0, len(text)) if block.level]


def _blocks(text: str, start: int, limit: int) -> Iterator[Heading]:
    """Yield fenced blocks, and the headings and tables outside of lists and quotations.

    The text is parsed in chunks, since the parser creates a kilobyte of tokens per heading.
    """
    while start < limit:
        stop = text.find("\n", start + _STRETCH, limit) + 1 or limit
        stretch, blocks = text[start:stop], list[Heading]()
        offsets = list(accumulate(map(len, re.split(r"(?<=\n)", stretch)), initial=start))
        for token, content in pairwise([*_PARSER.parse(stretch), Token("", "", 0)]):
            is_inner = token.level and token.type != "fence"
            if token.type not in _BLOCKS or not token.map or is_inner:
                continue
            begin, end = (offsets[line] for line in token.map)
            if token.type != "heading_open":
                rows = 2 if token.type == "table_open" else 1  # a table's header, or a fence
                first = stretch[begin - start : end - start].split("\n", rows)[:rows]
                margin = first[0][: first[0].find(token.markup)]  # "" for a table
                fence = _MARKER.sub(" ", margin) + token.markup
                blocks.append(Heading(begin, end, 0, "", "\n".join(first), fence))
            elif title := _short(content.content):
                blocks.append(Heading(begin, end, int(token.tag[1:]), title))
        if stop < limit and blocks and blocks[-1].start > start:
            stop = blocks.pop().start  # the next chunk begins with what may have been cut
        elif stop < limit and blocks and not blocks[-1].level and blocks[-1].stop == stop:
            stop = _end_of(blocks[-1], text[:limit])
            blocks[-1] = blocks[-1]._replace(stop=stop)
        yield from blocks
        start = stop


def _end_of(block: Heading, text: str) -> int:
    """Return the end of a table or fenced block that extends beyond its chunk."""
    if not block.fence:  # a table
        end = _NO_CELLS.search(text, block.stop)
        return end.start() if end else len(text)
    mark = block.fence.lstrip(" \t>")
    closing = re.compile(rf"^[ \t>]*{mark}{mark[0]}*[ \t]*$", re.MULTILINE)
    end = closing.search(text, text.find("\n", block.start))
    return end.end() if end else len(text)


def _short(title: str) -> str:
    """Return a title on one line, or "" if the text is not a title."""
    line = " ".join(title.split()).rstrip("\u00b6 ")
    return line if len(line) <= MAX_HEADING and any(map(str.isalnum, line)) else ""


def _parsed(data: bytes, title: str, parser: str) -> Content:
    name, parts, cut = isolated(f"stepcraft.sources.parse.{parser}", data, seconds=SECONDS)
    # The cells of a notebook are Markdown; the other parsers have dropped comments themselves.
    has_comments = parser == "notebook:notebook"
    parts = [as_shown(part, comments=has_comments) for part in parts]
    text, title = "\n\n".join(parts), _short(clean(name)) or title
    starts = list(accumulate((len(part) + 2 for part in parts), initial=0))
    is_plain = parser == "pdf:pdf"
    content = Content(title, text) if is_plain else markdown_content(text, title, starts)
    if parser in _OF_SEVERAL:
        lower = [each._replace(level=each.level and each.level + 1) for each in content.blocks]
        content = content._replace(blocks=lower)
    return content._replace(place=_PLACES.get(parser, ""), starts=starts, cut=cut)


def _bytes(path: Path, limit: int) -> bytes:
    """Return the content of a file, refusing one with more than the given number of bytes."""
    try:
        with open_regular(path) as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise NotOpened(f"it cannot be read: {error.strerror}") from error
    if len(data) > limit:
        raise Unreadable(f"it is larger than {limit // 1_000_000} MB")
    if data.startswith(_OLD_OFFICE):
        raise Unreadable(
            "it is of an old Office or Outlook, or protected by a password; save it anew"
        )
    return data
