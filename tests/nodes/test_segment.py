"""What is written for a plan or at the end, and what is taken of it."""

from typing import Any

import pytest

from stepcraft import RpgContext, UnreadableReply
from stepcraft.nodes.rpg import answer as answer_segment
from stepcraft.nodes.rpg import combine
from stepcraft.segments import Segment

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
