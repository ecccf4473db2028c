"""The pages of a PDF: for `isolated`, whose process alone imports this module."""

import io
import logging
import time
from typing import Any

from pypdf import PdfReader
from pypdf.errors import FileNotDecryptedError

from stepcraft.sources.corpus.formats import MAX_CHARACTERS, MAX_PAGES, SECONDS, one_line
from stepcraft.sources.isolated import Unparsed
from stepcraft.text.clean import clean


def pdf(data: bytes) -> dict[str, Any]:
    """Return title and pages of a PDF, and what was cut off."""
    started = time.monotonic()
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it warns of every flaw that it repairs
    pages: list[str] = []
    cut, size = "", 0
    try:
        reader = PdfReader(io.BytesIO(data))
        title = one_line(str((reader.metadata and reader.metadata.title) or ""))
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
