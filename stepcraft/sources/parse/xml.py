"""The text of XML documents such as articles (JATS), RFCs and feeds, with titles as headings."""

import re
from collections.abc import Iterator
from typing import cast

from bs4 import BeautifulSoup, Tag
from bs4.builder._htmlparser import BeautifulSoupHTMLParser, HTMLParserTreeBuilder
from bs4.element import CData, NavigableString, PageElement, PreformattedString

from stepcraft.sources.parse import Parsed, as_paragraphs, as_plain, as_table
from stepcraft.sources.parse.html import read_tags, show_superscripts, span, split_cells
from stepcraft.text.markdown import fenced

_TITLES = ("title", "article-title", "name", "head")
_SECTIONS = (
    *("sec", "section", "chapter", "appendix", "abstract", "front", "article", "div"),
    *("feed", "channel", "item", "entry"),
    *(f"{name}sect{level}" for name in ("", "ref") for level in range(1, 6)),
)
_PARTS = ("book", "part", "preface", "topic", "concept", "task")
"""Sections of documents with paragraphs; in data, they are records."""
_TABLE = "markdown table"
"""The name of an element that holds the rows of a table as lines."""
_PROSE = (
    *("p", "para", "t", "td", "th", "li", "label", "text", "title", "article-title", "subject"),
    "xref",
    _TABLE,
)
"""Elements whose names say nothing about their content."""
_CODE = (
    *("code", "codeblock", "codeph", "literal", "literallayout", "pre", "programlisting", "screen"),
    *("sourcecode", "artwork"),
)
"""Elements whose text can contain tags that are shown."""
_INLINE = {"code", "codeph", "literal"}
_NEEDS_FENCE = re.compile(r"\n[ \t#\n]|\A#[^\n]*\n")
"""Code with indented lines, comments or blank lines, which would not be read as they are."""
_LAYOUT = ("br", "col", "hr", "thead", "tbody", "tfoot")
_TABLES = ("table", "informaltable", "simpletable")
_BLOCKS = ("p", "para", "simpara", "t", "li", "listitem", "list-item", "br", "break", "td", "th")
"""Elements after which the next word of a cell begins."""
_MOST_COLUMNS = 100
"""The maximum number of columns that a cell spans."""
_REFERENCES = ("see", "paramref", "typeparamref", "xref", "eref")
_TARGETS = ("langword", "cref", "name", "target", "linkend")
"""The attributes shown for a reference without text."""
_TECHNICAL = (
    r"(?:xml|xmlns|xlink|xsi|rdf)(?::.*)?|class|style|lang|href|rel|type|version|mode|transform"
    r"|outputclass|ispermalink"
)
"""Attributes that say nothing about the content of an element in a document with titles."""
_UNTELLING = r"(?!(?:name|version|date|when|key|value|cref)\Z).*"
"""Attributes that say nothing about the content of an element in a document with paragraphs."""


class _Parser(BeautifulSoupHTMLParser):
    """Reads tags in every element, also where HTML has only text: in titles and scripts."""

    def set_cdata_mode(self, *_: object, **__: object) -> None:
        pass


class _Builder(HTMLParserTreeBuilder):
    def feed(self, markup: str | bytes, *_: object, **__: object) -> None:
        options, named = self.parser_args
        parser = _Parser(cast("BeautifulSoup", self.soup), *options, **named)
        parser.feed(str(markup))
        parser.close()


def xml(data: bytes) -> Parsed:
    """Return the text without tags; a section's title becomes a heading of the section's level."""
    source, cut = read_tags(data)
    soup = BeautifulSoup(
        source.replace("\ue000", ""),  # which stands for code below
        builder=_Builder,
        empty_element_tags=set(),
        multi_valued_attributes=None,
        string_containers={},
    )
    show_superscripts(soup)
    for tag in soup.select("alternatives > tex-math"):
        if tag.parent and tag.parent.find(["math", "mml:math"]):
            tag.decompose()  # the formula again
    is_prose = soup.find(["p", "para", "t"]) is not None
    for root in soup.find_all(name=True, recursive=False) if is_prose else ():
        root.attrs.pop("version", None)  # of the format, not of what is described
    _show_tables(soup)
    sections = (*_SECTIONS, *_PARTS) if is_prose else _SECTIONS
    titled = (*sections, "title-group", "[document]")
    for tag in soup("section", title=True) if is_prose else ():  # as in RFCs before 2019
        tag.insert(0, title := soup.new_tag("title"))
        title.string = str(tag["title"])
    for tag in soup("t", hangtext=True):
        tag.insert(0, f"{tag['hangtext']} ")
    code: list[str] = []
    around = {id(tag.parent): tag.parent or soup for tag in soup(_INLINE)}
    in_lines = {place for place, parent in around.items() if _is_mixed(parent)}
    for tag in soup(_CODE):
        lines = tag.get_text().strip("\n").rstrip()
        is_inline = tag.name in _INLINE and id(tag.parent) in in_lines
        if _NEEDS_FENCE.search(lines) and not is_inline:
            tag.name, tag.attrs = "text", {}  # an element still, so that its parent is not mixed
            tag.string = f"\n\n\ue000{len(code)}\ue000\n\n"
            code.append(fenced(lines))
    first = ""
    for tag in soup(_TITLES):
        words = " ".join(tag.get_text(" ").split())
        parents = [each.name for each in tag.parents]  # none in a title that was replaced
        if not (words and parents and parents[parents[0] == "info"] in titled):
            continue
        first = first or words
        level = sum(name in sections for name in parents)
        tag.name, tag.string = "title", f"\n\n{'#' * min(max(level, 1), 6)} {words}\n\n"
    hidden = re.compile(_UNTELLING if is_prose else _TECHNICAL if soup.title else "", re.DOTALL)
    text = "\n".join(line.strip() for line in "".join(_pieces(soup, hidden)).splitlines())
    text = re.sub("\ue000(\\d+)\ue000", lambda place: code[int(place[1])], as_paragraphs(text))
    return first, [text], cut


