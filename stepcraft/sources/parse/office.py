"""The text of Word, PowerPoint and Excel files as Markdown."""

import io
import re
from collections.abc import Iterator
from datetime import datetime, time
from importlib import import_module
from itertools import groupby, zip_longest
from operator import itemgetter
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

from bs4 import BeautifulSoup

from stepcraft.sources.corpus.markup import MAX_HEADING
from stepcraft.sources.parse import SECONDS, Parsed, as_plain, as_table, in_time
from stepcraft.sources.parse.html import html
from stepcraft.text.clean import clean, one_line

_SLIDE = re.compile(r"<!-- Slide number: \d+ -->")
_TITLE = re.compile(rf"^# (?=[^\n]*[^\W_])[^\n]{{1,{MAX_HEADING}}}$", re.MULTILINE)
"""The title of a slide; text that stands higher on the slide precedes it."""
_COMMENTS = re.compile(r"(?:word|ppt|xl)/comments[^.]*\.xml")
_COMMENT = re.compile(rb"<(?:\w+:)?(?:comment|cm)\s")
"""The beginning of a comment; Excel stores one for each of its threads, too."""
_MARGIN = re.compile(r"word/(?:header|footer)\d*\.xml")
_DECLARATION = re.compile(rb"\A\s*<\?xml[^>]*>")
_LARGEST = 50_000_000
"""The size of a sheet in bytes up to which its formulas are counted and its merged cells found."""
_MERGED = re.compile(rb'<[\w:]*\bmergeCell\b[^>]*\bref="([A-Z]+\d+:[A-Z]+\d+)"')
_SHORT = 100
"""The maximum length of the text of a merged cell that is repeated in each row it spans."""
_NO_VALUE = re.compile(
    rb'<[\w:]*\bc\b(?![^>]* t="str")[^>]*>\s*<[\w:]*\bf\b[^>]*>(?:[^<]*</[\w:]+>)?'
    rb"\s*(?:<[\w:]*\bv\b[^>]*>\s*)?</"
)
"""A cell with a formula that no program has computed; one computed as "" has the type "str"."""
_LITERALS = re.compile(r'"[^"]*"|[\\_*].|\[[^]]*\]')
"""The parts of a number format that are only text, widths, colours or conditions."""
_LITERAL_PERCENT = re.compile(r'[\d#?](?:\\?\s)*(?:"\s*%\s*"|\\%)')
"""A percent sign after the digits that is only text: Excel does not multiply the value by 100."""


class _Pages:
    """Converts HTML instead of MarkItDown, which loses superscripts and shifts merged cells."""

    note = ""

    def convert_string(self, page: str, **_options: object) -> SimpleNamespace:
        """Return the text of a page, with the addresses and descriptions that others leave out."""
        soup = BeautifulSoup(page, "html.parser")
        for link in soup.select("a[href^=http]"):
            if link.get_text().strip() != link["href"]:
                link.append(f" ({link['href']})")
        for picture in soup.select("img[alt]"):
            picture.replace_with(str(picture["alt"]))
        for cell in soup.select("table:not(:has(th)) tr:first-child > td"):
            cell.name = "th"
        for box in soup.select("input[type=checkbox]"):
            box.replace_with("[x] " if box.has_attr("checked") else "[ ] ")
        _, [text], note = html(str(soup).encode(), "utf-8")
        self.note = self.note or note
        return SimpleNamespace(title="", markdown=text)


def docx(data: bytes) -> Parsed:
    """Return the text of a document."""
    title, [text], cut = _converted(data, "docx")
    with ZipFile(io.BytesIO(data)) as parts:
        margins = _margins(parts)
    return title, [f"{text}\n\n# Headers and footers\n\n{margins}" if margins else text], cut


def pptx(data: bytes) -> Parsed:
    """Return the slides."""
    title, [text], cut = _converted(data, "pptx")
    slides = [_titled(slide.strip(), number) for number, slide in enumerate(_SLIDE.split(text))]
    return title, slides[1:] or [text], cut


def _titled(slide: str, number: int) -> str:
    """Return a slide with its title first, so that nothing is read under that of another one."""
    if title := _TITLE.search(slide):
        return f"{title[0]}\n\n{slide[: title.start()]}{slide[title.end() :]}"
    return f"# Slide {number}\n\n{slide}" if slide and number > 1 else slide


