"""The formats that libraries parse, HTML, PDF and notebooks: functions for `isolated`, which import little."""

import codecs
import io
import json
import logging
import time
from typing import Any

from stepcraft.sources.isolated import Unparsed
from stepcraft.text.clean import clean

MAX_HEADING = 200
"""The most characters of a heading or title; a longer line is taken for text."""

MAX_TAGS = 100_000
"""The most tags of an HTML file that are read, opening and closing ones; so many take about five seconds."""

MAX_PAGES = 3_000
"""The most pages of a PDF that are read."""

MAX_CELLS = 20_000
"""The most cells of a notebook that are read."""

MAX_CHARACTERS = 20_000_000
"""The most characters of a file that are read."""

SECONDS = 15.0
"""The time for one file. The pages of a PDF that were read until shortly before are kept."""

_SNIFFED = 8192


def decoded(data: bytes) -> str:
    """Return the text of a file in UTF-8, in UTF-16 with its byte order mark, else in Latin-1.

    Raises:
        Unparsed: it is binary.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return clean(data.decode("utf-16", errors="replace"))
    if b"\0" in data[:_SNIFFED]:
        raise Unparsed("it is binary")
    try:
        return clean(data.decode())
    except UnicodeDecodeError:
        return clean(data.decode("latin-1"))


def html(data: bytes) -> dict[str, str]:
    """Return title and text of HTML, as Markdown, without what a browser does not show, and what was cut off."""
    from bs4 import BeautifulSoup  # noqa: PLC0415 - heavy, and only needed for such files
    from markdownify import MarkdownConverter  # noqa: PLC0415 - the same

    source, cut = decoded(data), ""
    end = -1
    for _ in range(min(MAX_TAGS, source.count("<"))):
        end = source.find("<", end + 1)
    if (after := source.find("<", end + 1)) >= 0:
        source, cut = source[:after], f"only its first {MAX_TAGS:,} tags were read"
    soup = BeautifulSoup(source, "html.parser")
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
    return {"title": title, "text": clean(converter.convert_soup(soup)), "cut": cut}


def pdf(data: bytes) -> dict[str, Any]:
    """Return title and pages of a PDF, and what was cut off."""
    started = time.monotonic()
    from pypdf import PdfReader  # noqa: PLC0415 - heavy, and only needed for such files
    from pypdf.errors import FileNotDecryptedError  # noqa: PLC0415 - the same

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it warns of every flaw that it repairs
    pages: list[str] = []
    cut, size = "", 0
    try:
        reader = PdfReader(io.BytesIO(data))
        title = _one_line(str((reader.metadata and reader.metadata.title) or ""))
        for page in reader.pages:
            seconds = time.monotonic() - started
            if len(pages) == MAX_PAGES or size > MAX_CHARACTERS or seconds > 0.8 * SECONDS:
                why = f", which took {seconds:.0f} s" if seconds > 0.8 * SECONDS else ""
                cut = f"only its first {len(pages):,} pages were read{why}"
                break
            pages.append(clean(page.extract_text()))
            size += len(pages[-1])
    except FileNotDecryptedError as error:
        raise Unparsed("it is encrypted") from error
    except (MemoryError, RecursionError):
        raise
    except Exception as error:  # a damaged file can fail anywhere in the parser
        raise Unparsed(f"it is no PDF that can be read ({type(error).__name__})") from error
    if not any(page.strip() for page in pages):
        raise Unparsed("it holds no text, perhaps only pictures of pages")
    return {"title": title, "pages": pages, "cut": cut}


def notebook(data: bytes) -> dict[str, Any]:
    """Return the cells of a notebook as Markdown, without their outputs, and what was cut off."""
    try:
        content: dict[str, Any] = json.loads(decoded(data))
        language = content.get("metadata", {}).get("kernelspec", {}).get("language", "")
        cells: list[str] = []
        for cell in content["cells"][:MAX_CELLS]:
            source = clean("".join(cell["source"]))
            is_code = cell["cell_type"] == "code" and source.strip()
            cells.append(f"```{language}\n{source}\n```" if is_code else source.strip() and source)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise Unparsed("it is no notebook") from error
    cut = f"only its first {MAX_CELLS:,} cells were read" if len(content["cells"]) > MAX_CELLS else ""
    return {"cells": cells, "cut": cut}


def _one_line(title: str) -> str:
    return " ".join(clean(title).split())[:MAX_HEADING]
