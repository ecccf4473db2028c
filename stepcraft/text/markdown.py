"""Code and markup in Markdown: fenced blocks, inline spans, and the text that readers see.

The rules are CommonMark's, plus what the replies of chat models require: a fence may be indented to
any depth, since list items nest, and a closing fence may be followed by `]]` or by citation marks
such as `[p1]`. A list item may begin with a fence, and a quotation may contain one.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from operator import methodcaller
from typing import NamedTuple

_FENCE = re.compile(
    r"^(?:[ \t]*+>)*+[ \t]*+(?P<item>(?:(?:\d{1,9}[.)]|[-*+])[ \t]++)++)?"
    r"(?P<mark>`{3,}+(?![^\n]*`)|~{3,}+)(?P<info>[^\n]*)$",
    re.MULTILINE,
)
_AFTER_CLOSING = re.compile(
    r"(?:\]\]|[\[\u3010\uff3b][^\[\]\u3011\uff3d]{1,40}[\]\u3011\uff3d]|\s)*"
)
"""Brackets that belong to the surrounding prose."""
_SPAN = re.compile(r"(?<!`)(`{2,}+)[^`\n]++\1|`[^`\n]*+`")
DELIMITER = r"[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*+\|?"
"""The pattern of the line below the head of a table."""
_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_INVISIBLE = re.compile("[\U000e0000-\U000e007f]+")
"""Characters that no font displays."""
_HIDDEN = re.compile(rf"(?<!\\)<!--|\{{/\*|{_INVISIBLE.pattern}")
"""The beginning of an HTML or MDX comment, and characters that no font displays."""
_BEGINS_LINE = re.compile(r"(?:\A|\n) {0,3}\Z")

_IN_HEADING = (
    (re.compile(r"\{[ \t]*[#.:][^{}\n]*\}\s*\Z"), ""),  # attributes
    (re.compile(r"!\[[^\[\]]*\](?:\([^()]*\)|\[[^\[\]]*\])"), ""),  # images
    (re.compile(r"\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])"), r"\1"),  # links
    (
        re.compile(
            r"</?(?:[abiu]|br|code|em|font|img|kbd|small|span|strong|su[bp])\b[^<>]*>",
            re.IGNORECASE,
        ),
        "",
    ),
    (re.compile(r"(?<![\w:]):[a-z][a-z0-9_+-]*:(?![\w:])"), ""),  # ":rocket:"
    (re.compile(r"(?<!\\)(\*{1,3})(?=\S)([^*]+)(?<=\S)\1"), r"\2"),  # inner emphasis
    (re.compile(r"(?<!\\)(\*{1,3})(?=\S)([^*]+)(?<=\S)\1"), r"\2"),  # emphasis around it
    (re.compile(r"\\(?=_|[^\w\s])|\u00b6"), ""),
)
"""Markup that is hidden in a heading outside of code, and what replaces it."""
_IN_TICKS = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")


class CodeBlock(NamedTuple):
    """A fenced code block, including its fences."""

    start: int
    """Offset of the opening fence, including indentation but not a list item's marker."""
    stop: int
    """Offset after the mark of the closing fence, or the length of the text if there is none."""
    closed: bool


def fences(text: str) -> Iterator[re.Match[str]]:
    """Yield every line that can open or close a fenced code block, in order.

    Its groups are the "mark", a run of backticks or tildes; the "info" after it, such as the
    language of an opening fence; and the "item" before it, the marker of a list item, if any.
    """
    if "```" in text or "~~~" in text:
        yield from _FENCE.finditer(text)


def code_blocks(text: str) -> Iterator[CodeBlock]:
    """Yield the fenced code blocks in a text. An unclosed block extends to the end of the text."""
    start, mark = 0, ""
    for fence in fences(text):
        info = fence["info"].strip()
        if not mark:
            if not info.startswith(("[", "]")):
                start, mark = fence.start("mark" if fence["item"] else 0), fence["mark"]
        elif (
            fence["mark"].startswith(mark) and not fence["item"] and _AFTER_CLOSING.fullmatch(info)
        ):
            yield CodeBlock(start, fence.end("mark"), closed=True)
            mark = ""
    if mark:
        yield CodeBlock(start, len(text), closed=False)