def xlsx(data: bytes, seconds: float = SECONDS) -> Parsed:
    """Return the sheets as tables, with the values that the cells show, as last computed."""
    sheets: list[str] = []
    notes: list[str] = []
    missing = 0
    with ZipFile(io.BytesIO(data)) as parts:
        for sheet, group in groupby(in_time(_rows(data), notes, "rows", seconds), itemgetter(0)):
            part = parts.getinfo(sheet._worksheet_path)
            source = parts.read(part) if part.file_size <= _LARGEST else b""
            missing += len(_NO_VALUE.findall(source))
            merged = _MERGED.findall(source)
            del source  # the rows need the memory
            if rows := _filled([row for _, row in group], merged):
                sheets.append(f"## {sheet.title}\n\n{_table(rows)}")
        comments = _comments(parts)
    if missing:
        notes.append(f"formulas without a stored value, which Excel would add: {missing:,}")
    return "", [clean("\n\n".join(sheets))], "; ".join(notes + comments)


def _rows(data: bytes) -> Iterator[tuple[Any, list[str]]]:
    """Yield the sheet and the cells of each row."""
    book = import_module("openpyxl").load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    for sheet in book.worksheets:
        sheet.reset_dimensions()  # many programs write wrong ones
        for row in sheet.iter_rows():
            yield sheet, [_shown(cell) for cell in row]


def _filled(rows: list[list[str]], merged: list[bytes]) -> list[list[str]]:
    """Return the rows with content, in each of which a short merged cell is repeated."""
    bounds = import_module("openpyxl.utils").range_boundaries
    for cells in merged:
        left, top, _, bottom = bounds(cells.decode())
        value = "".join(text for row in rows[top - 1 : top] for text in row[left - 1 : left])
        for row in rows[top:bottom] if 0 < len(value) <= _SHORT else []:
            if any(row):
                row.extend([""] * (left - len(row)))
                row[left - 1] = value
    return [row for row in rows if any(row)]


def _table(rows: list[list[str]]) -> str:
    """Return rows as a table, below the lines of text above it."""
    wide = [number for number, row in enumerate(rows) if sum(map(bool, row)) > 1]
    first = wide[0] if 2 * len(wide) > len(rows) else 0
    columns = [*zip_longest(*rows[first:], fillvalue="")]
    filled = [place for place, column in enumerate(columns) if any(column)]
    shown = columns[filled[0] : filled[-1] + 1]
    titles = map(as_plain, map("".join, rows[:first]))
    return "\n\n".join([*titles, as_table([*zip(*shown, strict=True)])])


def _shown(cell: Any) -> str:  # noqa: ANN401 - of an extra
    """Return a cell's value, with the percent sign and the leading zeros that its format shows."""
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()
    elif isinstance(value, bool):
        value = str(value).upper()
    elif isinstance(value, int | float):
        form = _LITERALS.sub("", cell.number_format)
        if "%" in form:
            value = f"{value * 100:.15g}%"
        elif _LITERAL_PERCENT.search(cell.number_format):
            value = f"{value:.15g}%"
        elif isinstance(value, float):
            value = f"{value:.15g}"
        elif not form.strip("0-() "):
            value = f"{value:0{form.count('0')}}"
    return " ".join(str(value).split()).replace("|", "\\|")


def _converted(data: bytes, kind: str) -> Parsed:
    """Return a document as read by a converter from MarkItDown (an extra).

    MarkItDown's own front end takes too much memory, because it detects file types with a neural
    network.
    """
    converters = import_module("markitdown.converters")
    converter = getattr(converters, f"{kind.title()}Converter")()
    converter._html_converter = pages = _Pages()
    info = import_module("markitdown").StreamInfo(extension=f".{kind}")
    document = converter.convert(io.BytesIO(data), info)
    with ZipFile(io.BytesIO(data)) as parts:
        notes = [pages.note, *_comments(parts)]
    return document.title or "", [clean(document.markdown)], "; ".join(filter(None, notes))


def _comments(parts: ZipFile) -> list[str]:
    """Return a note on comments, which are not read, or nothing if there are none."""
    names = filter(_COMMENTS.fullmatch, parts.namelist())
    count = sum(len(_COMMENT.findall(parts.read(name))) for name in names)
    return [f"comments that were not read: {count:,}"] if count else []


def _margins(parts: ZipFile) -> str:
    """Return the lines of the headers and footers of a Word document, each once."""
    lines: dict[str, None] = {}
    for name in filter(_MARGIN.fullmatch, parts.namelist()):
        content = _DECLARATION.sub(b"", parts.read(name))
        for paragraph in BeautifulSoup(content, "html.parser")("w:p"):
            pieces = (each.get_text() or " " for each in paragraph(["w:t", "w:tab"]))
            lines[one_line("".join(pieces))] = None
    return as_plain("\n\n".join(line for line in lines if any(map(str.isalpha, line))))
