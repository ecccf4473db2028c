"""What was changed from one text to another, word by word; Chinese and Japanese character by character."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Literal, NamedTuple

from stepcraft.text.clean import CJK

_LETTER = rf"[^\s!-/:-@\[-^`{{-~\u2010-\u205e\u3000-\u303f\uff00-\uff65{CJK}]"
_TOKEN = re.compile(rf"{_LETTER}+(?:(?:['.’-]|(?<=\d),(?=\d)){_LETTER}+)*|\s+|.", re.DOTALL)

_SMALL = 10_000
"""The product of two lengths up to which difflib, which is quadratic, is quick."""
_RUNS = (9, 3)
"""Runs of so many tokens that stand once in either text pin long texts together: five words, then two."""


class Piece(NamedTuple):
    """A stretch of either text, or of both."""

    kind: Literal["same", "removed", "added"]
    text: str


def word_diff(old: str, new: str) -> list[Piece]:
    """The changes that make the new text of the old one, with what stays the same between them.

    The pieces save the removed ones, joined, are the new text; those save the added ones are the old text.
    Where only a word or two stay the same between two changes, it is all one change: so it reads better.
    """
    pieces = _joined(_compared(_TOKEN.findall(old), _TOKEN.findall(new), _RUNS))
    return _joined(_without_slivers(pieces))


def shortened(pieces: Sequence[Piece], keep: int = 80) -> list[Piece]:
    """The pieces with so many characters of what stays the same beside a change, "…" for the others."""
    last = len(pieces) - 1
    return [
        Piece("same", _cut(text, keep if place > 0 else 0, keep if place < last else 0))
        if kind == "same" and last > 0
        else Piece(kind, text)
        for place, (kind, text) in enumerate(pieces)
    ]


def _compared(old: Sequence[str], new: Sequence[str], runs: Sequence[int]) -> Iterator[Piece]:
    start = _same_start(old, new)
    yield Piece("same", "".join(old[:start]))
    old, new = old[start:], new[start:]
    end = _same_start(old[::-1], new[::-1])
    yield from _different(old[: len(old) - end], new[: len(new) - end], runs)
    yield Piece("same", "".join(old[len(old) - end :]))


def _different(old: Sequence[str], new: Sequence[str], runs: Sequence[int]) -> Iterator[Piece]:
    """Short texts by difflib; long ones cut where they meet; where they never do, replaced as a whole."""
    if len(old) * len(new) <= _SMALL:
        for kind, start, stop, at, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            same = [Piece("same", "".join(old[start:stop]))]
            yield from same if kind == "equal" else _replaced(old[start:stop], new[at:end])
    elif runs:
        cuts = [(0, 0), *_meetings(old, new, runs[0]), (len(old), len(new))]
        for (start, at), (stop, end) in pairwise(cuts):
            yield from _compared(old[start:stop], new[at:end], runs[1:])
    else:
        yield from _replaced(old, new)


def _replaced(old: Sequence[str], new: Sequence[str]) -> list[Piece]:
    return [Piece("removed", "".join(old)), Piece("added", "".join(new))]


def _same_start(old: Sequence[str], new: Sequence[str]) -> int:
    return next(
        (place for place, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
    )


def _meetings(old: Sequence[str], new: Sequence[str], length: int) -> list[tuple[int, int]]:
    """Where runs stand that either text has once, as many as keep their order (a patience diff)."""
    before, after = _once(old, length), _once(new, length)
    places = [(place, after[run]) for run, place in before.items() if run in after]
    ends: list[int] = []
    last: list[int] = []
    back: list[int] = []
    for number, (_, place) in enumerate(places):
        at = bisect_left(ends, place)
        ends[at:], last[at:] = [place, *ends[at + 1 :]], [number, *last[at + 1 :]]
        back.append(last[at - 1] if at else -1)
    chain = last[-1] if last else -1
    kept: list[tuple[int, int]] = []
    while chain >= 0:
        kept.append(places[chain])
        chain = back[chain]
    return kept[::-1]


def _once(tokens: Sequence[str], length: int) -> dict[tuple[str, ...], int]:
    """The runs that stand once, in order, with their places."""
    places: dict[tuple[str, ...], int] = {}
    for place in range(len(tokens) - length + 1):
        run = tuple(tokens[place : place + length])
        places[run] = -1 if run in places else place
    return {run: place for run, place in places.items() if place >= 0}


def _joined(pieces: Iterable[Piece]) -> list[Piece]:
    """Neighbours of one kind as one piece, within a change the removed before the added; none is empty."""
    joined: list[Piece] = []
    removed = added = ""
    for kind, text in pieces:
        if kind == "removed":
            removed += text
        elif kind == "added":
            added += text
        elif text:
            joined += _filled(removed, added)
            same = joined.pop().text if joined and joined[-1].kind == "same" else ""
            joined.append(Piece("same", same + text))
            removed = added = ""
    return [*joined, *_filled(removed, added)]


def _filled(removed: str, added: str) -> list[Piece]:
    return [piece for piece in (Piece("removed", removed), Piece("added", added)) if piece.text]


def _without_slivers(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """A word or two that stay the same between two changes, as part of them."""
    for place, (kind, text) in enumerate(pieces):
        if kind == "same" and 0 < place < len(pieces) - 1 and _is_sliver(text):
            yield from (Piece("removed", text), Piece("added", text))
        else:
            yield Piece(kind, text)


def _is_sliver(text: str) -> bool:
    return (
        "\n" not in text
        and len(text) <= 40
        and sum(not token.isspace() for token in _TOKEN.findall(text)) <= 2
    )


def _cut(text: str, start: int, end: int) -> str:
    """So many characters of its start and of its end, up to a blank where one is near."""
    if len(text) <= start + end + 20:
        return text
    head, tail = text[:start], text[len(text) - end :]
    head = re.sub(r"(?<=\s)\S{1,20}\Z", "", head)
    tail = re.sub(r"\A\S{1,20}(?=\s)", "", tail)
    return f"{head}…{tail}"
