"""What is asked for and written for a plan or at the end, and what is taken of it."""

from typing import Any

import pytest

from stepcraft import RpgContext, UnreadableReply
from stepcraft.nodes.rpg import answer as answer_segment
from stepcraft.nodes.rpg import combine
from stepcraft.segments import Segment, Selected
from tests.shelf import section

SEGMENT = Segment(plan="The year", sentences=[], text="It was built in 1566.", evidence=[], unsupported=True)
STATE: Any = {
    "question": "Who built it?",
    "answer_style": "long",
    "plan": "The builder",
    "plans": ["The year"],
    "signal": "",
    "selected": [],
    "evidence": [],
    "segments": [SEGMENT],
    "warnings": [],
}

FOUND: Any = {
    **STATE,
    "selected": [Selected(passage="a", position=0, text="Haldruvin built it.", score=0.9)],
    "evidence": [
        {"id": "a", "title": "Stari Most", "text": "Haldruvin built it.", "source": "", "score": 0.9}
    ],
}


def form(state: Any, **settings: Any) -> str:
    """Return what the model is asked to reply with for a segment."""
    asked = answer_segment.ask(state, RpgContext(**settings))
    return " ".join(section("\n\n".join(message.text for message in asked), "reply_format").split())


REPLIES = {
    "It was Haldruvin.": "It was Haldruvin.",
    "Answer: It was Haldruvin.": "It was Haldruvin.",
    "**Answer:** It was Haldruvin.": "It was Haldruvin.",
    "Final answer: It was Haldruvin.": "It was Haldruvin.",
    "Segment: It was Haldruvin.": "It was Haldruvin.",
    "<segment>\nIt was Haldruvin.\n</segment>": "It was Haldruvin.",
    "<answer>It was Haldruvin.</answer>": "It was Haldruvin.",
    "```\nIt was Haldruvin.\n```": "It was Haldruvin.",
    "Sure, here is the segment:\n\nIt was Haldruvin.": "It was Haldruvin.",
    "Answers: many.": "Answers: many.",
}


@pytest.mark.parametrize(("reply", "said"), REPLIES.items())
def test_what_models_put_around_an_answer_is_left_out(reply: str, said: str) -> None:
    update = answer_segment.read(reply, STATE, RpgContext())
    assert update["segments"][-1]["text"] == said
    assert update["plans"] == ["The year", "The builder"]
    assert combine.read(reply, STATE, RpgContext())["answer"] == said


def test_the_text_before_is_no_part_of_a_segment() -> None:
    update = answer_segment.read("It was built in 1566.\n\nIt was Haldruvin.", STATE, RpgContext())
    assert update["segments"][-1]["text"] == "It was Haldruvin."


@pytest.mark.parametrize("reply", ["It was built in 1566.", "Answer:", "[9]", "<answer></answer>"])
def test_a_segment_that_adds_nothing_is_handed_back(reply: str) -> None:
    with pytest.raises(UnreadableReply, match="it adds nothing to the text"):
        answer_segment.read(reply, STATE, RpgContext(citations="inline"))


def test_a_mark_of_a_passage_that_was_shown_is_kept_and_others_are_dropped() -> None:
    update = answer_segment.read("It was Haldruvin [1]. It stands [9].", FOUND, RpgContext())
    assert update["segments"][-1]["text"] == "It was Haldruvin [1]. It stands."


def test_brackets_are_text_where_the_paper_asks_for_no_marks() -> None:
    update = answer_segment.read("The array a[9] holds it.", FOUND, RpgContext(paper=True))
    assert update["segments"][-1]["text"] == "The array a[9] holds it."


def test_marks_are_asked_for_where_there_is_evidence() -> None:
    assert "[1]" in form(FOUND)
    assert "[1]" not in form(STATE)
    assert "[1]" not in form(FOUND, paper=True)
    assert "[1]" in form(FOUND, paper=True, citations="inline")


def test_what_the_evidence_does_not_say_is_in_sentences_without_a_mark_or_left_out() -> None:
    assert "in sentences of their own without a number" in form(FOUND)
    assert "nothing that it does not say" in form(FOUND, grounding="evidence")
    assert "Add nothing that the evidence does not say." in form(FOUND, paper=True)


def test_a_segment_of_a_long_answer_has_its_own_limit() -> None:
    assert "at most 400 tokens (about 280 words)" in form(FOUND)
    assert "at most 50 tokens (about 35 words)" in form(FOUND, segment_tokens=50)
    assert "at most 100 tokens" in form(FOUND, paper=True)
    assert "at most 100 tokens" in form({**FOUND, "answer_style": "short"}, segment_tokens=50)
