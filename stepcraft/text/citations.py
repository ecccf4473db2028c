"""Citation marks such as [1], which name the passage that a sentence was written from."""

import re
from collections.abc import Collection, Iterable, Mapping

from stepcraft.text.clean import CJK, SPACELESS_STOPS, STOPS
from stepcraft.text.markdown import code_blocks, outside_code, replaced
from stepcraft.text.sentences import pieces

_LABEL = r"\[\d{1,3}\]"
_MARK = re.compile(
    rf"^[ ]{{0,3}}{_LABEL}:[ \t]*+\S++[ \t]*+(?:[\"'(][^\n]*+)?$"
    r"|(?P<before>(?<![ \t])[ \t]*+)(?<!`\])\[[ \t]*(?:(?:evidence|passage|source)s?[ \t]*)?"
    r"(?P<numbers>[1-9]\d{0,2}(?:[ \t]*[,;\u2013-][ \t]*[1-9]\d{0,2})*+)[ \t]*\](?!\()"
    rf"|\[[^\w\[\]\n]*+[^\W\d_][^\[\]\n]*+\]{_LABEL}",
    re.IGNORECASE | re.MULTILINE,
)
"""A mark; also, without numbers, what is none: a link by a label, and its definition."""


def with_marks_of(text: str, numbers: Collection[int]) -> str:
    """Return the text, stripped, with its citation marks in the form [1][2].

    Marks of numbers that are not among `numbers` are dropped. Code stays as it is.
    """
    return renumbered(text, {number: number for number in numbers}).strip()


def marks(text: str) -> set[int]:
    """Return the numbers that a text cites outside of code."""
    return {
        number
        for start, stop in outside_code(text)
        for match in _MARK.finditer(text, start, stop)
        for number in _cited(match)
    }


def _cited(match: re.Match[str]) -> list[int]:
    """Return the numbers of a mark, those between the ends of a range included."""
    parts = re.split("[,;]", match["numbers"] or "")
    ends = [[*map(int, re.findall(r"\d+", part))] for part in parts if part]
    return [number for each in ends for number in range(each[0], each[-1] + 1)]


_ENDS = f"{STOPS}{SPACELESS_STOPS}"
_CLOSING = "\"'\u201d\u2019)*_"
_BEHIND_STOP = re.compile(rf"([{_ENDS}][{_ENDS}{_CLOSING}]{{0,6}})[ \t]{{0,3}}((?:{_LABEL})+)")
_HEADING = re.compile(r"#{1,6}[ \t][^\n]++|\*\*[^*\n]++\*\*:?|__[^_\n]++__:?|[|: \t]*+-[|: \t-]*+")
"""A heading, a rule, or the line below the head of a table."""
_OPENING = re.compile(
    rf"\s*+(?:(?:{_HEADING.pattern})[ \t]*+\n\s*+)*+(?:(?:[-*+>\u2022]|\d{{1,3}}[.)])[ \t]++)*+"
)
_SPACELESS = re.compile(f"[{CJK}]")


def cited_sentences(text: str, numbers: Collection[int]) -> list[tuple[str, list[int]]]:
    """Split a text into its sentences, without marks, each with the numbers that it cites.

    A mark belongs to the sentence that it stands in, or directly behind. Marks of numbers that are
    not among `numbers` are dropped. Joined, the sentences are the text without marks; a block of
    code belongs to the sentence before it, and a heading to the one below it.
    """
    text = with_marks_of(text, numbers)
    split: list[tuple[str, list[int]]] = [("", [])]
    end = 0
    for block in code_blocks(text):
        split += _cited_in_prose(text[end : block.start])
        before, cited = split.pop()
        split.append((before + text[block.start : block.stop], cited))
        end = block.stop
    split += _cited_in_prose(text[end:])
    joined: list[tuple[str, list[int]]] = []
    for sentence, cited in split:
        is_rest = not sentence.strip().strip("|")
        if joined and (is_rest or _HEADING.fullmatch(joined[-1][0].strip())):
            before, cited_before = joined.pop()
            joined.append((before + sentence, list(dict.fromkeys([*cited_before, *cited]))))
        elif sentence.strip():
            joined.append((sentence, cited))
    return joined


def _cited_in_prose(text: str) -> list[tuple[str, list[int]]]:
    moved = _BEHIND_STOP.sub(r" \2\1", text)
    return [(renumbered(piece, {}), sorted(marks(piece))) for piece in pieces(moved) if piece]


def parts(sentence: str) -> tuple[str, str, str]:
    """Split a sentence of `cited_sentences` into headings and bullet, words, and what follows."""
    stop = next((block.start for block in code_blocks(sentence)), len(sentence))
    opening = _OPENING.match(sentence, 0, stop)
    start = opening.end() if opening else 0
    words = sentence[start:stop].rstrip()
    return sentence[:start], words, sentence[start + len(words) :]


def with_marks(sentence: str, numbers: Iterable[int]) -> str:
    """Return a sentence with marks of these numbers before its full stop, or at its end.

    The marks of a sentence with a block of code stand before the block; a block alone has none.
    Those of a row of a table stand in its last cell.
    """
    written = "".join(f"[{number}]" for number in numbers)
    prose = sentence[: next((block.start for block in code_blocks(sentence)), len(sentence))]
    bare = prose.rstrip()
    if bare.endswith("|") and bare.lstrip().startswith("|"):  # the row of a table
        bare = bare[:-1].rstrip()
    if not written or not bare:
        return sentence
    unclosed = bare.rstrip(_CLOSING)
    before = unclosed.rstrip(f"{_ENDS}:")
    if before in {"", unclosed}:
        before = bare
    blank = "" if _SPACELESS.fullmatch(before[-1:]) else " "
    return f"{before}{blank}{written}{sentence[len(before) :]}"


def renumbered(text: str, numbers: Mapping[int, int]) -> str:
    """Return a text with its marks renumbered; marks of other numbers are dropped."""

    def mark(match: re.Match[str]) -> str:
        if not match["numbers"]:
            return match[0]
        cited = dict.fromkeys(numbers[number] for number in _cited(match) if number in numbers)
        return (match["before"] if cited else "") + "".join(f"[{number}]" for number in cited)

    return replaced(text, _MARK, mark)
