"""The text of e-books, OpenDocument files and RTF as Markdown."""

import io
import re
from itertools import islice
from urllib.parse import quote, unquote, urljoin
from zipfile import ZipFile

from bs4 import BeautifulSoup, Tag
from striprtf.striprtf import rtf_to_text

from stepcraft.encoding import Unreadable
from stepcraft.sources.parse import SECONDS, Parsed, as_heading, as_paragraphs, as_plain, in_time
from stepcraft.sources.parse.html import html, show_superscripts, superscript
from stepcraft.text.clean import clean, one_line

_PREFIX = re.compile(rb"<(/?)opf:")
_SUPER = re.compile(r"\\super(?![a-z\d]) ?")
_DELETED = re.compile(
    r"(?<!\\)\\deleted1?(?![a-z\d])(?:\\[\\{}]|(?!\\(?:deleted|plain)(?![a-z]))[^{}])*+"
    r"(?=\}|\\(?:deleted0|plain)(?![a-z\d]))"
)
"""Text that is marked as deleted, up to the end of its group or of the mark."""
_RAISED = re.compile("([^\\s\ue000]{0,5})\ue000([-\u2212\u2013\\d]*)")
_ASIDES = re.compile(rb"\\(footnote|header|footer|annotation|shptxt)[lrf]?(?![a-z])")
_ASIDE_NAMES = {"annotation": "comments", "shptxt": "text boxes"}
_HEADED = re.compile(r"\s*# +[^\n]*\w")
"""The beginning of a chapter that has a heading of its own."""
_BREAK = "\ue000"
"""What stands for a line break, as other breaks in XML are only spaces."""
_CODEPAGE = re.compile(rb"\\ansicpg(\d+)")


def epub(data: bytes, seconds: float = SECONDS) -> Parsed:
    """Return the chapters of an e-book in reading order."""
    notes: list[str] = []
    with ZipFile(io.BytesIO(data)) as book:
        container = BeautifulSoup(book.read("META-INF/container.xml"), "html.parser")
        path = str(container.select("rootfile")[0]["full-path"])
        package = BeautifulSoup(_PREFIX.sub(rb"<\1", book.read(path)), "html.parser")
        files = {str(item["id"]): str(item["href"]) for item in package.select("manifest item")}
        titles = package.find_all("dc:title")
        chapters = [files[str(item["idref"])] for item in package.select("spine itemref")]
        names = [unquote(urljoin(quote(path), each)) for each in chapters]
        locks = "META-INF/encryption.xml"
        locked = book.read(locks).decode(errors="replace") if locks in book.namelist() else ""
        if any(f'URI="{quote(name)}"' in locked for name in names):
            raise Unreadable("it is protected against copying")
        read = [html(book.read(name)) for name in in_time(names, notes, "chapters", seconds)]
    texts = [
        text if _HEADED.match(text) else f"# {as_heading(title) or f'Chapter {number}'}\n\n{text}"
        for number, (title, [text], _) in enumerate(read, 1)
    ]
    cuts = (f"of chapter {number}, {cut}" for number, (_, _, cut) in enumerate(read, 1) if cut)
    notes += islice(cuts, 1)
    return titles[0].get_text() if titles else "", texts, "; ".join(notes)


def odt(data: bytes) -> Parsed:
    """Return the headings, paragraphs, lists and table rows of an OpenDocument text."""
    with ZipFile(io.BytesIO(data)) as document:
        soup = BeautifulSoup(document.read("content.xml"), "html.parser")
    for change in soup.find_all("text:tracked-changes"):
        change.decompose()
    for space in soup.find_all(["text:s", "text:tab"]):
        space.replace_with(" ")
    for line_break in soup.find_all("text:line-break"):
        line_break.replace_with(_BREAK)
    for aside in reversed(soup.find_all(["text:note", "office:annotation", "draw:text-box"])):
        aside.replace_with(f" [{_words(aside)}] ")  # within the paragraph that it belongs to
    _raise(soup)
    show_superscripts(soup)
    _unwrap_headings(soup)
    _mark_items(soup)
    first = ""
    for tag in soup.find_all(["text:h", "text:p", "table:table-row"]):
        if tag.find_parent("table:table-row"):
            continue  # it is read as part of its row
        words = as_plain(_words(tag))
        if tag.name == "text:h":
            words = one_line(_words(tag))
            first = first or words
            words = f"{'#' * min(int(str(tag.get('text:outline-level') or 1)), 6)} {words}"
        elif tag.name == "table:table-row":
            cells = [one_line(_words(cell)).replace("|", "\\|") for cell in _cells(tag)]
            words = f"| {' | '.join(cells)} |"
        tag.replace_with(f"\n\n{words}\n\n")
    return first, [as_paragraphs(soup.get_text().strip())], ""


def _raise(soup: BeautifulSoup) -> None:
    """Mark text in a raised style as superscripts."""
    raised = soup.select(r"style\:style[style\:name]:has([style\:text-position^=super])")
    names = {str(style["style:name"]) for style in raised}
    for span in soup.find_all("text:span", attrs={"text:style-name": names.__contains__}):
        span.name = "sup"


def _unwrap_headings(soup: BeautifulSoup) -> None:
    """Take numbered headings out of the list items that only number them."""
    for item in soup.select(r"text\:list-item:has(text\:h):not(:has(text\:p))"):
        item.unwrap()


def _mark_items(soup: BeautifulSoup) -> None:
    """Turn the paragraphs of each list item into a line with a bullet, indented as it is nested."""
    for item in soup.find_all("text:list-item"):
        own = [
            each
            for each in item.find_all(["text:p", "text:h"])
            if each.find_parent(["text:list-item", "table:table-row"]) is item
        ]
        if own and not item.find_parent("table:table-row"):
            indent = "  " * len(item.find_parents("text:list-item"))
            words = one_line(" ".join(map(_words, own)))
            own[0].replace_with(f"\n\n{indent}- {words}\n\n")
            for each in own[1:]:
                each.extract()


def _cells(row: Tag) -> list[Tag]:
    """Return a cell per column, including those covered by others or written once for several."""
    cells = row.find_all(["table:table-cell", "table:covered-table-cell"], recursive=False)
    counts = [int(str(cell.get("table:number-columns-repeated", "1"))) for cell in cells]
    return [each for each, count in zip(cells, counts, strict=True) for _ in range(min(count, 100))]


def _words(tag: Tag) -> str:
    """Return the paragraphs in an element, or its own text if it has none."""
    paragraphs = tag.find_all(["text:p", "text:h"]) or [tag]
    text = " ".join(" ".join(each.get_text() for each in paragraphs).split())
    return "\n".join(map(str.strip, text.split(_BREAK)))


def rtf(data: bytes) -> Parsed:
    """Return the text of an RTF document, in which headings cannot be recognised."""
    page = _CODEPAGE.search(data[:1000])
    encoding = f"cp{page[1].decode()}" if page else "cp1252"
    written = _DELETED.sub("", data.decode("latin-1"))
    written = _SUPER.sub("\\\\super \ue000", written)
    text: str = rtf_to_text(written, encoding, "replace")  # type: ignore[no-untyped-call]  # no types
    text = _RAISED.sub(lambda match: match[1] + superscript(match[1], match[2]), text)
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    names = {name.decode() for name in _ASIDES.findall(data)}
    asides = sorted(_ASIDE_NAMES.get(name, f"{name}s") for name in names)
    cut = f"parts of it were not read: {', '.join(asides)}" if asides else ""
    return "", [as_plain(clean(whole).strip())], cut
