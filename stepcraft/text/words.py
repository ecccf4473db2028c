"""Split texts in any language into words, in the same way for every word-based index.

A text and a query yield the same words where readers see no difference: words are normalised to
NFKC with ASCII digits, ignoring case, accents, Hebrew and Arabic points, tatweel, and the forms of
alef and yeh. Scripts without spaces between words yield pairs of characters.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from stepcraft.text.clean import STOP_WORDS, clean

VERSION = 2
"""Changes whenever texts are split differently; an index built with another version is rebuilt."""

MAX_WORDS = 128
"""The maximum number of distinct words in a query that are searched for; the rest are ignored."""

PARTS_WEIGHT = 0.3
"""The weight of a part of a word, relative to 1 for a whole word."""

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\ua9e0-\ua9ff\uaa60-\uaadf"
    "\u3005-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Thai, Lao, Burmese, Khmer and their relatives; Chinese, Japanese, and Korean with its endings."""
_RUN = re.compile(f"[{_UNSPACED}]+")
_UNIT = re.compile(r"\w\W*")
"""A character with its marks, which `re` does not count as word characters."""
_AM = re.compile("([\u0e4d\u0ecd])([\u0e48-\u0e4b\u0ec8-\u0ecb])")
"""The first half of the vowel am before a tone mark, where some keyboards and PDF files put it."""

_VARIANTS = str.maketrans(
    {"\u00e6": "ae", "\u0153": "oe", "\u00fe": "th", "\u0671": "\u0627", "\u06a9": "\u0643"}
    | dict(zip("\u0131\u0142\u00f8\u0111\u00f0\u0127\u0167", "iloddht", strict=True))
    | dict.fromkeys("\u0649\u06cc\u06d2", "\u064a")
    | dict.fromkeys("\u0629\u06be\u06c1\u06c3\u06d5", "\u0647")
    | {"\u0640": ""}
)
"""Letters without a decomposition, such as those with strokes, and Arabic, Persian and Urdu
variants.
"""
_LETTERS_OF_THEIR_OWN = "\u0439\u0457\u045e"
"""Cyrillic letters that are never written without their marks."""

_ONSET = (
    r"(?:[bcfgkp]?[lr]|[gkps]n|sch?[lmnrw]?|s[kp][lr]?|str?|[cpst]h|[dt]r|pf[lr]?|qu|kv|sj"
    r"|[bcdfghjkmnptvwxz])?[aeiouy]"
)
_STARTS = re.compile(_ONSET)
_ENDS = re.compile(r"[aeiouy].{0,4}$")
"""One of the last five letters is a vowel."""
_LINKED = re.compile(rf"(?:e?s|e?n|er|e)?(?:$|{_ONSET})")
"""The text that can follow a part: the end of the word or another part, possibly after a linking
letter or an ending.
"""
_LONG = re.compile(r"[a-z]{8,40}")
_LEAST = 4
_ENGLISH = frozenset(word for word in STOP_WORDS if len(word) > 2)
"""Words that are frequent in English and rare in languages that write compounds as one word."""


class Words(NamedTuple):
    """The words of a text as an index stores them, separated by spaces."""

    words: str
    parts: str
    """Possible words within long words, or "" for an English text."""


@lru_cache(maxsize=1)
def stored_words(text: str) -> Words:
    """Return the words of a text for an index that does nothing but split at spaces."""
    words = _words(text, lambda units: [*units, *_pairs(units)])
    # More than three, since a procedure in any language is stored as "how to … using …".
    is_english = sum(map(_ENGLISH.__contains__, words)) > 3 + len(words) / 8
    joined = () if is_english else filter(_LONG.fullmatch, words)
    parts = dict.fromkeys(part for word in joined for part in _parts(word))
    return Words(" ".join(words), " ".join(parts))


def query_words(query: str) -> list[str]:
    """Return the distinct words in a query.

    Text without spaces between words, as in Chinese, yields its pairs of characters. English stop
    words are left out unless there are no other words.
    """
    words = dict.fromkeys(_words(query, lambda units: _pairs(units) or units))
    return ([word for word in words if word not in STOP_WORDS] or list(words))[:MAX_WORDS]


def _words(text: str, of_run: Callable[[list[str]], list[str]]) -> list[str]:
    """Return the words of a text, using `of_run` for text without spaces between words."""

    def spaced(run: re.Match[str]) -> str:
        return f" {' '.join(of_run(_UNIT.findall(run[0])))} "

    folded = unicodedata.normalize("NFKC", clean(text)).casefold().translate(_FOLDED)
    if not folded.isascii():
        folded = _RUN.sub(spaced, _AM.sub(r"\2\1", folded))
    return folded.split()


def _pairs(units: Sequence[str]) -> list[str]:
    return [first + second for first, second in pairwise(units)]


class _Folded(dict[int, str]):
    """A `str.translate` mapping; characters that are not part of a word become "" or " "."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        folded = self[code] = _folded(character)
        return folded


_FOLDED = _Folded()


def _folded(character: str) -> str:
    kind = unicodedata.category(character)
    if kind == "Cf" or _is_dropped(character):
        return ""
    if kind[0] == "M" or character in _LETTERS_OF_THEIR_OWN:
        return character
    if not character.isalnum() or "\u02b0" <= character <= "\u02ff":  # letters used as apostrophes
        return " "
    if kind == "Nd":
        return str(unicodedata.decimal(character))
    bare = [each for each in unicodedata.normalize("NFD", character) if not _is_dropped(each)]
    return unicodedata.normalize("NFC", "".join(bare)).translate(_VARIANTS)


def _is_dropped(mark: str) -> bool:
    """Return whether a mark is one that writers omit, and not an Indic vowel or tone mark."""
    # Nuktas, Hebrew and Arabic points, accents, enclosing marks and variation selectors.
    order = unicodedata.combining(mark)
    return (
        order in (1, 7)
        or 10 <= order <= 36
        or order >= 200
        or unicodedata.category(mark) == "Me"
        or "\ufe00" <= mark <= "\ufe0f"
        or mark >= "\U000e0100"
    )


@lru_cache(maxsize=20_000)
def _parts(word: str) -> Sequence[str]:
    """Return possible words in a compound: parts that begin and end like syllables."""
    places = range(len(word) + 1)
    ended = [place for place in places if _ENDS.search(word[:place])]
    starts = [0, *(place for place in ended if place >= 3 and _STARTS.match(word, place))]
    ends = [*(place for place in ended if _LINKED.match(word, place)), len(word)]
    return [word[a:b] for a in starts for b in ends if _LEAST <= b - a < len(word)]