def _pieces(soup: BeautifulSoup, hidden: re.Pattern[str]) -> Iterator[str]:
    """Yield pieces of text; an element with no text beside it starts a new line with its name."""
    mixed: dict[int, bool] = {}
    for node in soup.descendants:
        if isinstance(node, Tag):
            parent = node.parent or soup
            if id(parent) not in mixed:
                mixed[id(parent)] = _is_mixed(parent)
            if not mixed[id(parent)]:
                yield _beginning(node, hidden)
            elif node.name in _REFERENCES and not node.get_text():
                yield _target(node)
        elif _is_text(node):
            text, name = str(node), node.parent.name if node.parent else ""
            if "</" in text and name not in (_TABLE, *_CODE):  # HTML, such as an article in a feed
                text = BeautifulSoup(text, "html.parser").get_text("\n")
            yield text if name in ("title", _TABLE, *_CODE) else as_plain(text)


def _show_tables(soup: BeautifulSoup) -> None:
    """Turn the rows of each table into lines, in which empty cells keep their columns.

    A table whose cells hold lines of code, or another table, stays as it is.
    """
    for entry in soup.select("tgroup row > entry, simpletable stentry"):
        _as_cell(entry)
    split_cells(soup)
    for table in reversed(soup.find_all(_TABLES)):
        if table.find(_TABLES) or any("\n" in each.get_text().strip() for each in table(_CODE)):
            continue
        own = [
            row for row in table.select("tr:has(> td, > th)") if row.find_parent(_TABLES) is table
        ]
        cells = [row.find_all(["td", "th"], recursive=False) for row in own]
        if any(sum(bool(cell.get_text(strip=True)) for cell in row) > 1 for row in cells):
            first, *others = own
            lines = as_table([[text for cell in row for text in _texts(cell)] for row in cells])
            first.name, first.attrs, first.string = _TABLE, {}, f"\n\n{lines}\n\n"
            for row in others:
                row.decompose()


def _as_cell(entry: Tag) -> None:
    """Rename a cell of DocBook or DITA, its row and the attributes for what it spans as in HTML."""
    if entry.parent:
        entry.name, entry.parent.name = "td", "tr"
    rows = str(entry.get("morerows", ""))
    if rows.isdecimal():
        entry["rowspan"] = str(int(rows[:5]) + 1)
    start, end = (
        re.search(r"\d{1,5}\Z", str(entry.get(name, ""))) for name in ("namest", "nameend")
    )
    if start and end:
        entry["colspan"] = str(int(end[0]) - int(start[0]) + 1)


def _texts(cell: Tag) -> list[str]:
    """Return the text of a cell, and "" for each further column that it spans."""
    for reference in cell(_REFERENCES):
        if not reference.get_text():
            reference.string = _target(reference)
    for block in cell(_BLOCKS):
        block.append(" ")
    text = " ".join(cell.get_text().split()).replace("|", "\\|")
    return [text, *[""] * (min(span(cell, "colspan"), _MOST_COLUMNS) - 1)]


def _target(reference: Tag) -> str:
    """Return what a reference without text refers to."""
    target = next((str(reference[key]) for key in _TARGETS if key in reference.attrs), "")
    section = f" section {reference['section']}" if reference.get("section") else ""
    return re.sub("^[A-Z]:", "", target) + section


def _is_mixed(tag: Tag) -> bool:
    """Return whether there is text beside the elements in an element."""
    return any(_is_text(each) and str(each).strip() for each in tag.children)


def _is_text(node: PageElement) -> bool:
    """Return whether a node is text, and not a comment or an instruction."""
    is_other = isinstance(node, PreformattedString) and not isinstance(node, CData)
    return isinstance(node, NavigableString) and not is_other


def _beginning(tag: Tag, hidden: re.Pattern[str]) -> str:
    is_leaf = not any(isinstance(each, Tag) for each in tag.children)
    is_empty = is_leaf and not tag.get_text().strip()
    values = [
        f"{key}={value}"
        for key, value in tag.attrs.items()
        if is_empty or not hidden.fullmatch(key)
    ]
    called = "" if tag.name in _PROSE else " ".join([tag.name, *values])
    if is_empty:
        is_data = not hidden.pattern  # neither prose nor titled
        is_value = is_data and tag.name not in _LAYOUT  # such as <true/>
        return f"\n{called}" if values or is_value else ""
    if is_leaf:
        return f"\n{called}: " if called else "\n"
    return f"\n\n{called}\n" if values else "\n\n"
