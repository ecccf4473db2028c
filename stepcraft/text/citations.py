"""Citation marks such as [1], which name the passage that a sentence was written from."""

import re
from collections.abc import Collection

from stepcraft.text.markdown import outside_code

_NUMBERS = r"\^?\d{1,3}(?:[ \t]*[,;\u2013-][ \t]*\^?\d{1,3})*+"
_MARK = re.compile(
    rf"(?P<before>(?<![ \t])[ \t]*+)(?:\[[ \t]*(?:(?:evidence|passage|source)s?[ \t]*)?({_NUMBERS})[ \t]*\](?!\()"
    rf"|\u3010[ \t]*({_NUMBERS})[^\u3011\n]{{0,100}}+\u3011)",
    re.IGNORECASE,
)
_RANGE = re.compile(r"\^?(\d{1,3})[ \t]*+[\u2013-][ \t]*+\^?(\d{1,3})")
_NUMBER = re.compile(r"\d+")
_MAX_RANGE = 20
"""A range of more numbers is a span of years or the like."""


def with_marks_of(text: str, numbers: Collection[int]) -> str:
    """Return the text, stripped, with its citation marks in the form [1][2].

    Marks of numbers that are not among `numbers` are dropped. Code stays as it is.
    """
    parts: list[str] = []
    end = 0
    for match in _matches(text):
        kept = [number for number in _cited(match) if number in numbers]
        mark = match["before"] + "".join(f"[{number}]" for number in kept) if kept else ""
        parts += [text[end : match.start()], mark]
        end = match.end()
    return "".join([*parts, text[end:]]).strip()


def marks(text: str) -> set[int]:
    """Return the numbers that a text cites outside of code."""
    return {number for match in _matches(text) for number in _cited(match)}


def _matches(text: str) -> list[re.Match[str]]:
    return [match for start, stop in outside_code(text) for match in _MARK.finditer(text, start, stop)]


def _cited(match: re.Match[str]) -> list[int]:
    numbers = _RANGE.sub(_range_as_numbers, match[2] or match[3])
    return list(dict.fromkeys(int(number) for number in _NUMBER.findall(numbers)))


def _range_as_numbers(match: re.Match[str]) -> str:
    first, last = int(match[1]), int(match[2])
    if not first <= last < first + _MAX_RANGE:
        return match[0]
    return " ".join(map(str, range(first, last + 1)))
