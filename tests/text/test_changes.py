"""Changes of numbered parts, as models write them."""

import pytest

from stepcraft.text.changes import apply_changes, misplaced, read_changes

PARTS = ["The bridge was built in 1837.\n\n", "It has four arches.\n\n", "```\nsteps[0]\n```"]
BUILT = "The bridge was built in 1873.\n\n"


@pytest.mark.parametrize(
    ("reply", "first", "second", "third"),
    [
        ("PART 1\nOLD: in 1837\nNEW: in 1873", BUILT, *PARTS[1:]),
        ("**PART 1**\n**OLD:** in 1837\n**NEW:** in 1873", BUILT, *PARTS[1:]),
        ("Some changes.\n\npart 1:\nOLD: in\n1837\nNEW: in 1873\n", BUILT, *PARTS[1:]),
        ("PART 2\nOLD: in 1837\nNEW: in 1873", BUILT, *PARTS[1:]),
        ("PART 2\nOLD: It has four arches.\nNEW:", PARTS[0], "\n\n", PARTS[2]),
        # Several changes of a part follow each other.
        ("PART 3\nOLD: steps\nNEW: x\nOLD: x[0]\nNEW: y[1]", *PARTS[:2], "```\ny[1]\n```"),
        # Additions stand at the end of a part before its blank lines, an item on its own line.
        ("PART 2\nADD: They are old.", PARTS[0], "It has four arches. They are old.\n\n", PARTS[2]),
        ("PART 2\nADD: - Old.", PARTS[0], "It has four arches.\n- Old.\n\n", PARTS[2]),
        ("PART 2\nADD: 3. Old.", PARTS[0], "It has four arches.\n3. Old.\n\n", PARTS[2]),
        ("PART 2\nADD: ```\nx\n```", PARTS[0], "It has four arches.\n\n```\nx\n```\n\n", PARTS[2]),
        ("PART 2\nADD: four arches.", *PARTS),
        # What is no change is passed over.
        ("NO CHANGE", *PARTS),
        ("PART 1\nThe year is wrong.", *PARTS),
        ("PART x\nADD: y\nPART 1", *PARTS),
    ],
)
def test_words_are_replaced_and_added(reply: str, first: str, second: str, third: str) -> None:
    assert apply_changes(PARTS, read_changes(reply)) == ([first, second, third], [])


def test_a_part_may_follow_a_part() -> None:
    changes = read_changes("PART 2\nADD: They are of granite.\nPART 2\nAFTER: Haldruvin built it.")
    parts, _ = apply_changes(PARTS, changes, "\n\n")
    assert parts[1:3] == ["It has four arches. They are of granite.\n\n", "Haldruvin built it.\n\n"]
    assert apply_changes(PARTS, changes)[0][1:3] == [
        "It has four arches. They are of granite.",
        "Haldruvin built it.",
    ]


def test_old_words_are_sought_in_the_part_that_is_named_then_where_they_stand_alone() -> None:
    parts = ["It has four arches.", "It has two arches.", "It is old."]
    for number, changed in ((1, 0), (2, 1)):
        changes = read_changes(f"PART {number}\nOLD: arches\nNEW: spans")
        assert "spans" in apply_changes(parts, changes)[0][changed]
    ambiguous = read_changes("PART 3\nOLD: arches\nNEW: spans")
    assert misplaced(ambiguous, parts) == ambiguous


def test_words_that_stand_nowhere_and_parts_that_are_not_there_are_misplaced() -> None:
    changes = read_changes(
        "PART 1\nOLD: in 1999\nNEW: x\nPART 9\nADD: y\nPART 1\nOLD: 1837\nNEW: z"
    )
    assert [change["part"] for change in misplaced(changes, PARTS)] == [1, 9]
    _, lost = apply_changes(PARTS, read_changes("PART 1\nOLD: 1837\nNEW: x\nOLD: in 1837\nNEW: y"))
    assert [change["old"] for change in lost] == ["in 1837"]
