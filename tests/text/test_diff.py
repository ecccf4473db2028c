"""The word diff: exact both ways, legible, and quick."""

import random
import time
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


@given(texts(), texts())
def test_pieces_are_never_empty_nor_of_one_kind_in_a_row(old: str, new: str) -> None:
    pieces = word_diff(old, new)
    kinds = [kind for kind, _ in pieces]
    assert all(text for _, text in pieces)
    assert not {
        ("same", "same"),
        ("removed", "removed"),
        ("added", "added"),
        ("added", "removed"),
    } & set(pairwise(kinds))


@given(texts())
def test_a_text_is_the_same_as_itself(text: str) -> None:
    assert word_diff(text, text) == ([Piece("same", text)] if text else [])


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        pytest.param(
            "It was built in 1566.",
            "It was built in 1567.",
            "It was built in [-1566-]{+1567+}.",
            id="a word",
        ),
        pytest.param(
            "about 1,566 arches",
            "about 1,567 arches",
            "about [-1,566-]{+1,567+} arches",
            id="a number",
        ),
        pytest.param(
            "It doesn't stand.",
            "It didn't stand.",
            "It [-doesn't-]{+didn't+} stand.",
            id="an apostrophe",
        ),
        pytest.param("Its builder.", "Its famous builder.", "Its {+famous +}builder.", id="added"),
        pytest.param(
            "Its famous builder.", "Its builder.", "Its [-famous -]builder.", id="removed"
        ),
        pytest.param(
            "It was built in 1566, they say.",
            "It was rebuilt in 2004, they say.",
            "It was [-built in 1566-]{+rebuilt in 2004+}, they say.",
            id="small changes beside each other are one",
        ),
        pytest.param(
            "One was so.\n\nTwo is so.",
            "One is so.\n\nTwo was so.",
            "One [-was-]{+is+} so.\n\nTwo [-is-]{+was+} so.",
            id="two changes",
        ),
        pytest.param(
            "One.\n\nTwo.",
            "Eins.\n\nZwei.",
            "[-One-]{+Eins+}.\n\n[-Two-]{+Zwei+}.",
            id="paragraphs stay",
        ),
        pytest.param(
            "老桥建于1566年。", "老桥建于1567年。", "老桥建于[-1566-]{+1567+}年。", id="Chinese"
        ),
        pytest.param(
            "他在北京学习中文。",
            "他在上海学习中文。",
            "他在[-北京-]{+上海+}学习中文。",
            id="characters",
        ),
        pytest.param(
            "नमस्ते दुनिया", "नमस्ते दोस्त", "नमस्ते [-दुनिया-]{+दोस्त+}", id="marks stay on their letters"
        ),
    ],
)
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
    pieces = word_diff("".join(words), "".join(changed))
    same = sum(len(text) for kind, text in pieces if kind == "same")
    assert sum(kind == "added" for kind, _ in pieces) == 400
    assert same / len("".join(words)) > 0.95


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(
            "".join(long_text(1, 20_000)), "".join(long_text(2, 20_000)), id="another text"
        ),
        pytest.param("a b " * 10_000, "a a b " * 7_000, id="one line again and again"),
        pytest.param("word " * 20_000, "word\n" * 20_000, id="other blanks"),
        pytest.param("的一是了" * 5_000, "是的了一" * 5_000, id="Chinese"),
        pytest.param(" " * 100_000, "." * 100_000, id="no words"),
    ],
)
def test_long_texts_take_no_long_time(old: str, new: str) -> None:
    began = time.process_time()
    pieces = word_diff(old, new)
    assert time.process_time() - began < 3
    assert (side(pieces, "added"), side(pieces, "removed")) == (old, new)


def test_long_stretches_are_shortened_beside_the_changes_only() -> None:
    stretch = " ".join(f"word{number}" for number in range(100))
    removed, added = Piece("removed", "x" * 500), Piece("added", "y")
    start, middle, end = (
        Piece("same", stretch),
        Piece("same", f" {stretch} "),
        Piece("same", stretch),
    )
    assert shortened([start, removed, middle, added, end], 20) == [
        Piece("same", "… word98 word99"),
        removed,
        Piece("same", " word0 word1 word2 … word98 word99 "),
        added,
        Piece("same", "word0 word1 word2 …"),
    ]


def test_what_is_short_or_without_blanks_is_shortened_too() -> None:
    added = Piece("added", "y")
    assert shortened([Piece("same", "short"), added], 20) == [Piece("same", "short"), added]
    assert shortened([Piece("same", "桥" * 500), added], 20) == [
        Piece("same", "…" + "桥" * 20),
        added,
    ]


def test_a_text_without_changes_is_not_shortened() -> None:
    assert shortened([Piece("same", "word " * 500)]) == [Piece("same", "word " * 500)]
    assert shortened([]) == []
