"""Read a file as text with headings: Markdown, reStructuredText, HTML, PDF, notebooks, source code and plain text."""

import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from stepcraft.files import open_regular
from stepcraft.sources.corpus import formats
from stepcraft.sources.isolated import Unparsed, isolated
from stepcraft.text.clean import clean
from stepcraft.text.markdown import as_shown, lines

MAX_BYTES = 50_000_000
"""The largest file that is read whole; files of records are read record by record, whatever their size."""

MAX_TEXT_BYTES = 20_000_000
"""The largest text that is read whole: it is cleaned in one go, which holds up all other threads for a fifth of a second."""

MAX_HEADINGS = 50_000
"""The most headings of a file; further ones are read as text."""

_HASHES = re.compile(r" {0,3}(#{1,6})[ \t]++(.*)")
_CLOSING_HASHES = re.compile(r"(?<![ \t])[ \t]++(?:#++[ \t]*+)?\Z")
_MARKDOWN_LINE = re.compile(r" {0,3}(={2,}|-{2,})[ \t]*")
_RST_LINE = re.compile(r"([=\-~^\"'`#*+.:_<>])\1{2,}[ \t]*")
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_FRONT_MATTER = re.compile(
    r"---\n(?:.*\n){0,50}?title:[ \t]*+(.+)\n(?:.*\n){0,50}?---[ \t]*(?:\n|\Z)"
)


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
    cut: str = ""
    """What was not read because of a limit, a sentence; "" if all was."""


def content_of(path: Path) -> Content:
    """Read a file according to its suffix; one with an unknown suffix is read as plain text.

    Raises:
        UnreadableFile: it is too large, binary, damaged, or not permitted to be read.
    """
    try:
        return _READERS.get(path.suffix.lower(), _plain)(path)
    except OSError as error:
        raise UnreadableFile(f"it cannot be read: {error.strerror}") from error
    except Unparsed as error:
        raise UnreadableFile(str(error)) from error


def file_title(path: Path) -> str:
    """The title of a file that has none of its own: its name, cleaned of bytes that are no text."""
    return clean(path.name)


def markdown_headings(text: str) -> list[Heading]:
    """The headings of Markdown, with hashes or underlined. Fenced code holds none."""
    return list(itertools.islice(_markdown_headings(text), MAX_HEADINGS))


def _markdown_headings(text: str) -> Iterator[Heading]:
    position = last_start = 0
    before, last = "", ""
    for line, in_code in lines(text):
        bare, stop = line.rstrip("\n"), position + len(line)
        if in_code:
            pass
        elif (found := _HASHES.fullmatch(bare)) and _is_short(
            title := _CLOSING_HASHES.sub("", found[2])
        ):
            yield Heading(position, stop, len(found[1]), title)
            bare = ""
        elif (
            (found := _MARKDOWN_LINE.fullmatch(bare)) and not before.strip() and _can_be_title(last)
        ):
            yield Heading(last_start, stop, 1 if found[1][0] == "=" else 2, last.strip())
            bare = ""
        before, last, last_start, position = last, bare, position, stop


def rst_headings(text: str) -> list[Heading]:
    """The headings of reStructuredText: the level of a style of underline is the order of its first use."""
    return list(itertools.islice(_rst_headings(text), MAX_HEADINGS))


def _rst_headings(text: str) -> Iterator[Heading]:
    styles: list[tuple[str, bool]] = []
    position = 0
    over = title = ""
    for line in (match[0] for match in _LINE.finditer(text)):
        underline, bare = line.rstrip(), title.strip()
        overlined = over.rstrip() == underline
        found = _RST_LINE.fullmatch(line.rstrip("\n"))
        if (
            found
            and len(underline) >= len(bare)
            and _can_be_title(title.rstrip())
            and (overlined or not over.strip())
        ):
            style = (found[1], overlined)
            styles += [] if style in styles else [style]
            start = position - len(title) - (len(over) if overlined else 0)
            yield Heading(start, position + len(line), styles.index(style) + 1, bare)
        position += len(line)
        over, title = title, line


def _can_be_title(line: str) -> bool:
    return _is_short(line) and any(character.isalnum() for character in line)


def _is_short(title: str) -> bool:
    return bool(title.strip()) and len(title) <= formats.MAX_HEADING


def _bytes(path: Path, limit: int = MAX_BYTES) -> bytes:
    """The content of a file, of which no more is read than the limit, however it grows."""
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        data = b"" if size > limit else file.read(limit + 1)
    if max(size, len(data)) > limit:
        raise UnreadableFile(f"it is larger than {limit // 1_000_000} MB")
    return data


def _plain(path: Path) -> Content:
    return Content(file_title(path), _text(path), language=_LANGUAGES.get(path.suffix.lower(), ""))


def _markdown(path: Path) -> Content:
    text = as_shown(_text(path))
    found = _FRONT_MATTER.match(text)
    title = found[1].strip().strip("\"'") if found and _is_short(found[1]) else ""
    if found:
        front = found[0].rstrip()
        text = f"   {front[3:-3]}   {text[len(front) :]}"  # its fences are no text
    return Content(title or file_title(path), text, markdown_headings(text), "markdown")


def _rst(path: Path) -> Content:
    text = _text(path)
    return Content(file_title(path), text, rst_headings(text), "rst")


def _html(path: Path) -> Content:
    """As Markdown; the line numbers are lost."""
    found = isolated("stepcraft.sources.corpus._html:html", _bytes(path), seconds=formats.SECONDS)
    title, text, cut = found["title"] or file_title(path), found["text"], found["cut"]
    return Content(title, text, markdown_headings(text), "markdown", [(0, "")], cut)


def _pdf(path: Path) -> Content:
    found = isolated("stepcraft.sources.corpus._pdf:pdf", _bytes(path), seconds=formats.SECONDS)
    text, starts = _joined(found["pages"], " p. {}")
    return Content(found["title"] or file_title(path), text, starts=starts, cut=found["cut"])


def _notebook(path: Path) -> Content:
    found = isolated(
        "stepcraft.sources.corpus.formats:notebook", _bytes(path), seconds=formats.SECONDS
    )
    text, starts = _joined(found["cells"], " cell {}")
    return Content(
        file_title(path), text, markdown_headings(text), "markdown", starts, found["cut"]
    )


def _text(path: Path) -> str:
    return formats.decoded(_bytes(path, MAX_TEXT_BYTES))


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
