"""The cells of a notebook as Markdown, including text outputs."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from stepcraft.sources.parse import Parsed
from stepcraft.sources.parse.html import html
from stepcraft.text.clean import clean
from stepcraft.text.markdown import fenced

MAX_OUTPUT = 2_000
"""The maximum number of characters read from an output: its beginning and its end."""
_OBJECT = re.compile(r"(?:<[^<>]+>)?")
"""What stands for an output that only a browser can show."""


def notebook(data: bytes) -> Parsed:
    """Return the cells, with code and outputs in fences."""
    book = json.loads(data)
    sheets = [book] if "cells" in book else book["worksheets"]  # before version 4
    parts: list[str] = []
    long: list[int] = []
    for number, cell in enumerate((cell for sheet in sheets for cell in sheet["cells"]), 1):
        source = _joined(cell["input"] if "input" in cell else cell["source"])
        if cell["cell_type"] == "code":
            outputs = [*_outputs(cell.get("outputs", []))]
            long += [number for text in outputs if len(text) > MAX_OUTPUT]
            texts = filter(str.strip, [source, *map(_shortened, outputs)])
            source = "\n\n".join(map(fenced, texts))
        elif cell["cell_type"] == "heading":
            source = f"{'#' * cell['level']} {source}"
        parts.append(source)
    cut = f"of {len(long):,} outputs, only the beginning and end were read, the first in cell "
    return "", parts, f"{cut}{long[0]}" if long else ""


def _outputs(outputs: list[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the texts in outputs: printed text, results, and errors without tracebacks."""
    for output in outputs:
        if "ename" in output:
            yield f"{output['ename']}: {output['evalue']}"
        else:
            data = output.get("data", {})
            shown = data.get("text/markdown") or data.get("text/plain") or ""
            text = _joined(output.get("text") or shown)
            if "text/html" in data and _OBJECT.fullmatch(text):
                with suppress(Exception):  # such as a RecursionError
                    text = html(_joined(data["text/html"]).encode(), "utf-8")[1][0].strip()
            yield text


def _shortened(text: str) -> str:
    half = MAX_OUTPUT // 2
    return f"{text[:half]}\n…\n{text[-half:]}" if len(text) > MAX_OUTPUT else text


def _joined(text: str | list[str]) -> str:
    return clean("".join(text)).rstrip("\n")
