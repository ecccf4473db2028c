"""Marks like [1]: those that cite something stay, in one form; the others go without a trace."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcraft.text.citations import cited_sentences, marks, parts, with_marks, with_marks_of


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("It was built [1].", "It was built [1]."),
        ("It was built [1][2].", "It was built [1][2]."),
        ("It was built [1, 2].", "It was built [1][2]."),
        ("It was built [1; 3].", "It was built [1]."),
        ("It was built [1-2].", "It was built [1][2]."),
        ("It was built [1\u20134].", "It was built [1][2]."),
        ("It was built [Evidence 2].", "It was built [2]."),
        ("It was built [7].", "It was built."),
        ("It was built [7], and fell [2].", "It was built, and fell [2]."),
        ("It was built [0].", "It was built [0]."),
        ("The list is items[0] in code [1].", "The list is items[0] in code [1]."),
        ("It lies in [0, 1] and [0-2] [1].", "It lies in [0, 1] and [0-2] [1]."),
        ("See [the docs][9] and [`f()`][8] [1].", "See [the docs][9] and [`f()`][8] [1]."),
        ("See [Evidence 2][1] and [...][2].", "See [2][1] and [...][2]."),
        (
            "It was built[2] [7].\n\n[9]: https://example.org 'Docs'",
            "It was built[2].\n\n[9]: https://example.org 'Docs'",
        ),
        ("[9]: so it is said.", ": so it is said."),
        ("[1] says so.", "[1] says so."),
        ("[9] says so.", "says so."),
        ("See [2](https://example.org).", "See [2](https://example.org)."),
        ("Call `list[7]` [1].", "Call `list[7]` [1]."),
        ("```\nx = y[9]\n``` [9]", "```\nx = y[9]\n```"),
        ("In [1566-1567] it was built [1].", "In [1566-1567] it was built [1]."),
        ("\u6865\u5efa\u4e8e1566\u5e74[2]\u3002[5]", "\u6865\u5efa\u4e8e1566\u5e74[2]\u3002"),
        ("", ""),
    ],
)
def test_marks(text: str, kept: str) -> None:
    assert with_marks_of(text, {1, 2}) == kept


def test_the_numbers_that_are_cited() -> None:
    assert marks("One [1], two [2, 4-6] and `no[9]`.") == {1, 2, 4, 5, 6}


@given(st.text("[]123,- a`(^\n", max_size=60))
def test_only_what_exists_is_cited_in_any_text(text: str) -> None:
    kept = with_marks_of(text, {1, 2})
    assert marks(kept) <= {1, 2}
    assert with_marks_of(kept, {1, 2}) == kept


@pytest.mark.parametrize(
    ("sentence", "marked"),
    [
        ("It was built. ", "It was built [1][3]. "),
        ("Call it", "Call it [1][3]"),
        (
            "Call it like this:\n\n```python\nf(x[1])\n```\n\n",
            "Call it like this [1][3]:\n\n```python\nf(x[1])\n```\n\n",
        ),
        ("```\nf()\n```\n", "```\nf()\n```\n"),
        ("| Rye | old |\n", "| Rye | old [1][3] |\n"),
        ("यह पुराना है।", "यह पुराना है [1][3]।"),
    ],
)
def test_the_marks_of_a_sentence(sentence: str, marked: str) -> None:
    assert with_marks(sentence, [1, 3]) == marked


@pytest.mark.parametrize("heading", ["**Rye**", "**1. Rye:**", "## Rye", "__Rye__:"])
def test_a_heading_belongs_to_the_sentence_below_it(heading: str) -> None:
    text = f"{heading}\n\nIt is old [1]. It is good.\n\n{heading}\n\nOats are older."
    assert cited_sentences(text, {1}) == [
        (f"{heading}\n\nIt is old.", [1]),
        (" It is good.\n\n", []),
        (f"{heading}\n\nOats are older.", []),
    ]


def test_the_line_below_the_head_of_a_table_is_no_sentence() -> None:
    assert cited_sentences("| a | b |\n|:--|--:|\n| x [1] | y |\n| z | w [2] |", {1, 2}) == [
        ("| a | b |\n", []),
        ("|:--|--:|\n| x | y |\n", [1]),
        ("| z | w |", [2]),
    ]


def test_a_mark_behind_a_danda_is_that_of_the_sentence_before_it() -> None:
    assert cited_sentences("यह पुराना है। [1] यह अच्छा है।", {1}) == [
        ("यह पुराना है।", [1]),
        (" यह अच्छा है।", []),
    ]


@pytest.mark.parametrize(
    ("before", "words", "behind"),
    [
        ("\n\n## Rye\n\n- ", "Rye is old:", "\n\n```\nf()\n```\n"),
        ("**Rye:**\n1. ", "It is old.", "\n"),
        ("|---|---|\n", "| a | b |", "\n"),
        ("", "**Rye** is old.", " "),
        ("", "", "```\nf()\n```\n"),
    ],
)
def test_what_stands_around_the_words_of_a_sentence(before: str, words: str, behind: str) -> None:
    assert parts(before + words + behind) == (before, words, behind)


def test_a_mark_behind_a_block_of_code_is_that_of_the_sentence_before_it() -> None:
    text = "Call it like this:\n\n```\nf()\n``` [2]\n\nThen wait [1]."
    assert cited_sentences(text, {1, 2}) == [
        ("Call it like this:\n\n```\nf()\n```\n\n", [2]),
        ("Then wait.", [1]),
    ]
