"""The pages of a PDF."""

import re

from pypdfium2 import PdfDocument, PdfiumError, PdfPage, raw

from stepcraft.encoding import Unreadable
from stepcraft.sources.parse import Parsed, first_few, in_time
from stepcraft.text.clean import clean

_SECONDS = 12.0
"""The processor time after which no further page is begun; most pages take little."""

_HYPHEN = re.compile(r"(?<=[^\W\d_])(?:\ufffe\n?|[\u00ad-]\n)(?=[^\W\d_])")
"""A hyphen at the end of a line, which PDFium mostly returns as U+FFFE."""
_AND = re.compile(r"(?:and|und|oder)\b|(?:or|bis|et|ou)\b(?=\s[\w-]*-)")
"""What can follow a hyphen that stands for the rest of a word, as in "pre- and post-war"."""
_JUNK = re.compile(
    r"untitled|\(anonymous\)|microsoft word - .*|\W*"
    r"|.*\.(?:docx?|pptx?|indd|tex|dvi|ps|pdf|qxd|rtf)",
    re.IGNORECASE,
)
"""Titles that programs generate."""


def pdf(data: bytes, seconds: float = _SECONDS) -> Parsed:
    """Return the text of each page."""
    try:
        document = PdfDocument(data)
    except PdfiumError as error:
        if "password" in str(error).lower():
            raise Unreadable("it is protected by a password") from error
        raise
    title = document.get_metadata_value("Title")
    pages: list[str] = []
    notes: list[str] = []
    comments = 0
    document.init_forms()
    for number in in_time(range(len(document)), notes, "pages", seconds):
        page = document[number]
        comments += _comments(page)
        if page.formenv:  # make what was filled into fields part of the page
            page.flatten()
            page.close()
            page = document[number]
        text = page.get_textpage().get_text_range().replace("\r\n", "\n")
        pages.append(clean(_HYPHEN.sub(_joined, text)))
        page.close()
    empty = [number for number, text in enumerate(pages, 1) if not text.strip()]
    if len(empty) == len(pages):
        raise Unreadable("it holds no text, perhaps only pictures of pages")
    if empty:
        notes.append(f"pages without text, perhaps pictures: {first_few(empty, 10)}")
    if comments:
        notes.append(f"comments that were not read: {comments:,}")
    return "" if _JUNK.fullmatch(title.strip()) else title, pages, "; ".join(notes)


def _comments(page: PdfPage) -> int:
    """Return the number of annotations that have text and are not read with the page."""
    skipped = {raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP, raw.FPDF_ANNOT_WIDGET}
    skipped |= {raw.FPDF_ANNOT_FREETEXT} if page.formenv else set()
    comments = 0
    for place in range(raw.FPDFPage_GetAnnotCount(page)):
        annotation = raw.FPDFPage_GetAnnot(page, place)
        length = raw.FPDFAnnot_GetStringValue(annotation, b"Contents", None, 0)
        has_text = length > 2  # its terminator is 2 bytes
        comments += has_text and raw.FPDFAnnot_GetSubtype(annotation) not in skipped
        raw.FPDFPage_CloseAnnot(annotation)
    return comments


def _joined(match: re.Match[str]) -> str:
    """Return "" for a hyphen added at a line break, or "-" for one that is part of the word."""
    text, start = match.string, match.start()
    if _AND.match(text, match.end()):
        return "- "
    word = re.split(r"[^\w-]", text[max(start - 60, 0) : start])[-1]
    return "-" if "-" in word or text[match.end()].isupper() else ""
