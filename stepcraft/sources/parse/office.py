"""The text of Word, PowerPoint and Excel files as Markdown."""

import io
import re
from functools import cache
from importlib import import_module
from typing import Any

from stepcraft.text.clean import clean

_EMPTY_CELL = re.compile(r"(?<=\|)[ \t]*(?:NaN|Unnamed: \d+(?:_level_\d+)?)[ \t]*(?=\|)")
_SLIDE = re.compile(r"<!-- Slide number: \d+ -->")


def docx(data: bytes) -> tuple[str, list[str], str]:
    """Return the text of a document."""
    return _converted(data, "docx")


def pptx(data: bytes) -> tuple[str, list[str], str]:
    """Return the slides."""
    title, [text], cut = _converted(data, "pptx")
    return title, [slide.strip() for slide in _SLIDE.split(text)[1:]] or [text], cut


def xlsx(data: bytes) -> tuple[str, list[str], str]:
    """Return the sheets, leaving cells without a value empty."""
    title, [text], cut = _converted(data, "xlsx")
    rows = (_EMPTY_CELL.sub(" ", row) if row.startswith("|") else row for row in text.split("\n"))
    return title, ["\n".join(rows)], cut


def _converted(data: bytes, kind: str) -> tuple[str, list[str], str]:
    """Return a document as read by a converter from MarkItDown (an extra).

    MarkItDown's own front end takes too much memory, because it detects file types with a neural
    network.
    """
    modules = import_module("markitdown")
    info = modules.StreamInfo(extension=f".{kind}")
    document = _converter(kind).convert(io.BytesIO(data), info)
    return document.title or "", [clean(document.markdown)], ""


@cache
def _converter(kind: str) -> Any:  # noqa: ANN401 - of an extra
    name = f"{kind.title()}Converter"
    return getattr(import_module("markitdown.converters"), name)()
