"""The text that a browser shows for an HTML file, as Markdown."""

import re
from copy import copy
from typing import Any

from bs4 import BeautifulSoup, Tag
from bs4.element import Declaration, ProcessingInstruction
from markdownify import MarkdownConverter

from stepcraft.encoding import decoded_markup
from stepcraft.sources.parse import MAX_TAGS, Parsed, as_plain
from stepcraft.text.clean import clean
from stepcraft.text.markdown import fenced

_NOT_READ = (
    "head, script, style, template, noscript, nav, [role=navigation], [role=search]"
    ", .headerlink, .anchorjs-link, .skip-link"
    ", .sr-only:not([aria-hidden=true]:not(:empty, svg, :has(svg)) + *"
    ", :has(+ [aria-hidden=true]:not(:empty, svg, :has(svg))))"
    ", .breadcrumb, .breadcrumbs, .navbar, li:has(> a[hreflang])"
)
"""Elements that a browser never shows, links to other pages, and links from headings to themselves.
"""
_SIGN = re.compile(r"emoticon|emoji|math|formulaInl|formulaDsp|mwe-math-\S*")
"""The classes of images that stand for words."""
_MENUS = "ul:is(.menu, .nav):has(a)"
_SECTIONS = (
    "section:has(> h1, > h2, > h3):has(> p, > table, > dl):not(:has(main, article)"
    ", :is(main, article, aside, header, footer, dialog, [role=dialog]) *"
    ", [class*=cookie i], [class*=related i], [class*=newsletter i], [class*=subscri i]"
    ", [class*=comment i], [id*=comment i])"
)
"""Sections that belong to the content of a page, besides its article."""
_HIDDEN = ":is([hidden], [aria-hidden=true], [style*='display:none'], [style*='display: none'])"
_SWITCH = f"[aria-expanded]:not({_HIDDEN}, {_HIDDEN} *)"
"""What a reader clicks to expand something."""
_UNFOLDS = (
    "[role=tabpanel], [role=region][aria-labelledby], [hidden=until-found i]"
    ", details > summary + :last-child, details > summary + :last-child > :only-child"
    ", :is([class*=accordion i], [class*=collaps i], [class*=faq i])"
    f", {_SWITCH} + *, :has(> {_SWITCH}) + *"
)
"""Hidden elements that a reader can expand, besides those in a switch's `aria-controls`."""
_HEAD = {"html", "head", "base", "link", "meta", "title", "style", "script", "noscript", "template"}
_HEADINGS = {f"h{level}" for level in range(1, 7)}
_SPECIAL = {
    *("article", "aside", "blockquote", "center", "dd", "details", "dialog", "dir", "dl", "dt"),
    *("fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr", "li", "main"),
    *("menu", "nav", "ol", "pre", "section", "summary", "table", "ul", *_HEADINGS),
}
_LIMITS = {"button", "caption", "object", "td", "th", *_HEAD} - {"head"}
_CELLS = {"td", "th", "caption", "colgroup"}
_GROUPS = {"tbody", "thead", "tfoot"}
_TABLE = {"table", "template", "noscript"}
_ENDS: dict[str, tuple[set[str], set[str]]] = {
    **dict.fromkeys(_SPECIAL | {"address", "div", "p"}, ({"p", "head"}, _LIMITS)),
    **dict.fromkeys(_HEADINGS, ({"p", "head", *_HEADINGS}, _LIMITS)),
    "li": ({"li", "p"}, (_SPECIAL | _LIMITS) - {"li"}),
    **dict.fromkeys(("dd", "dt"), ({"dd", "dt", "p"}, (_SPECIAL | _LIMITS) - {"dd", "dt"})),
    **dict.fromkeys(_CELLS, (_CELLS, {"tr", *_TABLE})),
    "tr": ({"tr", *_CELLS}, _TABLE),
    **dict.fromkeys(_GROUPS, ({"tr", *_CELLS, *_GROUPS}, _TABLE)),
    "option": ({"option"}, {"select", "datalist", "optgroup"}),
    "optgroup": ({"option", "optgroup"}, {"select"}),
    **dict.fromkeys(("rt", "rp"), ({"rt", "rp"}, {"ruby"})),
    "a": ({"a"}, _LIMITS | _SPECIAL | {"address", "div", "p"}),
}
"""For each opening tag, the open elements that it closes and those that end the search."""
_HIDES = {"hidden", "aria-hidden", "style"}
_DEPTH = 100
"""The maximum number of open elements searched for ones that a tag closes."""
_SIGN_MARK = "\ue000"
"""What stands for a backslash until it is known whether it begins a line."""
_ESCAPED = re.compile(rf"^((?:[ \t>*+:-]|\d+[.)])*+){_SIGN_MARK}", re.MULTILINE)
_POWER = re.compile(r"(?=.*\w)[-+\u2212\u2013().,/\d\sijknxy]+", re.DOTALL)
"""A superscript that changes a value, unlike the "th" in "5th"."""
_MATHS = {"mfrac": "/", "msup": "^", "msubsup": "_^", "msqrt": ""}
"""Elements of MathML, each with the signs between its parts."""
_SUPER = r"vertical-align:\s*super"
_RAISED = re.compile(rf"\.([\w-]+)\s*\{{[^{{}}]*{_SUPER}")
"""A rule of a style sheet, such as that of Google Docs, that raises the elements of a class."""
_NOTE = re.compile(r"\[.+\]|\d[\w,\s]*|\w")
_SIMPLE = re.compile(r"[-\u2212\u2013]?\w+")
_BASE = re.compile(r"\d$|(?<![^\W\d_])[^\W\d_]{1,3}$|[)\]]$")
"""What a power can follow: a number, a short word such as a unit, or a bracket."""
_LETTERS = {
    **dict.fromkeys(("lower-alpha", "lower-latin"), "a"),
    **dict.fromkeys(("upper-alpha", "upper-latin"), "A"),
    "lower-roman": "i",
    "upper-roman": "I",
}
"""The list types that CSS styles correspond to."""
_ROMAN = dict(
    zip(
        ("m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"),
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        strict=True,
    )
)
_SHORT = 100
"""The maximum length of the text of a merged cell that is repeated in each row it spans."""
_MOST_SPLITS = 10_000
"""The maximum number of cells added to the rows of a page by splitting merged cells."""
_LEAST_SHARE = 0.2
"""The minimum share of a page's text in its main element; with less, the content is elsewhere."""


