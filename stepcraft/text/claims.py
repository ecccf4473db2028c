"""Find the statements in a Markdown text, which a check judges one by one."""

import re
from collections.abc import Iterator
from itertools import accumulate, pairwise

from stepcraft.text.clean import SPACELESS_STOPS, STOPS
from stepcraft.text.markdown import DELIMITER, code_blocks, outside_code
from stepcraft.text.sentences import pieces

_ITEM = r"(?:[-*+\u2022]|\d{1,3}[.)])[ \t]+"
_BLANK = re.compile(r"[ \t>\n]*")
_MARKERS = re.compile(rf"(?:{_ITEM})*")
_BULLETS = re.compile(r"(?:[-*+\u2022][ \t]+)*")
_PAIR = (
    r"(?i:[|*_ \t]*(?!(?:country|date|item|metric|model|name|region|type|year)\b)(?=\w)[^|\d\n]+)\|"
    r"(?![^|\w\n]{0,5}(?:(?:19|20)\d\d\b|\d+(?:st|nd|rd|th)\b))"
    r"(?=[^|\n]*(?:[^\W\d_]|[%\u20ac$\u00a3]))[^|\w\n]{0,5}\d[^|\n]*\|?[ \t\r]*$"
)
"""The first row of a table of names and values, such as "| Limit | 100 per minute |"."""
_TABLE = rf"[^\n|]*\|[^\n]*\n(?=[^\n]*\|){DELIMITER}[ \t\r]*$"
"""The first two lines of a table."""
_END = rf"(?:[{STOPS}](?![a-zA-Z\d])|[{SPACELESS_STOPS}])"
"""The end of a sentence, which no underlined heading has."""
_APART = re.compile(
    rf"^(?P<table>(?={_TABLE})(?:(?![ \t>]*(?:{_ITEM})*{_PAIR})[^\n]*\n[^\n]*)?)?"
    r"(?P<rows>(?(table)(?:\n?[^\n|]*\|[^\n]*)*+|[ \t>]*\|[^\n]*))"
    rf"|^(?<!\S\n)(?<!\S\r\n)(?![ \t]*(?:[>|]|\*\*|__|{_ITEM})|[^\n]*{_END}[^\n]*\n[ \t]*-)"
    r"[^\n]*\n[ \t]*(?:=+|-+)[ \t\r]*$"
    rf"|^[ \t>]*(?:{_ITEM})*#{{1,6}}[ \t][^\n]*"
    r"|\A---[ \t\r]*\n(?=[\w-]+:)(?:[^\n]*\S[^\n]*\n)*?---[ \t\r]*$"
    r"|^(?:[^\w\n]*|[ \t\r_]*)$"
    r"|\Z",
    re.MULTILINE,
)
"""A table, a row, a heading, or a line without words; only the "rows" make claims."""
_ROW = re.compile(r"[^\n]+")
_NO_CLAIM = re.compile(r"(?:<[^<>\n]*+>|\W)*+|\[![A-Z]+\]|\[[^\]\n]+\]:[ \t]*<?\w+:\S*")
"""Text that cannot be true or false, such as a tag or the target of a link."""
_TITLE = re.compile(r"(\*\*|__)(?:(?!\1)[^\n])+\1[:\uff1a]?")
_COLON = re.compile(r"[:\uff1a](?:\*\*|__)?$")
_STEP = r"(?:(?:[^\W\d_]{1,12}[ \t])?\d{1,3}(?:[.):\uff1a](?!\d)[ \t]*|$))?+"
_CLAIMING = re.compile(rf"(?:\*\*|__){_STEP}(?=.*\d|[^\n:\uff1a]*[:\uff1a]\s*\S)", re.DOTALL)
"""Bold text that makes a claim, such as "Port: open" or "2 keys", unless it is a step number."""
_FILLED = re.compile(r"\s*\S")
_STOPPED = re.compile(f"[{STOPS}{SPACELESS_STOPS}][\\W_]*$")
_FORMULA = re.compile(r"^[ \t]*(?:\$\$[^$]*+\$\$|\\\[[^\\]*+(?:\\[^]][^\\]*+)*+\\\])", re.MULTILINE)
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_MARK = re.compile(r"\u27e6\d{1,4}\.\d{1,4}\u27e7(?:[ ]|\n(?=[ \t]*(?:```|~~~)))?")


def claims(text: str) -> list[tuple[int, int]]:
    """Return the offsets (start, stop) of the statements in a text, in order.

    A statement is a sentence with the citation marks after it, a table row, a code block or a
    displayed formula. List bullets and surrounding whitespace are not part of it.
    """
    formulas = [
        formula.span()
        for start, stop in outside_code(text)
        for formula in _FORMULA.finditer(text, start, stop)
    ]
    spans: list[tuple[int, int]] = []
    end = 0
    for start, stop in sorted([*formulas, *(block[:2] for block in code_blocks(text))]):
        spans += [*_sentences(text, end, start), (start, stop)]
        end = stop
    return spans + _sentences(text, end, len(text))


def _sentences(text: str, start: int, stop: int) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for first, last in _pieces(text, start, stop):
        begin = _begin(text, first, last)
        end = begin + len(text[begin:last].rstrip())
        if not (_NO_CLAIM.fullmatch(text[begin:end]) or _is_title(text, begin, end)):
            spans.append((begin, end))
    return spans


def _begin(text: str, first: int, last: int) -> int:
    """Return where a statement begins, behind blanks and the markers of list items.

    Within a line, a number is no marker but an ordinal, as in "2. Mehmed".
    """
    blank = _BLANK.match(text, first, last)
    begin = blank.end() if blank else first
    begins_line = text[first - 1 : first] in {"", "\n"} or "\n" in text[first:begin]
    markers = (_MARKERS if begins_line else _BULLETS).match(text, begin, last)
    return markers.end() if markers else begin


def _pieces(text: str, start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the sentences and rows between headings, rules and blank lines."""
    end = start
    for lines in _APART.finditer(text, start, stop):
        lengths = map(len, pieces(text[end : lines.start()]))
        yield from pairwise(accumulate(lengths, initial=end))
        if lines["rows"]:
            yield from (row.span() for row in _ROW.finditer(text, *lines.span("rows")))
        end = lines.end()


def _is_title(text: str, begin: int, end: int) -> bool:
    """Return whether bold text is a label with a colon, or a line with text below."""
    words = text[begin:end]
    if not _TITLE.fullmatch(words):
        return False
    if _COLON.search(words):
        return True
    before = text[text.rfind("\n", 0, begin) + 1 : begin]
    return (
        not _CLAIMING.match(words[:-2])
        and not _STOPPED.search(words)
        and not before.strip("> \t")
        and _FILLED.match(text, end) is not None
    )


def with_numbers(text: str, part: int) -> str:
    """Return a part with a number such as ⟦3.1⟧ before each of its statements."""
    for number, (start, _) in reversed([*enumerate(claims(text), 1)]):
        glue = "\n" if _FENCE.match(text, start) else " "
        text = f"{text[:start]}\u27e6{part}.{number}\u27e7{glue}{text[start:]}"
    return text


def without_numbers(text: str) -> str:
    """Return a text with its statement numbers removed."""
    return _MARK.sub("", text)
