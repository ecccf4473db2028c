"""The check of a draft: which changes are made, which are refused, and what a user is told."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver

from stepcraft import RatContext, RpgContext, build_rat, build_rpg
from tests.kitchen import DRAFT, GAPS, LOOK_UP
from tests.scripted import Reply, ScriptedModel, block
from tests.shelf import THREAD, Shelf

SHELF = Shelf(passages={"limit": "The limit is 1000 a minute."})
WRONG = "1 contradicted p1\n"
LIMIT = "The limit is 10 a minute for every key."
RIGHT = "The limit is 1000 a minute for every key."


def checked(draft: str, *replies: Reply, **settings: Any) -> Any:
    """Return the result of RAT on a draft; what the check says last, it repeats."""
    script = iter([*replies, *replies[-1:] * 3])
    model = ScriptedModel(lambda _node, _prompt: next(script))
    rat = build_rat(model=model, sources=SHELF, settings=RatContext(**settings))
    return rat.invoke({"question": "What is the limit?", "draft": draft})


@pytest.mark.parametrize(
    ("draft", "changes", "answer"),
    [
        ("It has 18 limits and 8 keys.", [("8", "9")], "It has 18 limits and 9 keys."),
        ("Version 11.0, version 1.0.", [("1.0", "2.0")], "Version 11.0, version 2.0."),
        ("Set max_limit and limit.", [("limit", "cap")], "Set max_limit and cap."),
        ("\u9650\u523630\u79d2\u548c130\u79d2\u3002", [("30\u79d2", "60\u79d2")],
         "\u9650\u523660\u79d2\u548c130\u79d2\u3002"),
        ("Redis before Postgres.", [("Redis", "Postgres"), ("Postgres", "Redis")],
         "Postgres before Redis."),
        ("Free 7 days, team 14 days.", [("7 days", "14 days"), ("14 days", "30 days")],
         "Free 14 days, team 30 days."),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n", [("| 1 | 2 |", "")],
         "| a | b |\n|---|---|\n| 3 | 4 |\n"),
        ("One is 10.\r\n\r\nTwo is 2.\r\n", [("One is 10.", "One is\nten.")],
         "One is\r\nten.\r\n\r\nTwo is 2.\r\n"),
        ("```sh\nrun --old\n```", [("run --old", "run --new")], "```sh\nrun --new\n```"),
        ("# The limit is 10", [("10", "20")], "# The limit is 20"),
        ("\u0627\u0644\u062d\u062f \u0661\u0660.", [("\u0661\u0660", "\u0661\u0660\u0660")],
         "\u0627\u0644\u062d\u062f \u0661\u0660\u0660."),
    ],
)  # fmt: skip
def test_only_the_words_that_are_named_change(
    draft: str, changes: list[tuple[str, str]], answer: str
) -> None:
    result = checked(draft, WRONG + "\n".join(block(1, old, new) for old, new in changes))
    assert result["answer"] == answer
    assert [each["before"] for each in result["revisions"]] == [result["revisions"][0]["before"]]
    assert result["usage"]["calls"] == 1


@pytest.mark.parametrize(
    ("draft", "old", "new", "reason"),
    [
        ("Read for 30 seconds, write for 30 seconds.", "30 seconds", "60 seconds", "several times"),
        ("It costs 1,250 limits.", "250", "300", "not there"),
        ("It has a limit.", "no limit", "a cap", "copy them exactly"),
        ("A limit.", "A limit.", "", "nothing of the text would be left"),
        ("A limit.\n\n```\nx\n```", "A limit.", "```\nA limit.", "fence open"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "| 1 | 2 |", "| 1 | 2 | 3 |", "fit its head"),
    ],
)
def test_a_change_that_does_not_fit_is_refused_with_its_reason(
    draft: str, old: str, new: str, reason: str
) -> None:
    result = checked(draft, WRONG + block(1, old, new))
    assert result["answer"] == draft
    assert reason in " ".join(result["warnings"])


@pytest.mark.parametrize(
    "metadata",
    [
        {"finish_reason": "length"},
        {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
        {"stopReason": "max_tokens"},
        {"stop_reason": "model_context_window_exceeded"},
    ],
)
@pytest.mark.parametrize("cut", [1, 2, 12, 35, 60])
def test_half_a_change_is_never_made(metadata: dict[str, Any], cut: int) -> None:
    whole = f"{WRONG}{block(1, '10 a minute for every', '1000 a minute for every')}"
    result = checked(LIMIT, AIMessage(whole[:-cut], response_metadata=metadata))
    assert result["answer"] == LIMIT
    assert any("cut off" in each for each in result["warnings"])


def test_the_last_line_of_a_reply_that_was_cut_off_is_no_verdict() -> None:
    cut = {"finish_reason": "length"}
    reply = AIMessage("1.1 supported p1\n1.2 not found", response_metadata=cut)
    result = checked("The limit is 1000. A key lasts 5 days.", reply)
    assert [each["statement"] for each in result["checks"]] == [1]
    assert "no verdict on 1 statement" in str(result["warnings"])


CHANGE = block(1, "10 a", "1000 a")


@pytest.mark.parametrize(
    "reply",
    [
        f"```\n{WRONG}{CHANGE}\n```",
        f"Here it is:\n\n```text\n{WRONG}{CHANGE}\n```",
        f"{WRONG}{CHANGE}\n\nPassage 1 gives 1000.\nREASON: p1\n---\nNO CHANGE for the rest.",
        f"<changes>\n{WRONG}{CHANGE}\n</changes>",
        (WRONG + CHANGE).replace("\n", "\r\n"),
        WRONG + CHANGE.lower(),
        WRONG + CHANGE.replace(">>>>>>> END", ">>>>>>>"),
        WRONG + block(1, "```\n10 a\n```", "```\n1000 a\n```"),
        WRONG + block(1, "\u27e61.1\u27e7 The limit is 10", "\u27e61.1\u27e7 The limit is 1000"),
    ],
)
def test_what_stands_around_a_change_is_no_part_of_the_answer(reply: str) -> None:
    assert checked(LIMIT, reply)["answer"] == RIGHT


@pytest.mark.parametrize(
    "verdicts",
    [
        "- **1.1:** supported (p1)\n- **1.2:** not found\n- **2.1:** contradicted (p1)",
        "| 1.1 | supported | p1 |\n| 1.2 | not found | |\n| 2.1 | contradicted | p1 |",
        "1.1 SUPPORTED P1\n1.2 NOT_FOUND\n2.1 CONTRADICTED P1",
        "Statement 1.1: supported p1\nStatement 1.2: not found\nStatement 2.1: contradicted p1",
        "\u27e61.1\u27e7 supported p1\n\u27e61.2\u27e7 not found\n\u27e62.1\u27e7 contradicted p1",
        '1.1 supported p1\r\n1.2 not found "5 days"\r\n2.1 contradicted by passage p1\r',
    ],
)
def test_verdict_lines_in_other_shapes(verdicts: str) -> None:
    draft = "The limit is 10. A key lasts 5 days.\n\nThe plan is free."
    result = checked(draft, f"{verdicts}\n{block(2, 'free', 'paid')}")
    assert [each["verdict"] for each in result["checks"]] == [
        "supported",
        "not found",
        "contradicted",
    ]
    assert result["warnings"] == []


def test_what_was_fine_in_a_first_reply_is_kept() -> None:
    draft = "The limit is 10. A key lasts 5 days."
    first = f"1.1-1.2 contradicted p1\n{block(1, 'is 10', 'is 1000')}\n{block(1, '6 days', '7')}"
    result = checked(draft, first, f"1.2 contradicted p1\n{block(1, '5 days', '7 days')}")
    assert result["answer"] == "The limit is 1000. A key lasts 7 days."
    assert result["warnings"] == []


def test_a_change_stays_within_the_parts_that_are_checked_in_its_call() -> None:
    rest = f"It is high, {'and so on, ' * 330}and so on."
    draft = f"The limit is 10 a minute. {rest}\n\nThe limit is 10 per minute. {rest}"
    verdicts = "2.1 contradicted p1\n2.2 supported p1\n"
    wrong = block(2, "The limit is 10 a minute.", "The limit is 1000 a minute.")
    right = block(2, "10 per", "1000 per")
    replies = ("1.1-1.2 supported p1", verdicts + wrong, verdicts + right)
    result = checked(draft, *replies, max_input_tokens=3_000)
    assert result["answer"] == draft.replace("10 per", "1000 per")
    assert (result["usage"]["calls"], result["warnings"]) == (3, [])


LIST = "".join(f"- Item {number} costs {number} euro.\n" for number in range(1, 5))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Item 2 costs 2", "Item 2 costs 3"),
        ("- Item 2 costs 2 euro.\n", ""),
        ("Item 3 costs 3", "Item 3 costs about 3"),
        ("Item 3 costs 3 euro.\n- Item 4 costs 4 euro.", "Item 4 costs 5 euro."),
    ],
)
def test_a_correction_of_what_is_not_contradicted_is_handed_back(old: str, new: str) -> None:
    verdicts = "1.1-1.2 supported p1\n1.3 not found\n1.4 contradicted p1\n"
    right = block(1, "Item 4 costs 4", "Item 4 costs 5")
    result = checked(LIST, f"{verdicts}{right}\n{block(1, old, new)}", verdicts + right)
    assert result["answer"] == LIST.replace("costs 4", "costs 5")
    assert (result["usage"]["calls"], result["warnings"]) == (2, [])


def test_a_heading_follows_a_correction() -> None:
    draft = "## The limit of 10\n\nThe limit is 10 for every key. It is free.\n"
    verdicts = "1.1 contradicted p1\n1.2 supported p1\n"
    changes = block(1, "limit of 10", "limit of 1000") + "\n" + block(1, "is 10", "is 1000")
    result = checked(draft, verdicts + changes)
    assert result["answer"] == draft.replace("10", "1000")
    assert result["warnings"] == []


def test_every_refused_change_and_every_uncorrected_statement_is_named() -> None:
    draft = "\n\n".join(f"Item {number} is {number}, as everybody says." for number in range(1, 13))
    reply = "\n".join(f"{number}.1 contradicted p1" for number in range(1, 13))
    reply += "\n" + "\n".join(block(number, f"Wrong {number}", "x") for number in range(1, 13))
    warnings = " ".join(checked(draft, reply)["warnings"])
    for number in range(1, 13):
        assert f"Wrong {number}\u201d" in warnings
        assert f"Item {number} is {number}, as everybody says.\u201d is contradicted" in warnings


@pytest.mark.parametrize("mark", ["[p1]", "(p1)", "[passage 1]"])
def test_passages_cited_by_new_words_of_rpg_become_marks(mark: str) -> None:
    change = block(1, LIMIT[:-1], f"{RIGHT[:-1]} {mark}")
    replies = {"plan": "KIND: long\n- limit", "generate": LIMIT, "revise": WRONG + change}
    model = ScriptedModel(
        lambda node, _prompt: {"to_query": LOOK_UP, "look_again": GAPS, **replies}[node]
    )
    result = build_rpg(model=model, sources=SHELF).invoke({"question": "What is the limit?"})
    assert (result["answer"], result["warnings"]) == (f"{RIGHT[:-1]} [1].", [])


@pytest.mark.parametrize("label", ["[^2]", "[Doc 2]"])
def test_a_label_of_the_draft_is_no_passage_that_a_revision_rests_on(label: str) -> None:
    draft = f"The limit is high.\n\nA key has it {label}.\n\n{label}: A book."
    reply = block(1, "The limit is high.", f"The limit is very high {label}.")
    passages = {**SHELF.passages, "key": "A key is free."}
    model = ScriptedModel([f"1.1 supported p1\n{reply}"])
    result = build_rat(model=model, sources=Shelf(passages=passages)).invoke(
        {"question": "What is the limit of a key?", "draft": draft},
        context=RatContext(scope="complete", rounds=1),
    )
    assert result["answer"].startswith(f"The limit is very high {label}.")
    assert [each["id"] for each in result["evidence"]] == ["limit", "key"]
    assert result["revisions"][0]["evidence"] == ["limit"]


def test_what_a_person_asks_for_another_time_is_answered_with_its_own_limits() -> None:
    def script(node: str, prompt: str) -> str:
        if node == "revise" and "is 10 a" in prompt:
            return WRONG + CHANGE
        replies = {"plan": "KIND: long\n- limit", "generate": f"{LIMIT[:-1]} [p1]."}
        return {**replies, "to_query": LOOK_UP, "look_again": GAPS, "draft": DRAFT}.get(
            node, "NO CHANGE"
        )

    model = ScriptedModel(script)
    rpg = build_rpg(model=model, sources=SHELF, checkpointer=InMemorySaver())
    assert rpg.invoke({"question": "First limit?"}, THREAD)["answer"] == f"{RIGHT[:-1]} [1]."
    second = rpg.invoke({"question": "Second limit?"}, THREAD, context=RpgContext(max_calls=1))
    assert second["answer"] == f"{LIMIT[:-1]} [1]."
    assert second["usage"]["calls"] == 1
    assert "First" not in model.calls[-1].prompt
