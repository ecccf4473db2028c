"""Cleaning, sentences, words, and what models put around an answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcraft.text.clean import clean, normalised, stems, terms, unfenced
from stepcraft.text.sentences import sentences

ANY = st.text(st.characters())  # lone surrogates included


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("a\r\nb\rc", "a\nb\nc"),
        ("a\x00b\x07\tc\x7f", "ab\tc"),
        ("ge\u202eheim\ufeff", "geheim"),
        ("e\u0301t\u00e9", "\u00e9t\u00e9"),
        ("\ud800x", "\ufffdx"),
        ("\u05e9\u200f\u05dc", "\u05e9\u200f\u05dc"),
        ("\x1b[1;31mError\x1b[0m: full", "Error: full"),
        ("12 Main St\x0bBoston\x85MA", "12 Main St Boston MA"),
        ("Page 1\n\x0cPage 2\x0c\n", "Page 1\nPage 2\n"),
    ],
)
def test_clean_keeps_what_can_be_read(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


def test_clean_thins_marks_beyond_any_script() -> None:
    assert len(clean("x" + "\u0316\u0301" * 500)) < 40
    assert clean("x" + "\u0316" * 30) == "x" + "\u0316" * 30


@pytest.mark.parametrize(
    "marks",
    ["\u05c2\u05b0", "\u064b\u0650", "\ufe27\ufe20", "\u093c\u094d", "\U0001e8d0\U0001e944"],
)
def test_clean_thins_the_marks_of_any_script(marks: str) -> None:
    """Their number makes normalisation quadratic: a megabyte of them would take an hour."""
    assert len(clean("x" + marks * 5_000 + "y")) < 40


@pytest.mark.parametrize(
    "text",
    [
        "\u2500" * 99,
        "\U0001f600" * 99,
        "\u0e01\u0e49" * 99,
        "\u0915\u093e" + "\u093f" * 99,
        "-" * 99,
    ],
)
def test_clean_keeps_long_runs_of_other_characters(text: str) -> None:
    assert clean(f"\u00e9{text}") == f"\u00e9{text}"


@given(ANY)
def test_clean_twice_is_clean_once(text: str) -> None:
    assert clean(clean(text)) == clean(text)
    clean(text).encode()


def test_normalised_folds_what_cannot_be_seen() -> None:
    assert normalised(" a\u00ad\u200b  b\n\tc ") == "a b c"


def test_terms_are_the_words_that_matter() -> None:
    expected = ["add", "long", "term", "memory", "store"]
    assert terms("How to add the Long-term memory_store to it") == expected
    assert terms("安装Python 3包") == ["安", "装", "python", "3", "包"]
    assert terms("उपयोगकर्ताओं को जोड़ना") == ["उपयोगकर्ताओं", "को", "जोड़ना"]


def test_stems_are_terms_without_their_endings_but_short_ones_stay() -> None:
    assert stems("bridges mending walks arcs glass") == {"bridg", "mend", "walk", "arcs", "glass"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mix it. Bake it! Ready? Yes.", ["Mix it.", "Bake it!", "Ready?", "Yes."]),
        ("Use e.g. Paris, i.e. France. Then go.", ["Use e.g. Paris, i.e. France.", "Then go."]),
        ("Is the answer no. Then stop.", ["Is the answer no.", "Then stop."]),
        ("A line that\nis broken. And\n\nMore", ["A line that is broken.", "And", "More"]),
        ("An unclosed `tick. And\nMore. End.", ["An unclosed `tick.", "And", "More.", "End."]),
        ("  \n ", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("Paris.", "Paris."),
        ("```\nParis.\n```", "Paris."),
        (
            "```markdown\n1. Run\n```bash\npip\n```\n2. Go\n```\n",
            "1. Run\n```bash\npip\n```\n2. Go",
        ),
        ("```\nRun:\n```bash\npip\n```\nGo\n```", "Run:\n```bash\npip\n```\nGo"),
        ("Sure, here is the answer:\n\nParis.", "Paris."),
        ("Here\u2019s the query:\n```\nparis capital\n```", "paris capital"),
        ("```text\nHere is the answer:\nParis.\n```", "Paris."),
        ("Here are the facts:", "Here are the facts:"),
        ("Here is a house.\n\nIt is red.", "Here is a house.\n\nIt is red."),
        ("Surely it rains:\nyes", "Surely it rains:\nyes"),
        ("Sure! I'd be happy to help. Here's the answer:\nParis.", "Paris."),
        ("Of course, I can help with v1.2!\nParis.", "Of course, I can help with v1.2!\nParis."),
        *(
            (f"{line}\nParis.", "Paris.")
            for line in (
                "Sure, based on the passages, here is the answer:",
                "Great question! Here's a detailed answer:",
                "Okay, so here is the answer:",
                "Sure! \U0001f60a Here's the answer:",
                "Of course! Let me help you with that. Here's the answer:",
                "Sure, no problem. Here is the answer:",
                "Sure! Here are the steps for Ubuntu 22.04 LTS (e.g. on a server):",
                "Here are the steps for St. Louis:",
            )
        ),
        ("Absolutely \u2014 here are the steps for v1.2:\n1. Go", "1. Go"),
        *(
            (reply, reply)
            for reply in (
                "Sure! Letters are kept for 30 days [p1]. Here is how to change it:\n\n1. Go",
                "Of course. You must be an owner. Here are the steps:\n1. Go",
                "Great Britain left in 2020; here is the timeline:\n- 2016",
                "Sure! To delete it, you must be an owner. Here is how:\n1. Go",
                "Here is the answer: it is 5. The steps are:\n1. Go",
            )
        ),
        ("```py\nx\n```\nand\n```py\ny\n```", "```py\nx\n```\nand\n```py\ny\n```"),
        ("```\nx\n``` \nand\n```\ny\n```", "```\nx\n``` \nand\n```\ny\n```"),
        ("```markdown\nA\n```\nand\n```py\nx\n```", "```markdown\nA\n```\nand\n```py\nx\n```"),
        (" kept as it is ", " kept as it is "),
    ],
)
def test_unfenced(reply: str, expected: str) -> None:
    assert unfenced(reply) == expected
