"""Marks like [1] in a text, which say from which passage a sentence was written."""

import re
from collections.abc import Collection

_CODE = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]*`)", re.DOTALL)
_NUMBERS = r"\^?\d{1,3}(?:\s*[,;\u2013-]\s*\^?\d{1,3})*"
_MARK = re.compile(
    rf"(?P<before>(?<![ \t])[ \t]*)(?:\[\s*(?:(?:evidence|passage|source)s?\s*)?({_NUMBERS})\s*\](?!\()"
    rf"|\u3010\s*({_NUMBERS})[^\u3011\n]*\u3011)",
    re.IGNORECASE,
)
_RANGE = re.compile(r"\^?(\d+)\s*[\u2013-]\s*\^?(\d+)")
_NUMBER = re.compile(r"\d+")
_WIDEST = 20
"""A range of more numbers is no range of passages."""


def with_marks_of(text: str, numbers: Collection[int]) -> str:
    """The text with its marks as [1][2]; those of other numbers are left out, and code is left alone."""
    pieces = _CODE.split(text)
    pieces[::2] = [_MARK.sub(lambda match: _mark(match, numbers), piece) for piece in pieces[::2]]
    return "".join(pieces).strip()


def marks(text: str) -> set[int]:
    """The numbers that a text cites."""
    plain = "".join(_CODE.split(text)[::2])
    return {number for match in _MARK.finditer(plain) for number in _cited(match)}


def _mark(match: re.Match[str], numbers: Collection[int]) -> str:
    kept = [number for number in _cited(match) if number in numbers]
    return match["before"] + "".join(f"[{number}]" for number in kept) if kept else ""


def _cited(match: re.Match[str]) -> list[int]:
    told = _RANGE.sub(_spelled_out, match[2] or match[3])
    return list(dict.fromkeys(int(number) for number in _NUMBER.findall(told)))


def _spelled_out(match: re.Match[str]) -> str:
    first, last = int(match[1]), int(match[2])
    if not first <= last < first + _WIDEST:
        return match[0]
    return " ".join(map(str, range(first, last + 1)))