def outside_code(text: str, *, unclosed: bool = True) -> Iterator[tuple[int, int]]:
    """Yield the offsets (start, stop) of the text outside of fenced blocks and code spans.

    Args:
        text: The text.
        unclosed: Whether a block without a closing fence counts as code, as in CommonMark.
    """
    position = 0
    for start, stop in [*code(text, unclosed=unclosed), (len(text), len(text))]:
        if position < start:
            yield position, start
        position = stop


def replaced(text: str, pattern: re.Pattern[str], by: Callable[[re.Match[str]], str]) -> str:
    """Replace the matches of a pattern as `re.sub` does, but not in code."""
    pieces: list[str] = []
    end = 0
    for start, stop in outside_code(text):
        for match in pattern.finditer(text, start, stop):
            pieces += [text[end : match.start()], by(match)]
            end = match.end()
    return "".join([*pieces, text[end:]])


def code(text: str, *, unclosed: bool = True) -> Iterator[tuple[int, int]]:
    """Yield the offsets (start, stop) of fenced blocks and code spans."""
    end = 0
    for block in code_blocks(text):
        if not (block.closed or unclosed):
            break
        yield from (match.span() for match in _SPAN.finditer(text, end, block.start))
        yield block.start, block.stop
        end = block.stop
    yield from (match.span() for match in _SPAN.finditer(text, end))


def lines(text: str, *, unclosed: bool = True) -> Iterator[tuple[str, bool]]:
    r"""Yield each line including its "\n", and whether it belongs to a fenced code block.

    Args:
        text: The text. Joining the lines yields it again.
        unclosed: Whether a block without a closing fence counts as code, as in CommonMark.
    """
    blocks = (block for block in code_blocks(text) if block.closed or unclosed)
    block = next(blocks, None)
    for match in _LINE.finditer(text):
        while block and block.stop <= match.start():
            block = next(blocks, None)
        yield match[0], block is not None and block.start <= match.start()


def fenced(text: str) -> str:
    """Return a text as a code block, with a fence that nothing in the text closes."""
    fence = "`" * (max(map(len, re.findall("`{3,}", text)), default=2) + 1)
    return f"{fence}\n{text}\n{fence}"


def shown_heading(heading: str) -> str:
    """Return a heading as readers see it, without markup, images and link targets."""
    for pattern, stays in _IN_HEADING:
        if pattern.search(heading):
            heading = replaced(heading, pattern, methodcaller("expand", stays))
    return " ".join(_IN_TICKS.sub(r"\2", heading).split())


def as_shown(text: str, *, comments: bool = True) -> str:
    """Return Markdown as readers see it, with each hidden character replaced by a space.

    As in CommonMark, a comment that begins a line hides everything to its end or, if it has none,
    to the end of the text. Anywhere else, a comment that does not end within its paragraph is
    ordinary text.

    Args:
        text: The text.
        comments: Whether it can contain comments; in text taken from other formats, comment marks
            are text.
    """
    if not comments:
        return _INVISIBLE.sub(lambda match: " " * len(match[0]), text)
    spans = [*code(text)]
    found: dict[str, int] = {}

    def next_place(mark: str, start: int) -> int:
        """Return the next place of a mark, or the end of the text; `start` only increases."""
        if found.get(mark, -1) < start:
            place = text.find(mark, start)
            found[mark] = place if place >= 0 else len(text)
        return found[mark]

    pieces: list[str] = []
    end = position = 0
    while hidden := _HIDDEN.search(text, position):
        start, stop = hidden.span()
        place = bisect_right(spans, (start, len(text))) - 1
        if place >= 0 and start < spans[place][1]:  # it begins inside code
            position = spans[place][1]
            continue
        if hidden[0] in {"<!--", "{/*"}:
            is_html = hidden[0] == "<!--"
            is_block = is_html and _BEGINS_LINE.search(text, max(0, start - 4), start)
            limit = next_place("\n\n", start) if is_html and not is_block else len(text)
            closing = next_place("-->", start + 2) if is_html else next_place("*/}", stop)
            if closing >= limit and not is_block:
                position = stop
                continue
            stop = min(closing + 3, limit)  # "<!-->" is a comment, too
        pieces += [text[end:start], re.sub(r"[^\n]", " ", text[start:stop])]
        end = position = stop
    return "".join([*pieces, text[end:]])
