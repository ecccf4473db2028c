"""The text of Word, PowerPoint and Excel files as Markdown."""

import io
from importlib import import_module
from typing import Any

from stepcraft.text.clean import clean


def office(data: bytes) -> dict[str, Any]:
    """Return the whole document, as MarkItDown (an extra) reads it."""
    reader = import_module("markitdown").MarkItDown(enable_plugins=False)
    document = reader.convert_stream(io.BytesIO(data))
    return {"title": document.title or "", "parts": [clean(document.markdown)], "cut": ""}
