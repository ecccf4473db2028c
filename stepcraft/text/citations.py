"""Citation marks such as [1], which name the passage that a sentence was written from."""

import re
from collections.abc import Collection, Iterable, Mapping

from stepcraft.text.clean import CJK
from stepcraft.text.markdown import code_blocks, outside_code
from stepcraft.text.sentences import pieces

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
    return renumbered(text, {number: number for number in numbers}).strip()


def marks(text: str) -> set[int]:
    """Return the numbers that a text cites outside of code."""
    return {number for match in _matches(text) for number in _cited(match)}


def _matches(text: str) -> list[re.Match[str]]:
    found = [match for start, stop in outside_code(text) for match in _MARK.finditer(text, start, stop)]
    # Passages are numbered from 1, so that items[0] is no mark.
    return [
        match
        for match in found
        if any(_cited(match))
        or match["before"]
        or not text[max(0, match.start() - 1) : match.start()].isalnum()
    ]


def _cited(match: re.Match[str]) -> list[int]:
    numbers = _RANGE.sub(_range_as_numbers, match[2] or match[3])
    return list(dict.fromkeys(int(number) for number in _NUMBER.findall(numbers)))


def _range_as_numbers(match: re.Match[str]) -> str:
    first, last = int(match[1]), int(match[2])
    if not first <= last < first + _MAX_RANGE:
        return match[0]
    return " ".join(map(str, range(first, last + 1)))


_BEHIND_STOP = re.compile(
    r"([.!?\u2026\u3002\uff01\uff1f][.!?\u2026\u3002\uff01\uff1f\"'\u201d\u2019)*_]{0,6})[ \t]{0,3}((?:\[\d{1,3}\])+)"
)
_HEADING = re.compile(r"#{1,6}[ \t][^\n]+|\*\*[^*\n]+\*\*:?|__[^_\n]+__:?")
_SPACELESS = re.compile(f"[{CJK}]")
_STOPS = ".!?:\u2026\u3002\uff01\uff1f"
_CLOSING = "\"'\u201d\u2019)*_"


def cited_sentences(text: str, numbers: Collection[int]) -> list[tuple[str, list[int]]]:
    """Split a text into its sentences, without their marks, and the numbers that each of them cites.

    A mark belongs to the sentence that it stands in, or directly behind. Marks of numbers that are not among `numbers`
    are dropped. Joined, the sentences are the text without marks; a block of code belongs to the sentence before it, and
    a heading to the one below it.
    """
    text = with_marks_of(text, numbers)
    found: list[tuple[str, list[int]]] = []
    end = 0
    for block in code_blocks(text):
        found += _cited_in_prose(text[end : block.start])
        code = text[block.start : block.stop]
        found[-1:] = [(found[-1][0] + code, found[-1][1])] if found else [(code, [])]
        end = block.stop
    found += _cited_in_prose(text[end:])
    joined: list[tuple[str, list[int]]] = []
    for sentence, cited in found:
        if joined and (not sentence.strip() or _HEADING.fullmatch(joined[-1][0].strip())):
            before, numbers_before = joined.pop()
            joined.append((before + sentence, list(dict.fromkeys([*numbers_before, *cited]))))
        elif sentence.strip():
            joined.append((sentence, cited))
    return joined


def _cited_in_prose(text: str) -> list[tuple[str, list[int]]]:
    moved = _BEHIND_STOP.sub(r" \2\1", text)
    return [
        (renumbered(piece, {}), sorted(marks(piece))) if "[" in piece else (piece, [])
        for piece in pieces(moved)
        if piece
    ]


def with_marks(sentence: str, numbers: Iterable[int]) -> str:
    """Return a sentence with marks of these numbers before its full stop, or at its end where it has none.

    The marks of a sentence with a block of code stand before the block; a block alone carries none.
    """
    written = "".join(f"[{number}]" for number in numbers)
    prose = sentence[: next((block.start for block in code_blocks(sentence)), len(sentence))]
    bare = prose.rstrip()
    if not written or not bare:
        return sentence
    unclosed = bare.rstrip(_CLOSING)
    before = unclosed.rstrip(_STOPS)
    if before in {"", unclosed}:
        before = bare
    blank = "" if _SPACELESS.fullmatch(before[-1:]) else " "
    return f"{before}{blank}{written}{sentence[len(before) :]}"


def renumbered(text: str, numbers: Mapping[int, int]) -> str:
    """Return a text with its marks renumbered; marks of other numbers are dropped."""
    parts: list[str] = []
    end = 0
    for match in _matches(text):
        kept = dict.fromkeys(numbers[number] for number in _cited(match) if number in numbers)
        mark = match["before"] + "".join(f"[{number}]" for number in kept) if kept else ""
        parts += [text[end : match.start()], mark]
        end = match.end()
    return "".join([*parts, text[end:]])
