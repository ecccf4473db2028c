"""Changes of numbered parts, as models write them."""

import pytest

from stepcraft.text.changes import apply_changes, misplaced, read_changes

PARTS = ["The bridge was built in 1837.\n\n", "It has four arches.\n\n", "```\nsteps[0]\n```"]


def applied(reply: str) -> list[str]:
    parts, lost = apply_changes(PARTS, read_changes(reply))
    assert lost == []
    return parts


@pytest.mark.parametrize(
    "reply",
    [
        "PART 1\nOLD: in 1837\nNEW: in 1873",
        "**PART 1**\n**OLD:** in 1837\n**NEW:** in 1873",
        "Here are the changes.\n\nPART 1:\nOLD: in 1837\nNEW: in 1873\n",
        "part 1\nOLD: in\n1837\nNEW: in 1873",
        "PART 2\nOLD: in 1837\nNEW: in 1873",
    ],
)
def test_words_are_replaced_however_the_block_is_set(reply: str) -> None:
    assert applied(reply)[0] == "The bridge was built in 1873.\n\n"


def test_additions_stand_at_the_end_of_a_part_before_its_blank_lines() -> None:
    assert (
        applied("PART 2\nADD: They are of granite.")[1]
        == "It has four arches. They are of granite.\n\n"
    )
    assert applied("PART 2\nADD: ```\ncode\n```")[1] == "It has four arches.\n\n```\ncode\n```\n\n"
    assert applied("PART 2\nADD: four arches.")[1] == PARTS[1]


def test_a_part_may_follow_a_part_or_go() -> None:
    assert applied("PART 1\nAFTER: Haldruvin built it.")[:2] == [
        PARTS[0].strip(),
        "Haldruvin built it.",
    ]
    parts, _ = apply_changes(PARTS, read_changes("PART 1\nAFTER: Haldruvin built it."), "\n\n")
    assert "".join(parts).startswith(
        "The bridge was built in 1837.\n\nHaldruvin built it.\n\nIt has"
    )
    assert applied("PART 2\nOLD: It has four arches.\nNEW:")[1].strip() == ""


def test_an_addition_does_not_change_what_separates_new_parts() -> None:
    changes = read_changes("PART 2\nADD: They are of granite.\nPART 2\nAFTER: Haldruvin built it.")
    parts, _ = apply_changes(PARTS, changes, "\n\n")
    assert parts[1:3] == ["It has four arches. They are of granite.\n\n", "Haldruvin built it.\n\n"]


def test_an_item_that_is_added_stands_on_a_line_of_its_own() -> None:
    changes = read_changes("PART 1\nADD: - Four arches.\nPART 2\nADD: 3. Four arches.")
    parts, _ = apply_changes(["- One pier.\n\n", "2. One pier."], changes)
    assert parts == ["- One pier.\n- Four arches.\n\n", "2. One pier.\n3. Four arches."]


def test_several_changes_of_a_part_follow_each_other() -> None:
    reply = "PART 1\nOLD: bridge\nNEW: old bridge\nOLD: 1837\nNEW: 1873\nPART 3\nOLD: steps[0]\nNEW: steps[1]"
    assert applied(reply) == [
        "The old bridge was built in 1873.\n\n",
        PARTS[1],
        "```\nsteps[1]\n```",
    ]


def test_old_words_are_sought_in_the_part_that_is_named_then_where_they_stand_alone() -> None:
    parts = ["It has four arches.", "It has two arches.", "It is old."]
    for number, changed in ((1, 0), (2, 1)):
        changes = read_changes(f"PART {number}\nOLD: arches\nNEW: spans")
        assert "spans" in apply_changes(parts, changes)[0][changed]
    elsewhere = read_changes("PART 1\nOLD: old\nNEW: new")
    assert apply_changes(parts, elsewhere)[0][2] == "It is new."
    ambiguous = read_changes("PART 3\nOLD: arches\nNEW: spans")
    assert misplaced(ambiguous, parts) == ambiguous


def test_words_that_stand_nowhere_and_parts_that_are_not_there_are_misplaced() -> None:
    changes = read_changes(
        "PART 1\nOLD: in 1999\nNEW: x\nPART 9\nADD: y\nPART 1\nOLD: 1837\nNEW: z"
    )
    assert [change["part"] for change in misplaced(changes, PARTS)] == [1, 9]
    _, lost = apply_changes(PARTS, read_changes("PART 1\nOLD: 1837\nNEW: x\nOLD: in 1837\nNEW: y"))
    assert [change["old"] for change in lost] == ["in 1837"]


@pytest.mark.parametrize(
    "reply", ["", "NO CHANGE", "PART 1", "PART 1\nThe year is wrong.", "PART x\nADD: y"]
)
def test_what_is_no_change_is_passed_over(reply: str) -> None:
    assert read_changes(reply) == []
