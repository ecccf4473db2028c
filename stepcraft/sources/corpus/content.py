"""Read a file as text with headings: Markdown, reStructuredText, HTML, PDF, notebooks, source code and plain text."""

import codecs
import json
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepcraft.text.clean import clean
from stepcraft.text.markdown import lines

MAX_BYTES = 50_000_000
"""The largest file that is read whole; files of records are read record by record, whatever their size."""

MAX_HEADING = 200
"""The most characters of a heading or title; a longer line is taken for text."""

_SNIFFED = 8192
_HASHES = re.compile(r" {0,3}(#{1,6})[ \t]++(.*)")
_CLOSING_HASHES = re.compile(r"(?<![ \t])[ \t]++(?:#++[ \t]*+)?\Z")
_MARKDOWN_LINE = re.compile(r" {0,3}(={2,}|-{2,})[ \t]*")
_RST_LINE = re.compile(r"([=\-~^\"'`#*+.:_<>])\1{2,}[ \t]*")
_FRONT_MATTER = re.compile(r"---\n(?:.*\n){0,50}?title:[ \t]*+(.+)\n(?:.*\n){0,50}?---[ \t]*(?:\n|\Z)")


class UnreadableFile(Exception):
    """A file cannot be read. The message is the reason, a clause that follows the file's path."""


@dataclass(frozen=True)
class Heading:
    """A heading and its character offsets, underline included."""

    start: int
    stop: int
    level: int
    """1 is the outermost."""
    text: str


@dataclass(frozen=True)
class Content:
    """The text of a file."""

    title: str
    text: str
    headings: Sequence[Heading] = ()
    language: str = ""
    """The language whose syntax it is split by, as langchain-text-splitters names it; "" for prose."""
    starts: Sequence[tuple[int, str]] = ()
    """The offsets of its pages or cells, each with its suffix in a source, such as " p. 3"; empty where lines are
    counted."""


