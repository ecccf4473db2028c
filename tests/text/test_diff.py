"""The word diff: exact both ways, and legible."""

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcraft.text.diff import Piece, shortened, word_diff

WORDS = (
    "the",
    "bridge",
    "in",
    "1,566",
    "Mostar's",
    "桥",
    "在",
    "한국어",
    "\n\n",
    "  ",
    ".",
    "e\u0301",
    "नमस्ते",
)


def texts() -> st.SearchStrategy[str]:
    """Texts that have much in common, and any others."""
    return st.lists(st.sampled_from([*WORDS, " "]), max_size=60).map("".join) | st.text(max_size=40)


def side(pieces: list[Piece], without: str) -> str:
    return "".join(text for kind, text in pieces if kind != without)


def marked(old: str, new: str) -> str:
    marks = {"same": "{}", "removed": "[-{}-]", "added": "{{+{}+}}"}
    return "".join(marks[kind].format(text) for kind, text in word_diff(old, new))


@given(texts(), texts())
def test_both_texts_can_be_read_off(old: str, new: str) -> None:
    pieces = word_diff(old, new)
    assert (side(pieces, "added"), side(pieces, "removed")) == (old, new)
    assert word_diff(old, old) == ([Piece("same", old)] if old else [])
    assert all(text for _, text in pieces)
    kinds = [kind for kind, _ in pieces]
    assert not [pair for pair in pairwise(kinds) if pair[0] == pair[1]]
    assert ("added", "removed") not in pairwise(kinds)


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        ("It was built in 1566.", "It was built in 1567.", "It was built in [-1566-]{+1567+}."),
        ("about 1,566 arches", "about 1,567 arches", "about [-1,566-]{+1,567+} arches"),
        ("It doesn't stand.", "It didn't stand.", "It [-doesn't-]{+didn't+} stand."),
        ("Its builder.", "Its famous builder.", "Its {+famous +}builder."),
        ("He built it in 1566, so.", "He made it in 2004, so.", "He [-built-]{+made+} it in [-1566-]{+2004+}, so."),
        ("One was so.\n\nTwo is so.", "One is so.\n\nTwo was so.", "One [-was-]{+is+} so.\n\nTwo [-is-]{+was+} so."),
        ("One.\n\nTwo.", "Eins.\n\nZwei.", "[-One-]{+Eins+}.\n\n[-Two-]{+Zwei+}."),
        ("他在北京学习中文。", "他在上海学习中文。", "他在[-北京-]{+上海+}学习中文。"),
        ("नमस्ते दुनिया", "नमस्ते दोस्त", "नमस्ते [-दुनिया-]{+दोस्त+}"),
    ],
)  # fmt: skip
def test_how_it_reads(old: str, new: str, shown: str) -> None:
    assert marked(old, new) == shown


def long_text(seed: int, words: int) -> list[str]:
    """Words as frequent as those of a language, in sentences and paragraphs."""
    chance = random.Random(seed)
    known = ["".join(chance.choices("abcdefghij", k=chance.randint(2, 9))) for _ in range(5_000)]
    drawn = chance.choices(known, [1 / (rank + 1) for rank in range(5_000)], k=words)
    ends = {0: ".\n\n", 20: ". ", 40: ". "}
    return [word + ends.get(place % 60, " ") for place, word in enumerate(drawn, 1)]


def test_every_change_in_a_long_text_is_found() -> None:
    words = long_text(1, 20_000)
    changed = [f"NEW{place} " if place % 50 == 7 else word for place, word in enumerate(words)]
    pieces = word_diff("".join(words), "".join(changed), seconds=60)
    same = sum(len(text) for kind, text in pieces if kind == "same")
    assert sum(kind == "added" for kind, _ in pieces) == 400
    assert same / len("".join(words)) > 0.95


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("".join(long_text(1, 20_000)), "".join(long_text(2, 20_000))),
        ("a b " * 10_000, "a a b " * 7_000),
        ("的一是了" * 5_000, "是的了一" * 5_000),
    ],
    ids=["another text", "one line again and again", "Chinese"],
)
def test_long_texts_are_compared_as_far_as_time_allows(old: str, new: str) -> None:
    """What is quadratic would take minutes, which the test's time-out ends."""
    pieces = word_diff(old, new)
    assert (side(pieces, "added"), side(pieces, "removed")) == (old, new)


@pytest.mark.parametrize(
    ("text", "start", "middle", "end"),
    [
        (
            " ".join(f"word{number}" for number in range(100)),
            "… word98 word99",
            " word0 word1 word2 … word98 word99 ",
            "word0 word1 word2 …",
        ),
        ("桥" * 500, "…" + "桥" * 20, " … ", "桥" * 20 + "…"),
        ("桥" * 41, "…" + "桥" * 20, f" {'桥' * 41} ", "桥" * 20 + "…"),
        ("桥" * 40, "桥" * 40, f" {'桥' * 40} ", "桥" * 40),
    ],
)
def test_long_stretches_are_shortened_beside_the_changes_only(
    text: str, start: str, middle: str, end: str
) -> None:
    removed, added = Piece("removed", "x" * 500), Piece("added", "y")

    def around(*stretches: str) -> list[Piece]:
        first, between, last = (Piece("same", stretch) for stretch in stretches)
        return [first, removed, between, added, last]

    assert shortened(around(text, f" {text} ", text), 20) == around(start, middle, end)


def test_a_text_without_changes_is_not_shortened() -> None:
    assert shortened([Piece("same", "word " * 500)]) == [Piece("same", "word " * 500)]
    assert shortened([]) == []