class _Page(BeautifulSoup):
    """A page that closes elements whose end tags were omitted, as a browser does."""

    # Any: the arguments are Beautiful Soup's own.
    def handle_starttag(self, name: str, *rest: Any, **attributes: Any) -> Tag | None:  # noqa: ANN401
        ends, limits = _ENDS.get(name, (set() if name in _HEAD else {"head"}, _LIMITS))
        are_open = any(map(self.open_tag_counter.get, ends))
        for tag in reversed(self.tagStack[-_DEPTH:] if are_open else []):
            if tag.name in ends:
                self.handle_endtag(tag.name)
            elif tag.name in limits or tag.attrs.keys() & _HIDES:
                break
        return super().handle_starttag(name, *rest, **attributes)


class _Converter(MarkdownConverter):
    def escape(self, text: str, parent_tags: set[str]) -> str:
        return text if parent_tags & {"td", "th"} else as_plain(text, _SIGN_MARK)

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        is_box = _is_alone(el) and _is_alone(el.parent)  # around code, as in old manuals
        is_code = is_box or el.find(["table", "pre"])
        escaped = text if is_code else text.replace("|", "\\|")
        shown: str = super().convert_td(el, escaped, parent_tags)  # type: ignore[misc]  # no types
        return shown

    convert_th = convert_td

    def convert_dd(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        if el.find(["pre", "table"]):  # indentation would turn them into other code
            return f"\n\n{text.strip()}\n\n"
        shown: str = super().convert_dd(el, text, parent_tags)  # type: ignore[misc]  # no types
        return shown

    def convert_li(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        shown: str = super().convert_li(el, text, parent_tags)  # type: ignore[misc]  # no types
        return re.sub(r"\A\d+(?=\.)", lambda _: str(el["value"]), shown)  # as `_label_items` set it

    # The arguments are those of markdownify, which calls this method.
    def convert_pre(self, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: ARG002
        code = re.sub(r"^\s*\n", "", text).rstrip()
        return f"\n\n{fenced(code)}\n\n" if code else ""


def _is_alone(tag: Tag | None) -> bool:
    return tag is not None and not (tag.find_next_sibling() or tag.find_previous_sibling())


def read_tags(data: bytes, charset: str = "") -> tuple[str, str]:
    """Return HTML or XML as text, and a note on its encoding or on tags that were left out."""
    text, note = decoded_markup(data, charset)
    if text.count("<") <= MAX_TAGS:
        return text, note
    *tags, _ = text.split("<", MAX_TAGS + 1)
    cut = f"only its first {MAX_TAGS:,} tags were read"
    return "<".join(tags), f"{note}; {cut}" if note else cut


def html(data: bytes, charset: str = "") -> Parsed:
    """Return the content of a page without its navigation.

    The content is taken from the main element, if there is one. trafilatura is not used here
    because it would mistake parts of a manual for navigation.
    """
    text, cut = read_tags(data, charset)
    soup = _Page(text, "html.parser")
    title = soup.title.get_text(" ") if soup.title else ""
    for image in filter(_is_sign, soup.find_all("img", alt=True)):
        hides = {name: image[name] for name in ("hidden", "style") if image.has_attr(name)}
        image.name, image.string, image.attrs = "span", str(image["alt"]), hides
    menus = [tag for tag in soup.select(_MENUS) if _is_menu(tag, strip=True)]
    for tag in [*soup.select(_NOT_READ), *menus, *_hidden(soup)]:
        tag.decompose()
    for tag in soup.select("option, button, label"):
        tag.append(" ")
    for box in soup.select(":is(li, td, th, label) input[type=checkbox i]"):
        space = "" if str(box.next_sibling or " ")[:1].isspace() else " "
        box.name, box.string = "span", f"[{'x' if box.has_attr('checked') else ' '}]{space}"
    for tag in soup.select("details, summary, legend"):
        tag.name = "div"
    hidden = (ProcessingInstruction, Declaration)  # such as Word's <![if !supportLists]>
    for instruction in soup.find_all(string=lambda text: isinstance(text, hidden)):
        instruction.extract()
    raised = set(_RAISED.findall(text))
    for span in soup.find_all("span"):
        is_raised = re.search(_SUPER, str(span.get("style", "")))
        if is_raised or raised.intersection(span.get("class") or ()):
            span.name = "sup"
    show_superscripts(soup)
    _show_readings(soup)
    _unwrap_code(soup)
    _unwrap_layout(soup)
    split_cells(soup)
    _label_items(soup)
    mains = soup.select("main, [role=main]")
    if not (mains or soup.select(_SECTIONS)):
        mains = soup.select("article")
    is_page = len(mains) == 1 and len(mains[0].get_text()) >= _LEAST_SHARE * len(soup.get_text())
    page: Any = mains[0] if is_page else soup
    converter = _Converter(
        heading_style="atx",
        strip=["a", "img"],
        escape_asterisks=False,
        escape_underscores=False,
        escape_misc=False,
    )
    shown = _ESCAPED.sub(r"\1\\", converter.convert_soup(page)).replace(_SIGN_MARK, "")
    return title, [clean(shown)], cut


def show_superscripts(soup: BeautifulSoup) -> None:
    """Set apart superscripts and fractions, which otherwise change the number before them."""
    for tag in soup.find_all(["sup", "superscript"]):
        text, parent = tag.get_text(), tag.parent or soup
        is_linked = parent.name in {"a", "xref"} and parent.get_text().strip() == text.strip()
        before = (parent if is_linked else tag).previous_sibling
        if str(tag.next_sibling).strip() in {"/", "\u2044"}:
            text = f" {text}"  # the upper half of a fraction
        else:
            is_note = is_linked or tag.find(["a", "xref"]) is not None
            text = superscript(before.get_text() if before else "", text, is_link=is_note)
        if text == tag.get_text():
            tag.unwrap()
        else:
            tag.replace_with(text)
    for tag in soup.find_all(re.compile("^(?:mml:)?annotation(?:-xml)?$")):
        if tag.parent and tag.parent.name.endswith("semantics"):
            tag.decompose()  # the formula again, in another form
    for tag in reversed(soup.find_all(re.compile(f"^(?:mml:)?(?:{'|'.join(_MATHS)})$"))):
        name = tag.name.removeprefix("mml:")
        is_root = name == "msqrt"
        parts = [tag] if is_root else tag.find_all(name=True, recursive=False)
        for part in parts:
            if not _SIMPLE.fullmatch(part.get_text().strip()):
                part.insert(0, "(")
                part.append(")")
        for part, sign in zip(parts[1:], _MATHS[name], strict=False):
            part.insert_before(sign)
        tag.insert_before({"mfrac": " ", "msqrt": "\u221a"}.get(name, ""))


def superscript(before: str, text: str, *, is_link: bool = False) -> str:
    """Return a superscript as text: as a power, as the mark of a note, or as it is."""
    shown = text.strip()
    if is_link and _NOTE.fullmatch(shown):
        return f" [{shown.strip('[]')}]"
    if not _POWER.fullmatch(shown) or not before or before[-1].isspace():
        return text
    if _BASE.search(before):
        return f"^{shown}" if _SIMPLE.fullmatch(shown) else f"^({shown})"
    return f" [{shown}]" if shown[0].isdecimal() else text


def _is_sign(image: Tag) -> bool:
    """Return whether an image stands for words, as it does if a table's cell has nothing else."""
    cell = image.parent if _is_alone(image) else None
    if cell and cell.name in {"td", "th"} and not cell.get_text().strip():
        return True
    return any(map(_SIGN.fullmatch, image.get("class") or ()))


def _show_readings(soup: BeautifulSoup) -> None:
    """Put the ruby readings of characters after the word, so that they do not split it."""
    for ruby in reversed(soup.find_all("ruby")):
        before = ruby.previous_sibling
        if isinstance(before, Tag) and before.name == "ruby":
            before.extend([*ruby.contents])
            continue
        reading = "".join(each.get_text() for each in ruby.find_all("rt"))
        for each in ruby.find_all(["rt", "rp"]):
            each.extract()
        ruby.append(f"({reading})" if reading else "")


def _unwrap_code(soup: BeautifulSoup) -> None:
    """Replace each table that only adds line numbers to code with the code."""
    for table in soup.select("table:has(pre)"):
        cells = table.find_all(["td", "th"])
        if len(cells) != 2:
            continue
        numbers, lines = cells
        code, text = lines.find("pre"), lines.get_text()
        breaks = text.strip("\n").count("\n") + len(lines.find_all("br"))
        is_code = code and code.get_text().strip() == text.strip()
        if is_code and numbers.get_text(" ").split() == [*map(str, range(1, breaks + 2))]:
            lines.name = "div"
            for caption in table.find_all("caption"):
                table.insert_before(caption)
                caption.name = "p"
            table.replace_with(lines)


def _unwrap_layout(soup: BeautifulSoup) -> None:
    """Turn tables that only arrange parts of a page into these parts."""
    for table in reversed(soup.select("table:has(h1, h2, h3, h4)")):
        cells = table.find_all([*_CELLS, *_GROUPS, "tr"])
        own = [tag for tag in cells if tag.find_parent("table") is table]
        heads = [tag for tag in table.find_all(_HEADINGS) if tag.find_parent("table") is table]
        is_layout = any(_stands_above(head) for head in heads)
        if is_layout and not any(tag.name == "th" for tag in own):
            for tag in [table, *own]:
                tag.name = "div"


def _stands_above(heading: Tag) -> bool:
    """Return whether a heading in a table's cell is not all that the cell says."""
    cell = heading.find_parent(["td", "th"])
    return cell is not None and cell.get_text(strip=True) != heading.get_text(strip=True)


def split_cells(soup: BeautifulSoup) -> None:
    """Split cells that span rows, so that the cells in the rows below keep their columns."""
    splits = 0
    for row in soup.find_all("tr"):
        below, column = row.find_next_sibling("tr"), 0
        for cell in row.find_all(["td", "th"], recursive=False):
            rows = span(cell, "rowspan")
            if below and rows != 1 and splits < _MOST_SPLITS:
                splits += 1
                part = copy(cell)
                part["rowspan"] = str(max(rows - 1, 0))
                if len(part.get_text()) > _SHORT:
                    part.clear()
                _insert_cell(below, column, part)
            column += span(cell, "colspan") or 1


def _insert_cell(row: Tag, column: int, cell: Tag) -> None:
    for each in row.find_all(["td", "th"], recursive=False):
        if column <= 0:
            each.insert_before(cell)
            return
        column -= span(each, "colspan") or 1
    row.append(cell)


def span(cell: Tag, name: str) -> int:
    """Return the number of rows or columns that a cell spans; 0 means all that follow."""
    value = str(cell.get(name, "1"))
    return int(value[:5]) if value.isdecimal() else 1


def _label_items(soup: BeautifulSoup) -> None:
    """Set the value of each item in numbered lists to its label, such as "b" or "iv"."""
    for listed in soup.find_all("ol"):
        items = listed.find_all("li", recursive=False)
        step = -1 if listed.has_attr("reversed") else 1
        number = _number(listed, "start", len(items) if step < 0 else 1)
        style = str(listed.get("style", ""))
        kind = next((_LETTERS[name] for name in _LETTERS if name in style), listed.get("type"))
        for item in items:
            number = _number(item, "value", number)
            item["value"] = _label(number, str(kind))
            number += step


def _label(number: int, kind: str) -> str:
    """Return a number as the type of a list shows it: "a" and "i" stand for letters."""
    label, rest = "", number
    if kind in {"a", "A"}:
        while rest > 0:
            rest, letter = divmod(rest - 1, 26)
            label = chr(ord("a") + letter) + label
    elif kind in {"i", "I"} and 0 < number < 4000:
        for sign, value in _ROMAN.items():
            label += sign * (rest // value)
            rest %= value
    return (label.upper() if kind.isupper() else label) or str(number)


def _number(tag: Tag, name: str, otherwise: int) -> int:
    value = str(tag.get(name, ""))
    return int(value) if re.fullmatch(r"-?\d{1,9}", value) else otherwise


def _hidden(soup: BeautifulSoup) -> list[Tag]:
    """Return the hidden elements that a reader cannot expand, and hidden menus."""
    controls = soup.select(f"[aria-controls]{_SWITCH}")
    controlled = {name for each in controls for name in str(each["aria-controls"]).split()}
    unfold = {id(tag) for tag in soup.select(f":is({_UNFOLDS}){_HIDDEN}")}
    return [
        tag
        for tag in soup.select(_HIDDEN)
        if not (id(tag) in unfold or tag.get("id") in controlled) or _is_menu(tag)
    ]


def _is_menu(tag: Tag, *, strip: bool = False) -> bool:
    """Return whether most of an element's text, perhaps without its spaces, is links."""
    linked = sum(len(link.get_text(strip=strip)) for link in tag.select("a"))
    return 2 * linked > len(tag.get_text(strip=strip))
