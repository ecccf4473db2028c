"""The text of Word, PowerPoint and Excel files as Markdown."""

import io
from typing import Any

from markitdown import MarkItDown

from stepcraft.text.clean import clean


def office(data: bytes) -> dict[str, Any]:
    """Return the whole document."""
    document = MarkItDown(enable_plugins=False).convert_stream(io.BytesIO(data))
    return {"title": document.title or "", "parts": [clean(document.markdown)], "cut": ""}
