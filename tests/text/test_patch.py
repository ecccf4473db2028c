"""Patches of a list of steps, as models write them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcraft.errors import UnreadableReply
from stepcraft.text.patch import Change, Patch, read_paragraphs, read_patch

STEPS = ["Mix.", "Knead.", "Let it rise.", "Bake."]
WORD = st.text(st.sampled_from("bdgklmprtuw\u00e4\u0436\u5b89"), min_size=2, max_size=6)
SENTENCE = st.lists(WORD, min_size=1, max_size=5).map(" ".join)


def patched(reply: str, steps: list[str] = STEPS) -> list[str]:
    patch = read_patch(reply, steps)
    return patch.apply(steps) if isinstance(patch, Patch) else patch


@pytest.mark.parametrize(
    "line",
    [
        "3: Wait.", "3:  Wait.", "- 3: Wait.", "* 3: Wait.", "**3:** Wait.", "**3**: Wait.", "`3:` Wait.", "`3`: Wait.",
        "Step 3: Wait.", "**Step 3:** Wait.", "step 3: Wait.", "- **Step 3:** Wait.", "3. Wait.", "Step 3. Wait.",
        "3) Wait.", "3\uff1aWait.", "\u7b2c3\u6b65\uff1aWait.", "3:\nWait.", "3:\n   Wait.", "3: `Wait.`".replace("`", ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "Here are the changes:\n\n{}",
        "```\n{}\n```",
        "{}\n\nLet me know if you need more.",
        "{}\n4: Bake.",
    ],
)
def test_a_replaced_step(line: str, around: str) -> None:
    assert patched(around.format(line)) == ["Mix.", "Knead.", "Wait.", "Bake."]


@pytest.mark.parametrize(
    "line", ["2+: Rest.", "2+ Rest.", "2 +: Rest.", "**2+:** Rest.", "- 2+: Rest.", "Step 2+: Rest."]
)
def test_an_added_step(line: str) -> None:
    assert patched(line) == ["Mix.", "Knead.", "Rest.", "Let it rise.", "Bake."]


@pytest.mark.parametrize(
    "line",
    ["3-", "3 -", "- 3-", "**3-**", "Step 3-", "3\u2013", "3- (step 2 does this already)", "3-: it is doubled", "3- It is\nnot needed."],
)  # fmt: skip
def test_a_removed_step(line: str) -> None:
    assert patched(line) == ["Mix.", "Knead.", "Bake."]


@pytest.mark.parametrize(
    "line", ["3>: Wait.", "3 >: Wait.", "**3>:** Wait.", "`3>`: Wait.", "Step 3>: Wait.", "3>:\n   Wait."]
)
def test_an_extended_step(line: str) -> None:
    assert patched(line) == ["Mix.", "Knead.", "Let it rise. Wait.", "Bake."]


def test_a_step_with_code_is_extended_behind_it() -> None:
    steps = ["Run it.\n```sh\nmake\n```", "Look."]
    reply = "1>: It takes a minute.\n2>: Then clean:\n```sh\nmake clean\n```\n1>: ```sh\nmake test\n```"
    assert patched(reply, steps) == [
        "Run it.\n```sh\nmake\n```\nIt takes a minute.\n```sh\nmake test\n```",
        "Look. Then clean:\n```sh\nmake clean\n```",
    ]


def test_a_step_that_is_replaced_and_extended_is_both_and_a_removed_one_neither() -> None:
    assert patched("3: Wait.\n3>: And wait.")[2] == "Wait. And wait."
    patch = read_patch("3-\n3>: Wait.", STEPS)
    assert isinstance(patch, Patch)
    assert patch.problems == ("step 3 is changed twice.",)
    assert patch.record(STEPS) == [{"step": 3, "before": "Let it rise.", "after": ""}]


@pytest.mark.parametrize(
    ("reply", "after"),
    [
        ("3~: rise\n=> rest", "Let it rest."),
        ("3~: rise => rest", "Let it rest."),
        ("**3~:** `rise`\n   => `rest`", "Let it rest."),
        ("3~:\n   it   rise\n   =>\n   it rest", "Let it rest."),
        ("3~: .\n=> , covered.", "Let it rise, covered."),
        ("3~:  it rise\n=>", "Let ."),
        ("3~: rise\n=> rest\n3>: Wait.\n3~: Wait\n=> Look", "Let it rest. Look."),
        ("3: Wait long.\n3~: long\n=> for an hour", "Wait for an hour."),
    ],
)
def test_other_words_in_a_step(reply: str, after: str) -> None:
    assert patched(reply) == ["Mix.", "Knead.", after, "Bake."]


def test_other_words_in_the_code_of_a_step() -> None:
    steps = ["Run it.\n```python\ndef f(x):\n    return x\n\nf(1)\n```"]
    reply = "1~: return x\n\nf(1)\n=> return 2 * x\n\nf(2)"
    assert patched(reply, steps) == ["Run it.\n```python\ndef f(x):\n    return 2 * x\n\nf(2)\n```"]
    reply = "1~: ```python\nf(1)\n```\n=> ```python\nf(2)\n```"
    assert patched(reply, steps) == ["Run it.\n```python\ndef f(x):\n    return x\n\nf(2)\n```"]


@pytest.mark.parametrize("margin", ["", "      "])
def test_code_keeps_its_indentation_whatever_margin_a_reply_writes_it_with(margin: str) -> None:
    steps = ["Run it.\n```python\ndef f(x):\n    return x\n```"]
    reply = f"1~: {margin}    return x\n=> {margin}    y = 2 * x\n{margin}    return y"
    assert patched(reply, steps) == ["Run it.\n```python\ndef f(x):\n    y = 2 * x\n    return y\n```"]


@pytest.mark.parametrize("words", ["mix => Wait", "t => T", "Let it rise.\n=>", "Wait."])
def test_words_that_do_not_stand_once_in_a_step(words: str) -> None:
    patch = read_patch(f"3~: {words}", STEPS)
    assert isinstance(patch, Patch)
    assert patch.problems == ('the words before "=>" do not stand exactly once in step 3.',)
    assert patch.apply(STEPS) == STEPS


def test_several_changes_in_any_order() -> None:
    reply = "4-\n1+: Sieve.\n1+: Weigh.\n0+: Wash your hands.\n2: Knead well."
    assert patched(reply) == ["Wash your hands.", "Mix.", "Sieve.", "Weigh.", "Knead well.", "Let it rise."]


def test_an_indented_patch() -> None:
    assert patched("   3: Wait.\n   4-") == ["Mix.", "Knead.", "Wait."]


def test_code_and_inner_lists_belong_to_their_step() -> None:
    reply = "3: Write this:\n   ```python\n   x = {\n       4: 1,\n   }\n   ```\n3+: Do:\n1. a\n2. b\n4. c\n4: Bake at 180 \u00b0C."
    assert patched(reply) == [
        "Mix.",
        "Knead.",
        "Write this:\n```python\nx = {\n    4: 1,\n}\n```",
        "Do:\n1. a\n2. b\n4. c",
        "Bake at 180 \u00b0C.",
    ]


def test_a_bold_title_stays() -> None:
    assert patched("**3: Wait** an hour.")[2] == "**Wait** an hour."
    assert patched("3: **Wait** an hour.")[2] == "**Wait** an hour."


@pytest.mark.parametrize(
    "reply", ["3. Wait.\n4. Bake long.", "1. Mix.\n4. Bake long.", "2: Knead.\n4. Bake long."]
)
def test_a_full_stop_names_a_step_where_the_numbers_are_no_list(reply: str) -> None:
    assert len(patched(reply)) == 4
    assert patched(reply)[3] == "Bake long."


@pytest.mark.parametrize(
    "reply",
    [
        "1. A.\n2. B.\n3. C.\n4. D.",
        "Here is the list:\n\n1. A.\n2. B.\n3. C.\n4. D.",
        "1) A.\n2) B.\n3) C.\n4) D.",
        "1: A.\n2: B.\n3: C.\n4: D.",
        "Step 1: A.\nStep 2: B.\nStep 3: C.\nStep 4: D.",
    ],
)
def test_a_whole_list_is_taken_as_one(reply: str) -> None:
    assert patched(reply) == ["A.", "B.", "C.", "D."]
    assert patched(reply, STEPS[:3]) == ["A.", "B.", "C.", "D."]


@pytest.mark.parametrize(
    "reply",
    [
        "1. (unchanged)\n2. Unchanged\n3. Wait.\n4. (no change)\n5. Eat.",
        "1: No change.\n2: unchanged\n3: Wait.\n4: NO CHANGE\n5: Eat.",
    ],
)
def test_a_list_that_says_which_steps_are_unchanged(reply: str) -> None:
    assert patched(reply) == ["Mix.", "Knead.", "Wait.", "Bake.", "Eat."]


def test_a_list_of_nothing_is_none() -> None:
    patch = read_patch("1:\n2:\n3:\n4:\n5:", STEPS)
    assert isinstance(patch, Patch)
    assert (patch.changes, len(patch.problems)) == ((), 5)


@pytest.mark.parametrize("reply", ["1. Mix well.", "1. Mix well.\n2. Knead well.", "1. A.\n1. B."])
def test_what_may_be_a_list_or_a_patch_is_not_guessed(reply: str) -> None:
    with pytest.raises(UnreadableReply, match="fewer than the 4 steps"):
        patched(reply)


@pytest.mark.parametrize(
    "reply",
    ["NO CHANGE", "No change.", "**NO CHANGE**", "no changes needed", "NO CHANGE\nAll is right.", "3: NO CHANGE", "2: unchanged"],
)  # fmt: skip
def test_nothing_changes(reply: str) -> None:
    assert patched(reply) == STEPS


@pytest.mark.parametrize(
    "reply", ["I would bake it longer.", "- Bake it longer.", "", "3-4 minutes are enough."]
)
def test_a_reply_of_neither_is_unreadable(reply: str) -> None:
    with pytest.raises(UnreadableReply, match="neither changes"):
        patched(reply)


def test_steps_are_not_all_removed() -> None:
    with pytest.raises(UnreadableReply, match="removes every step"):
        patched("1-\n2-\n3-\n4-")
    assert patched("1-\n2-\n3-\n4-\n4+: Buy it.") == ["Buy it."]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("9: Eat.", "step 9 is not there: the steps are 1 to 4."),
        ("9-", "step 9 is not there: the steps are 1 to 4."),
        ("5+: Eat.", "step 5 is not there: the steps are 1 to 4."),
        ("0: Eat.", "step 0 is not there: the steps are 1 to 4."),
        ("2:", "the change of step 2 has no text."),
        ("2: [[ ]]", "the change of step 2 has no text."),
        ("4: Cool.", "step 4 is changed twice."),
        ("4-", "step 4 is changed twice."),
    ],
)
def test_only_the_line_that_cannot_be_applied_is_left_out(line: str, problem: str) -> None:
    patch = read_patch(f"4: Bake long.\n{line}", STEPS)
    assert isinstance(patch, Patch)
    assert patch.problems == (problem,)
    assert patch.apply(STEPS) == [*STEPS[:3], "Bake long."]


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("Repeat step 2.", "Repeat step 3."),
        ("Repeat Steps 2 and 3.", "Repeat Steps 3 and 5."),
        ("See steps 1-3 and step 4.", "See steps 1-5 and step 6."),
        ("See steps 1, 2, and 3.", "See steps 1, 3, and 5."),
        ("See steps 2\u20134, then wait 3 hours.", "See steps 3\u20136, then wait 3 hours."),
        ("See step 9 and footstep 2.", "See step 9 and footstep 2."),
        ("In step 2 and 3 minutes later", "In step 3 and 3 minutes later"),
        ("A step 2.5 m wide, `step 2`", "A step 2.5 m wide, `step 2`"),
    ],
)
def test_references_follow(text: str, after: str) -> None:
    assert patched("1+: Weigh.\n2+: Rest.", ["Mix.", "Knead.", "Let it rise.", text])[-1] == after


def test_references_in_new_texts_follow() -> None:
    assert patched("1-\n4: Bake what step 3 gave.\n4+: Repeat step 4.")[2:] == [
        "Bake what step 2 gave.",
        "Repeat step 3.",
    ]


def test_a_reference_to_a_removed_step_names_the_one_before() -> None:
    assert patched("2-\n4: Bake after step 2.")[-1] == "Bake after step 1."
    assert patched("1-\n4: Bake after step 1.")[-1] == "Bake after step 1."


def test_a_reference_follows_a_step_that_moves() -> None:
    steps = ["Mix.", "Knead.", "Let it rise.\n```\nwait\n```", "Bake after step 2 and step 3."]
    assert patched("2-\n3+: Knead.", steps)[-1] == "Bake after step 3 and step 2."
    assert patched("3-\n0+: Let it rise.", steps)[-1] == "Bake after step 3 and step 1."


@st.composite
def patches(draw: st.DrawFn) -> tuple[list[str], list[Change], str]:
    """Steps, the changes of some of them, and a reply that writes these changes."""
    steps = [
        f"{number} {text}" for number, text in enumerate(draw(st.lists(SENTENCE, min_size=1, max_size=8)))
    ]
    changes, lines = [], []
    for number in range(len(steps) + 1):
        kind = draw(st.sampled_from(["keep", "replace", "extend", "put", "remove"])) if number else "keep"
        text, before = f"new {draw(SENTENCE)}", steps[number - 1]
        if kind == "replace":
            changes.append(Change("replace", number, text))
            lines.append(f"{number}: {text}")
        elif kind == "extend":
            changes.append(Change("replace", number, f"{before} {text}"))
            lines.append(f"{number}>: {text}")
        elif kind == "put":
            start, stop = sorted(draw(st.tuples(*[st.integers(0, len(before))] * 2)))
            passage = " ".join(before[start:stop].split())
            if passage and before.count(passage) == 1:
                changes.append(Change("replace", number, before.replace(passage, text).strip()))
                lines.append(f"{number}~: {passage}\n=> {text}")
        elif kind == "remove":
            changes.append(Change("remove", number, ""))
            lines.append(f"{number}-")
        for added in draw(st.lists(SENTENCE, max_size=2)):
            changes.append(Change("add", number, f"added behind {number} {added}"))
            lines.append(f"{number}+: added behind {number} {added}")
    return steps, changes, "\n".join(lines)


@given(patches())
def test_no_step_is_lost_moved_or_doubled_that_the_patch_does_not_name(
    drawn: tuple[list[str], list[Change], str],
) -> None:
    steps, changes, _ = drawn
    after = Patch(tuple(changes)).apply(steps)
    named = {change.step for change in changes if change.kind != "add"}
    kept = [step for number, step in enumerate(steps, 1) if number not in named]
    assert [step for step in after if step in steps] == kept
    assert [step for step in after if step not in steps] == [change.text for change in changes if change.text]
    for change in changes:
        if change.kind == "add" and change.step and change.step not in named:
            assert after.index(change.text) > after.index(steps[change.step - 1])


@given(patches())
def test_what_is_written_is_read(drawn: tuple[list[str], list[Change], str]) -> None:
    steps, changes, reply = drawn
    kinds = {change.kind for change in changes}
    every = [change.step for change in changes] == [*range(1, len(steps) + 1)]
    if changes and not (every and kinds == {"remove"}):
        assert read_patch(reply, steps) == Patch(tuple(changes))


@given(patches(), st.data())
def test_numbers_follow_their_steps(drawn: tuple[list[str], list[Change], str], data: st.DataObject) -> None:
    steps, changes, _ = drawn
    named = {change.step for change in changes if change.kind != "add"}
    unnamed = [number for number in range(1, len(steps) + 1) if number not in named]
    if unnamed:
        number, holder = (data.draw(st.sampled_from(unnamed)) for _ in range(2))
        steps[holder - 1] += f" as in step {number}"
        after = Patch(tuple(changes)).apply(steps)
        referring = next(step for step in after if " as in step " in step)
        at = int(re.findall(r"\d+$", referring)[0])
        assert after[at - 1].removesuffix(f" as in step {at}") == steps[number - 1].removesuffix(
            f" as in step {number}"
        )


PARAGRAPHS = st.lists(SENTENCE, min_size=1, max_size=5)


@given(steps=PARAGRAPHS, data=st.data())
def test_paragraphs_that_are_not_named_stay(steps: list[str], data: st.DataObject) -> None:
    number = data.draw(st.integers(1, len(steps)))
    text = data.draw(SENTENCE)
    kind = data.draw(st.sampled_from(["", "+", "-"]) if len(steps) > 1 else st.sampled_from(["", "+"]))
    patch = read_paragraphs(f"[{number}{kind}] {text if kind != '-' else ''}", len(steps))
    assert patch
    before, own, behind = steps[: number - 1], steps[number - 1], steps[number:]
    expected = {"": [text], "+": [own, text], "-": []}[kind]
    assert patch.apply(steps) == [*before, *expected, *behind]


def test_numbers_in_the_words_of_a_paragraph_stay() -> None:
    patch = read_paragraphs("[1-]", 2)
    assert patch
    assert patch.apply(["Gone.", "See step 2."]) == ["See step 2."]


@pytest.mark.parametrize(
    "reply",
    ["The whole text.", "NO CHANGE", "[2](https://x.org) is a link.", "[note] X.", "[1999] X.", "1: X."],
)
def test_what_names_no_paragraph_is_no_patch(reply: str) -> None:
    assert read_paragraphs(reply, 3) is None


def test_a_patch_that_removes_every_paragraph() -> None:
    with pytest.raises(UnreadableReply, match="removes every paragraph"):
        read_paragraphs("[1-]\n[2-]", 2)
