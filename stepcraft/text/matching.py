"""Find words in a text wherever they are whole words, verbatim or in another typography."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from stepcraft.text.blanks import plain
from stepcraft.text.clean import MARKS, SPACELESS, WORD_MARKS

WORD = re.compile(rf"[{SPACELESS}]|[^\W{SPACELESS}]+(?:[{WORD_MARKS}]+[^\W{SPACELESS}]*)*+")
"""A word with its vowel signs, or a character of a script without spaces between words."""
_REST_OF_WORD = re.compile(rf"[^\W{SPACELESS}]*+")
_EMPHASISED = re.compile(r"(?<!\w)_([^_]+)_(?!\w)")
_COMBINING = rf"[{MARKS}\u1160-\u11ff\u20d0-\u20ff\u3099\u309a\uff9e\uff9f]"
"""Marks, and the vowels and final consonants of Korean in separate characters."""
_CLUSTER = re.compile(rf"\s+|\S{_COMBINING}*+")
"""A run of whitespace, or a character with its combining marks."""
_SEPARATOR = r"[.,:'/\u00a0\u00b7\u066b\u066c\u2009\u2019\u202f\uff0c\uff0e]"
_HAN = (
    r"[\u3007\u96f6\u4e00\u4e8c\u4e24\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d"
    r"\u5341\u767e\u5343\u4e07]"
)
"""A digit of Chinese and Japanese numerals."""
_INSIDE = re.compile(
    rf"""
    (?={_COMBINING})
    | (?<=[^\W{SPACELESS}]|{_COMBINING})(?=['\u2019](?:t|ll|re|ve|d|m)\b)  # "can't"
    | (?<=\d{_SEPARATOR})(?=\d) | (?<=\d)(?={_SEPARATOR}\d)  # "1.5", "18:30"
    | (?<=[-+\u00b1\u2212])(?<![^\s(].)(?=\d)  # "-5"
    | (?:(?<=(?<![\w.,])\d[ ]) | (?<=(?<![\w.,])\d\d[ ]) | (?<=(?<![\w.,])\d\d\d[ ]))
      (?=\d{{3}}(?!\d))  # "12 500"
    | (?<=(?<!\d)\d{{4}}) (?=-\d\d-\d\d(?!\d))  # "2024-05-10"
    | (?<=(?<!\d)\d{{4}}-) (?=\d\d-\d\d(?!\d))
    | (?<=(?<!\d)\d{{4}}-\d\d) (?=-\d\d(?!\d))
    | (?<=(?<!\d)\d{{4}}-\d\d-) (?=\d\d(?!\d))
    | (?<={_HAN})(?={_HAN})
    """,
    re.VERBOSE,
)
"""A position inside a character, a contraction or a number."""


def occurrences(words: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield the positions (start, stop) of whole-word matches in a text."""
    start = text.find(words) if words.strip() else -1
    while start >= 0:
        stop, further = start + len(words), start + 1
        emphasised = _EMPHASISED.match(text, max(start - 1, 0), stop + 2)
        if emphasised and emphasised.span(1) == (start, stop):
            yield start, stop
        elif not _is_inside(text, start):
            if not _is_inside(text, stop):
                yield start, stop
        elif rest := _REST_OF_WORD.match(text, further):
            further = rest.end()
        start = text.find(words, further)


def loose_occurrences(words: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield the positions of whole-word matches that differ only in whitespace and typography."""
    plain_text, spans = folded(text)
    for first, last in occurrences(folded(words)[0], plain_text):
        start, stop = spans[first][0], spans[last - 1][1]
        is_whole = all(spans[at - 1 : at] != spans[at : at + 1] for at in (first, last))
        # Folding turns thin spaces within a number into ordinary ones.
        if is_whole and not any(_INSIDE.match(text, at) for at in (start, stop)):
            yield start, stop


def _is_inside(text: str, place: int) -> bool:
    """Return whether a position is inside a word, a character, a contraction or a number."""
    left, right = text[max(place - 1, 0) : place], text[place : place + 1]
    return bool(_INSIDE.match(text, place)) or (_is_letter(left) and _is_letter(right))


def _is_letter(character: str) -> bool:
    """Return whether a character belongs to a word in a script that puts spaces between words."""
    if not character or re.match(f"[{SPACELESS}]", character):
        return False
    return character == "_" or unicodedata.category(character)[0] in "LMN"


@lru_cache(maxsize=256)
def folded(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return a text in plain typography, with the source span of each of its characters.

    Whitespace becomes one space, or a line break between paragraphs. Quotes and dashes become
    ASCII, and full-width forms become ordinary ones.
    """
    plain_text: list[str] = []
    spans: list[tuple[int, int]] = []
    for cluster in _CLUSTER.finditer(text):
        characters = plain(cluster[0])
        if cluster[0].isspace():
            characters = "\n" if cluster[0].count("\n") > 1 else " "
        plain_text += characters
        spans += [cluster.span()] * len(characters)
    return "".join(plain_text), spans
