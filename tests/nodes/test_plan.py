"""What a planner may reply, and what is made of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcraft import UnreadableReply
from stepcraft.contexts.base import Context
from stepcraft.nodes.rpg.plan import MOST_TOKENS, Reading, read, repeats
from stepcraft.segments import Segment

SEGMENT = Segment(plan="The builder", sentences=[], text="It was Haldruvin.", evidence=[], unsupported=True)
FIRST = Reading(question="Who built it?", plans=[], segments=[])
LATER = Reading(question="Who built it?", plans=["The builder"], segments=[SEGMENT])
NO_INFO = [
    "<no_info>",
    "<NO_INFO>",
    "no_info",
    "No info",
    "[no_info]",
    "(No Info)",
    "**<no_info>**",
    "`<no_info>`",
    "<no info>",
    "<No-Info/>",
    "no_info.",
    '"<no_info>"',
    "```\n<no_info>\n```",
    "<no_info>\nIt is a greeting.",
    "Plan: <no_info>",
    "It is a greeting.\n<no_info>",
    "No information needed.",
    "no information is needed",
]
COMPLETE = [
    "<complete>",
    "<COMPLETE>",
    "Complete",
    "complete.",
    "[Complete]",
    "{complete}",
    "**<complete>**",
    "<completed>",
    "</complete>",
    "<complete/>",
    "The answer is complete.",
    "All was said. <complete>",
    "All was said.\n\n<complete>",
    "<complete>\n\nAll was said.",
    "Topic: complete",
    "<plan><complete></plan>",
    "<done>",
]
PLANS = {
    # The next two are a real model's replies.
    "Term about Edmund Marlin (1564\u20131616) and what it presented about his works": (
        "Term about Edmund Marlin (1564\u20131616) and what it presented about his works"
    ),
    'Original artist of the song "The Sound of Silence"': 'Original artist of the song "The Sound of Silence"',
    "the treaty of 1648 - its plan: peace": "the treaty of 1648 - its plan: peace",
    "the builder of the bridge": "the builder of the bridge",
    "Plan: the builder": "the builder",
    "**Topic:** the builder": "the builder",
    "1. the builder\n2. his teacher": "the builder",
    "- the builder\n- his teacher": "the builder",
    "the builder of the bridge\nof Mostar": "the builder of the bridge of Mostar",
    "The builder\n\nIt is not in the text yet.": "The builder",
    '"the builder"': "the builder",
    "```\nthe builder\n```": "the builder",
    "Sure, here is the plan:\nthe builder": "the builder",
    "# The builder": "The builder",
    "<plan>\nthe builder\n</plan>": "the builder",
    "<topic>the builder</topic>": "the builder",
    "The complete works of Serun": "The complete works of Serun",
    "Complete list of his bridges": "Complete list of his bridges",
    "Bridges of Serun (complete)": "Bridges of Serun (complete)",
    "No information leaks in C++": "No information leaks in C++",
    "The end of the war": "The end of the war",
    "\u6865\u7684\u5efa\u9020\u8005": "\u6865\u7684\u5efa\u9020\u8005",
    "1566 in Mostar": "1566 in Mostar",
}


@pytest.mark.parametrize("reply", NO_INFO)
def test_no_info_is_obeyed_on_the_first_turn_alone(reply: str) -> None:
    assert read(reply, FIRST, Context()) == {"plan": "", "signal": "<no_info>"}
    assert read(reply, LATER, Context()) == {"plan": "Who built it?", "signal": ""}


@pytest.mark.parametrize("reply", COMPLETE)
def test_complete_is_obeyed_once_something_is_written(reply: str) -> None:
    assert read(reply, LATER, Context()) == {"plan": "", "signal": "<complete>"}
    assert read(reply, FIRST, Context()) == {"plan": "Who built it?", "signal": ""}
    failed = Reading(question="Who built it?", plans=["The builder"], segments=[])
    assert read(reply, failed, Context()) == {"plan": "Who built it?", "signal": ""}


@pytest.mark.parametrize("state", [FIRST, LATER])
@pytest.mark.parametrize(("reply", "plan"), PLANS.items())
def test_topics(reply: str, plan: str, state: Reading) -> None:
    assert read(reply, state, Context()) == {"plan": plan, "signal": ""}


@pytest.mark.parametrize("reply", ["...", "**", "- ", '""', "Plan:"])
def test_a_reply_without_a_topic_is_handed_back(reply: str) -> None:
    with pytest.raises(UnreadableReply, match="no topic"):
        read(reply, FIRST, Context())


@given(st.lists(st.text("abc\u00e9\u6865", min_size=1, max_size=40), min_size=1, max_size=60))
def test_a_long_plan_is_cut_at_a_word(words: list[str]) -> None:
    plan = read("the " + " ".join(words), FIRST, Context())["plan"]
    assert len(plan) + 2 * plan.count("\u6865") <= 4 * MOST_TOKENS
    assert ["the", *words][: len(plan.split())] == plan.split()


def test_a_plan_without_blanks_is_cut_between_characters() -> None:
    plan = read("\u6865" * 200, FIRST, Context())["plan"]
    assert plan == "\u6865" * (4 * MOST_TOKENS // 3)


def test_a_plan_of_12_words_is_whole_in_any_alphabet() -> None:
    russian = "Какие виды памяти сохраняет контрольная точка графа после каждого шага выполнения агента"
    hindi = "चेकपॉइंटर हर चरण के बाद थ्रेड की कौन सी स्थिति सहेजता है"
    assert [read(topic, FIRST, Context())["plan"] for topic in (russian, hindi)] == [russian, hindi]


def test_what_repeats() -> None:
    assert repeats("The BUILDER of the bridge!", ["the builder of the bridge"])
    assert not repeats("the builder of the mosque", ["the builder of the bridge"])
    assert not repeats("?", ["!"])
    assert repeats("?", ["?"])
