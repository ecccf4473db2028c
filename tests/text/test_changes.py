"""Changes of numbered parts, as models write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcraft.text.changes import Edited, apply_changes, read_changes
from tests.scripted import block

PARTS = ["The bridge was built in 1837.\n\n", "It has four arches.\n\n", "```\nsteps[0]\n```"]
BUILT = "The bridge was built in 1873.\n\n"
CODE = "```\nx\n```"


def edited(reply: str, parts: list[str], between: str = "") -> Edited:
    changes, problems, _ = read_changes(reply, parts)
    assert not problems
    return apply_changes(parts, changes, between)


@pytest.mark.parametrize(
    ("reply", "first", "second", "third"),
    [
        (block(1, "in 1837", "in 1873"), BUILT, *PARTS[1:]),
        (f"Some changes:\n{block(1, 'in  1837', 'in 1873')}\nDone.", BUILT, *PARTS[1:]),
        (block(1, "'in 1837'", "'in 1873'"), BUILT, *PARTS[1:]),
        (block(2, "in 1837", "in 1873"), BUILT, *PARTS[1:]),
        (block(2, "It has four arches."), PARTS[0], "", PARTS[2]),
        (block(2, " four"), PARTS[0], "It has arches.\n\n", PARTS[2]),
        # All places are found in the original.
        (block(3, "steps", "0") + "\n" + block(3, "0", "steps"), *PARTS[:2], "```\n0[steps]\n```"),
        # What is added stands at the end of a part, a block of Markdown on lines of its own.
        (
            block(2, new="They are old."),
            PARTS[0],
            "It has four arches. They are old.\n\n",
            PARTS[2],
        ),
        (block(2, new="- Old."), PARTS[0], "It has four arches.\n\n- Old.\n\n", PARTS[2]),
        (block(2, new=CODE), PARTS[0], f"It has four arches.\n\n{CODE}\n\n", PARTS[2]),
        (block(3, new="Run it."), *PARTS[:2], f"{PARTS[2]}\n\nRun it."),
        (block(2, new="four arches."), *PARTS),
        # Text outside of blocks is no change.
        ("NO CHANGE", *PARTS),
        ("PART 1\nThe year is wrong.", *PARTS),
    ],
)
def test_words_are_replaced_and_added(reply: str, first: str, second: str, third: str) -> None:
    result = edited(reply, PARTS)
    assert (result.parts, result.refused) == ([first, second, third], [])


def test_a_part_may_follow_a_part() -> None:
    reply = "\n".join(
        [block(2, new="They are of granite."), block(2, new="Haldruvin built it.", kind="AFTER")]
    )
    result = edited(reply, PARTS, "\n\n")
    assert result.parts[1:3] == [
        "It has four arches. They are of granite.\n\n",
        "Haldruvin built it.",
    ]
    assert result.origins == [1, 2, 0, 3]


@pytest.mark.parametrize(
    ("parts", "reply", "reason"),
    [
        (["two arches, four arches"], block(1, "arches", "spans"), "occur 2 times"),
        (["a arch", "an arch", "old"], block(3, "arch", "span"), "are not there"),
        (["It has arches."], block(1, "1999", "x"), "are not there"),
        (["It has arches."], block(1, "arch", "span"), "inside longer words"),
        (["It has arches."], block(9, new="y"), "there is no part 9"),
        ([f"{CODE}\n"], block(1, "x\n```", "y"), "fence open"),
        (["1. a\n2. b\n"], block(1, "2. b", "7. b"), "numbers of a list"),
        (["| a | b |\n|---|---|\n| c | d |\n"], block(1, "| c | d |", "| c |"), "more or fewer"),
        (["It has arches."], block(1, "It has arches."), "nothing of the text would be left"),
    ],
)
def test_a_change_that_fits_no_place_is_refused(parts: list[str], reply: str, reason: str) -> None:
    result = edited(reply, parts)
    assert result.parts == parts
    assert [reason in problem.reason for problem in result.refused] == [True]


def test_of_changes_that_overlap_the_first_is_made() -> None:
    result = edited(block(1, "1837", "1873") + "\n" + block(1, "in 1837", "later"), PARTS)
    assert result.parts == [BUILT, *PARTS[1:]]
    assert [problem.reason for problem in result.refused] == ["it overlaps with another change"]


CHANGE = block(1, "1837", "1873")


@pytest.mark.parametrize("length", range(1, CHANGE.index(">>>>>")))
def test_a_block_that_is_cut_off_changes_nothing(length: int) -> None:
    complete = block(2, "four", "five")
    changes, _, _ = read_changes(f"{complete}\n{CHANGE[:length]}", PARTS)
    assert apply_changes(PARTS, changes).parts == [PARTS[0], "It has five arches.\n\n", PARTS[2]]


MARKDOWN = st.text(st.sampled_from("ab 1.\n#-*|`$>é“界\r\t"), max_size=60)


@given(MARKDOWN, MARKDOWN)
def test_every_other_character_stays(before: str, behind: str) -> None:
    parts = [f"{before}mayor{behind}"]
    result = apply_changes(parts, read_changes(block(1, "mayor", "guild"), parts)[0])
    assert result.parts == (parts if result.refused else [f"{before}guild{behind}"])
