"""What a file says, with its headings: text, markdown, reStructuredText, code, HTML, PDF and notebooks."""

import codecs
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepcraft.sources.corpus.headings import (
    MAX_CHARACTERS,
    Heading,
    front_title,
    markdown_headings,
    rst_headings,
)
from stepcraft.text.clean import clean

MAX_BYTES = 50_000_000
"""A larger file is not read, unless it is read record by record."""

_SNIFFED = 8192


class UnreadableFile(Exception):
    """A file cannot be read; the message says why, to follow the path of the file."""


@dataclass(frozen=True)
class Content:
    """The text of a file, or of a record in it."""

    title: str
    text: str
    headings: Sequence[Heading] = ()
    language: str = ""
    """How langchain-text-splitters calls the language that is split by its syntax; "" for prose."""
    starts: Sequence[tuple[int, str]] = ()
    """Where in the text its pages or cells begin, and how a source names them; empty where lines are counted."""


def content_of(path: Path) -> Content:
    """What a file says, read by the ending of its name; any other ending is read as plain text.

    Raises:
        UnreadableFile: it is too large, no text, damaged, or may not be read.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UnreadableFile(f"it is larger than {MAX_BYTES // 1_000_000} MB")
        return _READERS.get(path.suffix.lower(), _plain)(path)
    except OSError as error:
        raise UnreadableFile(f"it cannot be read: {error.strerror}") from error
    except RecursionError as error:
        raise UnreadableFile("it is nested too deeply") from error


def decoded(data: bytes) -> str:
    """The text of bytes: UTF-8, UTF-16 where it says so, else Latin-1.

    Raises:
        UnreadableFile: they are no text.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return clean(data.decode("utf-16", errors="replace"))
    if b"\0" in data[:_SNIFFED]:
        raise UnreadableFile("it is binary")
    try:
        return clean(data.decode())
    except UnicodeDecodeError:
        return clean(data.decode("latin-1"))


def named(path: Path) -> str:
    """The name of a file, whatever bytes are in it, as a title."""
    return clean(path.name)


def _one_line(title: str) -> str:
    return " ".join(clean(title).split())[:MAX_CHARACTERS]


def _plain(path: Path) -> Content:
    return Content(named(path), decoded(path.read_bytes()), language=_LANGUAGES.get(path.suffix.lower(), ""))


def _markdown(path: Path) -> Content:
    text = decoded(path.read_bytes())
    return _with_headings(front_title(text), text, path)


def _with_headings(title: str, text: str, path: Path, starts: Sequence[tuple[int, str]] = ()) -> Content:
    return Content(title or named(path), text, markdown_headings(text), "markdown", starts)


def _rst(path: Path) -> Content:
    text = decoded(path.read_bytes())
    return Content(named(path), text, rst_headings(text), "rst")


def _html(path: Path) -> Content:
    """As markdown, without what a browser does not show; the lines of the file are lost."""
    from bs4 import BeautifulSoup  # noqa: PLC0415 - heavy, and only needed for such files
    from markdownify import MarkdownConverter  # noqa: PLC0415 - the same

    soup = BeautifulSoup(decoded(path.read_bytes()), "html.parser")
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
    return _with_headings(title, text, path, [(0, "")])


def _pdf(path: Path) -> Content:
    from pypdf import PdfReader  # noqa: PLC0415 - heavy, and only needed for such files
    from pypdf.errors import FileNotDecryptedError  # noqa: PLC0415 - the same

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it warns of every flaw that it mends
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
    return Content(title or named(path), text, starts=starts)


def _notebook(path: Path) -> Content:
    try:
        notebook = json.loads(decoded(path.read_bytes()))
        cells = [_cell(cell, notebook) for cell in notebook["cells"]]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UnreadableFile("it is no notebook") from error
    text, starts = _joined(cells, " cell {}")
    return _with_headings("", text, path, starts)


def _cell(cell: dict[str, Any], notebook: dict[str, Any]) -> str:
    """The source of a cell as markdown; what it printed is left out."""
    source = clean("".join(cell["source"]))
    if cell["cell_type"] != "code":
        return source
    language = notebook.get("metadata", {}).get("kernelspec", {}).get("language", "")
    return f"```{language}\n{source}\n```" if source.strip() else ""


def _joined(parts: Sequence[str], name: str) -> tuple[str, list[tuple[int, str]]]:
    """The parts as one text, and where each of them begins under its number."""
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
