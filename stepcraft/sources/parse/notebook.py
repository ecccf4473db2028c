"""The cells of a notebook as Markdown, including text outputs."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from stepcraft.sources.parse import Parsed
from stepcraft.text.clean import clean
from stepcraft.text.markdown import fenced

MAX_OUTPUT = 2_000
"""The maximum number of characters read from an output."""

_COLOURS = re.compile(r"\x1b\[[\d;]*m")
"""Escape sequences for terminal colours."""


def notebook(data: bytes) -> Parsed:
    """Return the cells, with code and outputs in fences."""
    book = json.loads(data)
    sheets = [book] if "cells" in book else book["worksheets"]  # before version 4
    parts: list[str] = []
    for cell in (cell for sheet in sheets for cell in sheet["cells"]):
        source = _joined(cell["input"] if "input" in cell else cell["source"])
        if cell["cell_type"] == "code":
            texts = [source, *_outputs(cell.get("outputs", []))]
            source = "\n\n".join(map(fenced, filter(str.strip, texts)))
        elif cell["cell_type"] == "heading":
            source = f"{'#' * cell['level']} {source}"
        parts.append(source)
    return "", parts, ""


def _outputs(outputs: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the texts in outputs: printed text, results, and errors without tracebacks."""
    for output in outputs:
        if "ename" in output:
            yield f"{output['ename']}: {output['evalue']}"
        else:
            text = output.get("text") or output.get("data", {}).get("text/plain") or ""
            yield _joined(text)[:MAX_OUTPUT]


def _joined(text: str | list[str]) -> str:
    return clean(_COLOURS.sub("", "".join(text))).rstrip("\n")