def content_of(path: Path) -> Content:
    """Read a file according to its suffix; one with an unknown suffix is read as plain text.

    Raises:
        UnreadableFile: it is too large, binary, damaged, or not permitted to be read.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UnreadableFile(f"it is larger than {MAX_BYTES // 1_000_000} MB")
        return _READERS.get(path.suffix.lower(), _plain)(path)
    except OSError as error:
        raise UnreadableFile(f"it cannot be read: {error.strerror}") from error
    except RecursionError as error:
        raise UnreadableFile("it is nested too deeply") from error


def file_title(path: Path) -> str:
    """The title of a file that has none of its own: its name, cleaned of bytes that are no text."""
    return clean(path.name)


def markdown_headings(text: str) -> list[Heading]:
    """The headings of Markdown, with hashes or underlined. Fenced code holds none."""
    headings: list[Heading] = []
    position = last_start = 0
    before, last = "", ""
    for line, in_code in lines(text):
        bare, stop = line.rstrip("\n"), position + len(line)
        if in_code:
            pass
        elif (found := _HASHES.fullmatch(bare)) and _is_short(title := _CLOSING_HASHES.sub("", found[2])):
            headings.append(Heading(position, stop, len(found[1]), title))
            bare = ""
        elif (found := _MARKDOWN_LINE.fullmatch(bare)) and not before.strip() and _can_be_title(last):
            headings.append(Heading(last_start, stop, 1 if found[1][0] == "=" else 2, last.strip()))
            bare = ""
        before, last, last_start, position = last, bare, position, stop
    return headings


def rst_headings(text: str) -> list[Heading]:
    """The headings of reStructuredText: the level of a style of underline is the order of its first use."""
    headings: list[Heading] = []
    styles: list[tuple[str, bool]] = []
    rows = text.splitlines(keepends=True)
    position = 0
    for number, line in enumerate(rows):
        title = rows[number - 1].rstrip() if number else ""
        before = rows[number - 2].rstrip() if number > 1 else ""
        overlined = before == line.rstrip()
        found = _RST_LINE.fullmatch(line.rstrip("\n"))
        is_underline = found and len(line.rstrip()) >= len(title.strip()) and _can_be_title(title)
        if found and is_underline and (overlined or not before.strip()):
            style = (found[1], overlined)
            styles += [] if style in styles else [style]
            start = position - len(rows[number - 1]) - (len(rows[number - 2]) if overlined else 0)
            headings.append(Heading(start, position + len(line), styles.index(style) + 1, title.strip()))
        position += len(line)
    return headings


def _can_be_title(line: str) -> bool:
    return _is_short(line) and any(character.isalnum() for character in line)


def _is_short(title: str) -> bool:
    return bool(title.strip()) and len(title) <= MAX_HEADING


def _decoded(path: Path) -> str:
    """The text of a file in UTF-8, in UTF-16 with its byte order mark, else in Latin-1."""
    data = path.read_bytes()
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return clean(data.decode("utf-16", errors="replace"))
    if b"\0" in data[:_SNIFFED]:
        raise UnreadableFile("it is binary")
    try:
        return clean(data.decode())
    except UnicodeDecodeError:
        return clean(data.decode("latin-1"))


def _one_line(title: str) -> str:
    return " ".join(clean(title).split())[:MAX_HEADING]


def _plain(path: Path) -> Content:
    return Content(file_title(path), _decoded(path), language=_LANGUAGES.get(path.suffix.lower(), ""))


def _markdown(path: Path) -> Content:
    text = _decoded(path)
    found = _FRONT_MATTER.match(text)
    title = found[1].strip().strip("\"'") if found and _is_short(found[1]) else ""
    return Content(title or file_title(path), text, markdown_headings(text), "markdown")


def _rst(path: Path) -> Content:
    text = _decoded(path)
    return Content(file_title(path), text, rst_headings(text), "rst")


def _html(path: Path) -> Content:
    """As Markdown, without what a browser does not show; the line numbers are lost."""
    from bs4 import BeautifulSoup  # noqa: PLC0415 - heavy, and only needed for such files
    from markdownify import MarkdownConverter  # noqa: PLC0415 - the same

    soup = BeautifulSoup(_decoded(path), "html.parser")
    title = _one_line(soup.title.get_text(" ")) if soup.title else ""
    for tag in soup(["head", "script", "style", "template", "noscript", "nav"]):
        tag.decompose()
    converter = MarkdownConverter(
        heading_style="atx",
        strip=["a", "img"],
        escape_asterisks=False,
        escape_underscores=False,
        escape_misc=False,
    )
    text = clean(converter.convert_soup(soup))
    return Content(title or file_title(path), text, markdown_headings(text), "markdown", [(0, "")])


def _pdf(path: Path) -> Content:
    from pypdf import PdfReader  # noqa: PLC0415 - heavy, and only needed for such files
    from pypdf.errors import FileNotDecryptedError  # noqa: PLC0415 - the same

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it warns of every flaw that it repairs
    try:
        reader = PdfReader(path)
        title = _one_line(str((reader.metadata and reader.metadata.title) or ""))
        pages = [clean(page.extract_text()) for page in reader.pages]
    except OSError:
        raise
    except FileNotDecryptedError as error:
        raise UnreadableFile("it is encrypted") from error
    except Exception as error:  # a damaged file can fail anywhere in the parser
        raise UnreadableFile(f"it is no PDF that can be read ({type(error).__name__})") from error
    if not any(page.strip() for page in pages):
        raise UnreadableFile("it holds no text, perhaps only pictures of pages")
    text, starts = _joined(pages, " p. {}")
    return Content(title or file_title(path), text, starts=starts)


def _notebook(path: Path) -> Content:
    """The cells as Markdown, without their outputs."""
    try:
        notebook: dict[str, Any] = json.loads(_decoded(path))
        language = notebook.get("metadata", {}).get("kernelspec", {}).get("language", "")
        cells: list[str] = []
        for cell in notebook["cells"]:
            source = clean("".join(cell["source"]))
            is_code = cell["cell_type"] == "code" and source.strip()
            cells.append(f"```{language}\n{source}\n```" if is_code else source.strip() and source)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UnreadableFile("it is no notebook") from error
    text, starts = _joined(cells, " cell {}")
    return Content(file_title(path), text, markdown_headings(text), "markdown", starts)


def _joined(parts: Sequence[str], name: str) -> tuple[str, list[tuple[int, str]]]:
    """The parts as one text, and the offset of each with its number."""
    starts: list[tuple[int, str]] = []
    position = 0
    for number, part in enumerate(parts, 1):
        starts.append((position, name.format(number)))
        position += len(part) + 2
    return "\n\n".join(parts), starts


_READERS: dict[str, Callable[[Path], Content]] = {
    **dict.fromkeys((".md", ".markdown", ".mdx", ".qmd", ".rmd"), _markdown),
    **dict.fromkeys((".html", ".htm", ".xhtml"), _html),
    ".rst": _rst,
    ".pdf": _pdf,
    ".ipynb": _notebook,
}
_LANGUAGES = {
    ".c": "c", ".cc": "cpp", ".cpp": "cpp", ".cs": "csharp", ".ex": "elixir", ".exs": "elixir", ".go": "go",
    ".h": "c", ".hpp": "cpp", ".hs": "haskell", ".java": "java", ".js": "js", ".jsx": "js", ".kt": "kotlin",
    ".lua": "lua", ".mjs": "js", ".php": "php", ".pl": "perl", ".proto": "proto", ".ps1": "powershell",
    ".py": "python", ".pyi": "python", ".r": "r", ".rb": "ruby", ".rs": "rust", ".scala": "scala", ".sol": "sol",
    ".swift": "swift", ".tex": "latex", ".ts": "ts", ".tsx": "ts",
}  # fmt: skip
