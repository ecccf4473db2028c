"""Word-level diffs for display.

Tokens are words, runs of whitespace and single punctuation marks; Chinese and Japanese text is
compared character by character. The comparison itself is done by `diff-match-patch` (Myers'
algorithm with a deadline). It works on characters, so each distinct token is encoded as one.
"""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from diff_match_patch import diff_match_patch

from stepcraft.text.clean import CJK

_LETTER = rf"[^\s!-/:-@\[-^`{{-~\u2010-\u205e\u3000-\u303f\uff00-\uff65{CJK}]"
_TOKEN = re.compile(rf"{_LETTER}+(?:(?:['.’-]|(?<=\d),(?=\d)){_LETTER}+)*|\s+|.", re.DOTALL)

_Kind: TypeAlias = Literal["same", "removed", "added"]
_KINDS: dict[int, _Kind] = {0: "same", -1: "removed", 1: "added"}


class Piece(NamedTuple):
    """A stretch of text that is in both texts, only in the old one, or only in the new one."""

    kind: _Kind
    text: str


def word_diff(old: str, new: str, *, seconds: float = 2.0) -> list[Piece]:
    """Return the pieces that turn the old text into the new one, in reading order.

    Joining the pieces that are not "added" yields the old text, and joining those that are not
    "removed" yields the new one. No piece is empty. Text that could not be compared within the
    time limit is reported as replaced.
    """
    codes: dict[str, str] = {}
    encoded = [  # above the surrogate range
        "".join(codes.setdefault(token, chr(0xE000 + len(codes))) for token in _TOKEN.findall(text))
        for text in (old, new)
    ]
    tokens = {code: token for token, code in codes.items()}
    engine = diff_match_patch()
    engine.Diff_Timeout = seconds
    return [
        Piece(_KINDS[operation], "".join(map(tokens.__getitem__, text)))
        for operation, text in engine.diff_main(*encoded, checklines=False)
    ]


def shortened(pieces: Sequence[Piece], keep: int = 80) -> list[Piece]:
    """Return the pieces with unchanged text cut to `keep` characters on each side of a change.

    "…" replaces the rest. If nothing changed, the pieces are returned whole.
    """
    last = len(pieces) - 1
    return [
        Piece("same", _cut(text, keep if place > 0 else 0, keep if place < last else 0))
        if kind == "same" and last > 0
        else Piece(kind, text)
        for place, (kind, text) in enumerate(pieces)
    ]


def _cut(text: str, start: int, end: int) -> str:
    """Keep `start` and `end` characters of a text, cutting at a nearby space if possible."""
    if len(text) <= start + end + 20:
        return text
    head, tail = text[:start], text[len(text) - end :]
    head = re.sub(r"(?<=\s)\S{1,20}\Z", "", head)
    tail = re.sub(r"\A\S{1,20}(?=\s)", "", tail)
    return f"{head}…{tail}"
