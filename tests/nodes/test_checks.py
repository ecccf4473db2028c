"""The last verdict on each statement, and what has become of the statement."""

from __future__ import annotations

import pytest

from stepcraft.nodes.checks import current_text, final_checks
from stepcraft.nodes.state import Check, Revision, Verdict
from stepcraft.text.citations import without_marks
from stepcraft.text.claims import claims


def check(
    part: int,
    statement: int,
    text: str,
    verdict: Verdict = "supported",
    *,
    words: str = "",
    round_: int = 1,
) -> Check:
    """Return a check of a statement in the given text of its part."""
    start, stop = claims(text)[statement - 1]
    return Check(
        round=round_,
        part=part,
        statement=statement,
        text=without_marks(text[start:stop]),
        words=words,
        verdict=verdict,
        evidence=[],
    )


def revision(part: int, before: str, after: str, round_: int = 1) -> Revision:
    return Revision(round=round_, part=part, before=before, after=after, evidence=[])


def final(checks: list[Check], *revisions: Revision) -> list[tuple[int, int, int, bool]]:
    return [
        (each["round"], each["part"], each["statement"], has_changed)
        for each, has_changed in final_checks({"checks": checks, "revisions": [*revisions]})
    ]


def test_equal_statements_in_two_parts_are_told_apart() -> None:
    texts = {1: "The limit is 10.", 2: "The limit is 10.\n"}
    checks = [check(part, 1, text, "contradicted") for part, text in texts.items()]
    first = revision(1, texts[1], "The limit is 20.")
    assert final(checks, first) == [(1, 1, 1, True), (1, 2, 1, False)]
    result = {"checks": checks, "revisions": [first, revision(2, texts[2], "The limit is 30.\n")]}
    assert [current_text(each, result) for each in checks] == [
        "The limit is 20.",
        "The limit is 30.",
    ]


@pytest.mark.parametrize(
    ("after", "changed", "now"),
    [
        ("Yes. The port is 90. Yes.", [2], "The port is 90."),
        ("No. The port is 80. Yes.", [1], "The port is 80."),
        ("Yes. The port  is 80 [p1]. Yes.", [], "The port  is 80 [p1]."),
        ("The port is 80. Yes.", [1], "The port is 80."),
        ("Yes. Yes.", [2], ""),
        ("The port is 80. Yes. Always.", [1], "The port is 80."),
        ("No. The port is 90. Yes.", [1, 2], "The port is 90."),
        ("Yes. The port is 90. It was 80. Yes.", [2], "The port is 90. It was 80."),
        ("Yes. The port is 80. Yes. And more.", [], "The port is 80."),
        ("# Title\n\nYes. The port is 80. Yes.", [], "The port is 80."),
    ],
)
def test_what_has_become_of_a_statement(after: str, changed: list[int], now: str) -> None:
    before = "Yes. The port is 80. Yes."
    checks = [check(1, number, before) for number in (1, 2, 3)]
    changes = revision(1, before, after)
    assert [number for _, _, number, is_changed in final(checks, changes) if is_changed] == changed
    assert current_text(checks[1], {"revisions": [changes]}) == now


def test_a_later_verdict_counts_only_for_its_own_statement() -> None:
    before, after = "The port is 80. It runs on Linux.", "The port is 90. It runs on Linux."
    linux = "It needs Linux to build."
    checks = [
        check(1, 1, before, "contradicted"),
        check(1, 2, before, "not found"),
        check(2, 1, linux, "not found", words="Linux"),
        check(3, 1, "Linux.", "not found"),
        check(1, 1, after, round_=2),
        check(1, 2, after, round_=2),
    ]
    rest = [(1, 2, 1, False), (1, 3, 1, False), (2, 1, 1, False)]
    changes = revision(1, before, after)
    assert final(checks, changes) == [(1, 1, 1, True), *rest, (2, 1, 2, False)]
    # Without its second verdict, the unchanged statement keeps the first.
    assert final(checks[:5], changes) == [(1, 1, 1, True), (1, 1, 2, False), *rest]


def test_a_verdict_on_a_part_counts_for_its_statements() -> None:
    before, after = "The port is 80. It runs on Linux.", "It runs on Linux. It is free."
    whole: Check = {**check(1, 1, after, round_=2), "statement": 0, "text": after}
    checks = [check(1, 1, before, "contradicted"), check(1, 2, before, "not found"), whole]
    assert final(checks, revision(1, before, after)) == [(1, 1, 1, True), (2, 1, 0, False)]


@pytest.mark.parametrize(
    ("after", "has_changed"),
    [
        ("It began in June, and Ilse led it.", False),
        ("It began in July, and Ida led it.", True),
        ("It began in Junes.", True),
    ],
)
def test_words_that_stay_in_a_changed_statement_keep_their_verdict(
    after: str, has_changed: bool
) -> None:
    before = "It began in June, and Ida led it."
    words = check(1, 1, before, "not found", words="in June")
    assert final([words], revision(1, before, after)) == [(1, 1, 1, has_changed)]


@pytest.mark.parametrize(
    ("after", "has_changed"),
    [
        ("Возведён в 1837 году [p1].", False),
        ("Построен в 1873 году [p1].", True),
    ],
)
def test_words_can_be_quoted_without_their_ending(after: str, has_changed: bool) -> None:
    before = "Построен в 1837 году [p1]."
    words = check(1, 1, before, "not found", words="1837 год")
    assert final([words], revision(1, before, after)) == [(1, 1, 1, has_changed)]


def test_a_statement_is_followed_through_all_rounds() -> None:
    texts = ["A is 1. B is 2.", "New. A is 1. B is 2.", "New. A is 3. B is 2."]
    changes = [revision(1, texts[0], texts[1]), revision(1, texts[1], texts[2], 2)]
    checks = [check(1, 1, texts[0]), check(1, 2, texts[0])]
    assert final(checks, *changes) == [(1, 1, 1, True), (1, 1, 2, False)]
