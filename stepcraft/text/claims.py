"""Find the statements in a Markdown text, which a check judges one by one."""

import re
from itertools import accumulate

from stepcraft.text.clean import SPACELESS_STOPS, STOPS
from stepcraft.text.markdown import code_blocks, outside_code
from stepcraft.text.sentences import pieces

_OPENING = re.compile(r"[ \t>\n]*(?:(?:[-*+\u2022]|\d{1,3}[.)])[ \t]+)*")
_RULE = re.compile(r"[|:= \t-]+")
_UNSPLIT = re.compile(
    r"^[^\n|]*\|[^\n]*\n[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*+\|?[ \t\r]*"
    r"(?:\n[^\n|]*\|[^\n]*)*"
    r"|^[ \t>]*(?:#{1,6}[ \t]|\|)[^\n]*",
    re.MULTILINE,
)
"""A table, a heading or a row, whose lines are not split into sentences."""
_NO_CLAIM = re.compile(
    r"#{1,6}[ \t].*|(?:<[^<>\n]*+>|\W)*+|\[![A-Z]+\]|\[[^\]\n]+\]:[ \t]*<?\w+:\S*", re.DOTALL
)
"""A heading, a rule, or other text that cannot be true or false."""
_PAIR = re.compile(
    r"(?i:[|*_ \t]*(?!(?:country|date|item|metric|model|name|region|type|year)\b)(?=\w)[^|\d\n]+)\|"
    r"(?![^|\w\n]{0,5}(?:(?:19|20)\d\d\b|\d+(?:st|nd|rd|th)\b))"
    r"(?=[^|\n]*(?:[^\W\d_]|[%\u20ac$\u00a3]))[^|\w\n]{0,5}\d[^|\n]*\|?[ \t]*"
)
"""The first row of a table of names and values, such as "| Limit | 100 per minute |"."""
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
    shown = _UNSPLIT.sub(_whole, text[start:stop])
    ends = [*accumulate(map(len, pieces(shown)), initial=start), stop]
    for first, last, following in zip(ends, ends[1:], ends[2:], strict=False):
        opening = _OPENING.match(text, first, last)
        begin = opening.end() if opening else first
        end = begin + len(text[begin:last].rstrip())
        below = text[last:following].strip()
        is_ruled = text.count("\n", end, last) == 1 and _RULE.fullmatch(below)
        is_head = is_ruled and not _PAIR.fullmatch(text, begin, end)
        if not (is_head or _NO_CLAIM.fullmatch(text[begin:end]) or _is_title(text, begin, end)):
            spans.append((begin, end))
    return spans


def _whole(lines: re.Match[str]) -> str:
    """Replace the characters of lines that must not be split with capital letters."""
    return re.sub(r"[^\n]", "X", lines[0])


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
