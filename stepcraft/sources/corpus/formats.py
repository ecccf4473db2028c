"""The limits of the formats that are parsed in a process of their own, and what their parsers share."""

import codecs
import json
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
    cut = (
        f"only its first {MAX_CELLS:,} cells were read" if len(content["cells"]) > MAX_CELLS else ""
    )
    return {"cells": cells, "cut": cut}


def one_line(title: str) -> str:
    """Return a title on one line, shortened to the longest that is used."""
    return " ".join(clean(title).split())[:MAX_HEADING]
