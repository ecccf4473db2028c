"""The text of Word, PowerPoint and Excel files as Markdown."""

import io
from importlib import import_module

from stepcraft.text.clean import clean


def office(data: bytes) -> tuple[str, list[str], str]:
    """Return the whole document, as MarkItDown (an extra) reads it."""
    reader = import_module("markitdown").MarkItDown(enable_plugins=False)
    document = reader.convert_stream(io.BytesIO(data))
    return document.title or "", [clean(document.markdown)], ""
