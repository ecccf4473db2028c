"""The statements in a Markdown text, each of which a check judges."""

import re

from stepcraft.text.markdown import code_blocks, outside_code
from stepcraft.text.sentences import pieces

_OPENING = re.compile(r"[ \t>\n]*(?:(?:[-*+\u2022]|\d{1,3}[.)])[ \t]+)*")
_RULE = re.compile(r"[|:= \t-]+")
_NO_CLAIM = re.compile(r"#{1,6}[ \t].*|(?:\*\*|__)[^*_\n]+(?:\*\*|__):?|\W*", re.DOTALL)
"""A heading, a rule, or other text that cannot be true or false."""
_FORMULA = re.compile(r"^[ \t]*(?:\$\$[^$]*+\$\$|\\\[[^\\]*+(?:\\[^]][^\\]*+)*+\\\])", re.MULTILINE)
_CITED = re.compile(r"(?:\[\^?p?\d{1,3}\][ \t]*)+")
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
    split = pieces(text[start:stop])
    for piece, below in zip(split, [*split[1:], ""], strict=True):
        opening = _OPENING.match(piece)
        begin = start + (opening.end() if opening else 0)
        if spans and "\n" not in text[start:begin] and (cited := _CITED.match(text, begin, stop)):
            begin = cited.end()
            spans[-1] = (spans[-1][0], begin - len(cited[0]) + len(cited[0].rstrip()))
        start += len(piece)
        end = begin + len(text[begin:start].rstrip())
        is_head = text.count("\n", end, start) == 1 and _RULE.fullmatch(below.strip())
        if not is_head and not _NO_CLAIM.fullmatch(text[begin:end]):
            spans.append((begin, end))
    return spans


def with_numbers(text: str, part: int) -> str:
    """Return a part with a number such as ⟦3.1⟧ before each of its statements."""
    for number, (start, _) in reversed([*enumerate(claims(text), 1)]):
        glue = "\n" if _FENCE.match(text, start) else " "
        text = f"{text[:start]}\u27e6{part}.{number}\u27e7{glue}{text[start:]}"
    return text


def without_numbers(text: str) -> str:
    """Return a text without statement numbers."""
    return _MARK.sub("", text)
