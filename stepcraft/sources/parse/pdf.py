"""The pages of a PDF."""

import io
import logging
import time

from pypdf import PdfReader

from stepcraft.sources.isolated import Unreadable
from stepcraft.text.clean import clean

SECONDS = 12.0
"""Pages that come after this are not read, so that those before them are not lost."""


def pdf(data: bytes) -> tuple[str, list[str], str]:
    """Return the text of each page."""
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it warns of every flaw that it repairs
    reader = PdfReader(io.BytesIO(data))
    title = str((reader.metadata and reader.metadata.title) or "")
    pages: list[str] = []
    cut, started = "", time.process_time()
    for page in reader.pages:
        if time.process_time() - started > SECONDS:
            cut = f"only its first {len(pages):,} pages were read"
            break
        pages.append(clean(page.extract_text()))
    if not any(map(str.strip, pages)):
        raise Unreadable("it holds no text, perhaps only pictures of pages")
    return title, pages, cut
