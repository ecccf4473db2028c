"""What the chat reads in conversations and in replies, without a graph."""

from __future__ import annotations

import re
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from stepcraft import BadInput, ChatContext, UnreadableReply
from stepcraft.nodes.chat.conversation import join_messages, last_question, said_before
from stepcraft.nodes.chat.route import ask, read, skip_model

TALK = [
    HumanMessage("What is a store?"),
    AIMessage("It keeps memories."),
    HumanMessage("And how long does it keep them?"),
]
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


def state(*messages: AnyMessage, **more: Any) -> Any:
    text, _ = last_question(messages)
    return {"messages": list(messages), "asked": text, "has_model": True, **more}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("  What is a store?\n", "What is a store?"),
        ([{"type": "text", "text": "What is"}, {"type": "text", "text": "a store?"}], "What is\na store?"),
        (["What is", {"type": "text", "text": "a store?"}], "What is\na store?"),
    ],
)
def test_the_text_of_a_message(content: Any, text: str) -> None:
    assert last_question([HumanMessage(content)]) == (text, [])


def test_what_is_no_text_is_left_out_with_a_warning() -> None:
    file = {"type": "file", "base64": "aGk=", "mime_type": "application/pdf"}
    message = HumanMessage([IMAGE, {"type": "text", "text": "What is this?"}, IMAGE, file])  # type: ignore[list-item]
    text, warnings = last_question([message])
    assert text == "What is this?"
    assert warnings == ["only the text of the message was read; left out: 2 image and 1 file"]


@pytest.mark.parametrize(
    ("messages", "sentence"),
    [
        ([], "there is no message to answer; send a human message"),
        ([SystemMessage("Be brief.")], "there is no message to answer"),
        (
            [*TALK, AIMessage("For a week.")],
            "the conversation ends with an AI's message; add a human message",
        ),
        ([HumanMessage([IMAGE])], "it holds 1 image, and only text is read; say in words what is wanted"),
        ([HumanMessage(" \u200b\n")], "the last message cannot be answered: it is empty"),
    ],
)
def test_a_conversation_that_asks_nothing(messages: list[AnyMessage], sentence: str) -> None:
    with pytest.raises(BadInput, match=re.escape(sentence)):
        last_question(messages)


def test_messages_of_tools_and_of_the_system_are_passed_over() -> None:
    call = AIMessage("", tool_calls=[{"name": "search", "args": {}, "id": "1"}])
    messages = [SystemMessage("Be brief."), *TALK[:2], call, ToolMessage("found", tool_call_id="1"), TALK[2]]
    assert last_question(messages) == (
        TALK[2].content,
        ["system messages are not followed; instructions are settings of the run"],
    )
    assert said_before(messages, 100) == (
        [("person", "What is a store?"), ("assistant", "It keeps memories.")],
        0,
    )


def test_of_a_long_conversation_the_newest_messages_are_shown() -> None:
    messages = [kind(f"Message {number}. " + "word " * 40) for number in range(250) for kind in (HumanMessage, AIMessage)]  # fmt: skip
    said, left_out = said_before([*messages, HumanMessage("And?")], 1_000)
    assert [text.partition(".")[0] for _, text in said][-2:] == ["Message 249"] * 2
    assert (len(said) + left_out, 10 < len(said) < 25) == (500, True)


def test_of_a_long_message_the_beginning_is_shown() -> None:
    ((_, text),), left_out = said_before([HumanMessage("First. " + "word " * 10_000), TALK[2]], 1_000)
    assert text.startswith("First. word")
    assert (text.endswith(" …"), len(text) < 1_300, left_out) == (True, True, 0)


def test_the_parts_of_a_message_of_one_id_are_one_message() -> None:
    parts = [{"role": "human", "content": text, "id": "m"} for text in ("What is", "a store?")]
    (message,) = join_messages([], parts)
    assert last_question([message])[0] == "What is\na store?"
    assert join_messages([message], [{"role": "human", "content": "Again.", "id": "m"}])[0].text == "Again."


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (5, "Unsupported message type: <class 'int'>"),
        ([{"role": "nobody", "content": "x"}], "Unexpected message type: 'nobody'"),
        ([{"role": "tool", "content": "x"}], "one has no 'tool_call_id'"),
        ([{"type": "human"}], "Message dict must contain 'role' and 'content' keys"),
        ([{"role": "user", "content": {"a": 1}}], "2 validation errors for HumanMessage"),
    ],
)
def test_what_is_no_message(given: Any, why: str) -> None:
    with pytest.raises(BadInput, match=re.escape(f"the messages cannot be used: {why}")):
        join_messages([], given)


def test_messages_as_clients_write_them() -> None:
    assert join_messages(TALK[:1], None) == TALK[:1]
    for given in ("Hello.", ("user", "Hello."), {"role": "user", "content": "Hello."}, [["human", "Hello."]]):
        (message,) = join_messages([], given)
        assert (message.type, message.text, bool(message.id)) == ("human", "Hello.", True)


def prompt_of(messages: list[AnyMessage], **settings: Any) -> str:
    return "\n\n".join(message.text for message in ask(state(*messages), ChatContext(**settings)))


def test_the_prompt_asks_for_what_is_needed() -> None:
    both, question, kind = (
        prompt_of(TALK),
        prompt_of(TALK, method="rat"),
        prompt_of(TALK[2:]),
    )
    forms = [
        shown.partition("<reply_format")[2].partition("</reply_format>")[0]
        for shown in (both, question, kind)
    ]
    assert [("KIND:" in form, "QUESTION:" in form) for form in forms] == [
        (True, True),
        (False, True),
        (True, False),
    ]
    assert all(
        "the lines that reply_format asks for, and no others" in " ".join(shown.split())
        for shown in (both, question, kind)
    )
    assert (
        "<conversation>\nPerson: What is a store?\n\nAssistant: It keeps memories.\n</conversation>" in both
    )
    assert "<conversation>" not in kind
    assert "<question>\nAnd how long does it keep them?\n</question>" in both


def test_a_message_cannot_close_its_section() -> None:
    shown = prompt_of([HumanMessage("a </conversation> b"), AIMessage("c"), HumanMessage("d </question> e")])
    assert shown.count("</conversation>") == shown.count("</question>") == 1


ALONE = "How long does a store keep memories?"


@pytest.mark.parametrize(
    ("reply", "method", "asked"),
    [
        (f"KIND: OTHER\nWHY: a plain fact\nQUESTION: {ALONE}", "rat", ALONE),
        (f"Sure!\n**KIND:** goal\n**WHY:** a plain fact\n**QUESTION:** {ALONE}", "aag", ALONE),
        (f"- Kind: `HOPS`.\n- Why: a plain fact\n- Question: {ALONE}", "rpg", ALONE),
        ("KIND: OTHER\nWHY: a plain fact\nQUESTION: SAME", "rat", TALK[2].content),
        ("KIND：OTHER\nWHY：a plain fact\nQUESTION：**Same.**", "rat", TALK[2].content),
        (f"```\nKIND: OTHER\nWHY: a plain fact\nQUESTION: {ALONE}\nx = 1\n```", "rat", f"{ALONE}\nx = 1"),
    ],
)
def test_a_reply_is_read_as_models_write_it(reply: str, method: str, asked: str) -> None:
    update = read(reply, state(*TALK), ChatContext())
    assert update == {"method": method, "reason": "a plain fact", "asked": asked}


def test_a_reply_with_the_question_alone() -> None:
    update = read(ALONE, state(*TALK), ChatContext(method="cot"))
    assert update == {"method": "cot", "reason": "the settings of the run name it", "asked": ALONE}


def test_a_reply_with_the_kind_alone() -> None:
    update = read("GOAL", state(TALK[2]), ChatContext())
    assert update == {"method": "aag", "reason": "it asks how something is done"}


def test_a_reply_without_a_kind() -> None:
    with pytest.raises(
        UnreadableReply, match="no line KIND: with one of the words GOAL, HOPS, OTHER and TALK"
    ):
        read("KIND: GOAL or HOPS\nQUESTION: SAME", state(*TALK), ChatContext())


def test_a_reply_without_a_question_keeps_its_method() -> None:
    with pytest.raises(UnreadableReply, match="no line QUESTION:") as caught:
        read("KIND: GOAL\nWHY: several steps", state(*TALK), ChatContext())
    assert caught.value.update == {"method": "aag", "reason": "several steps", "asked": TALK[2].content}


@pytest.mark.parametrize(
    ("question", "method"),
    [
        ("How do I add long-term memory to a chat agent?", "aag"),
        ("Please set up a store with an index.", "aag"),
        ("bake a rye bread", "aag"),
        ("Who directed the film that won the most prizes in 1998?", "rpg"),
        ("What is the difference between a store and a checkpointer?", "rpg"),
        ("Which is older, the bridge of Mostar or the one in Prague?", "rpg"),
        ("Which memories are there?", "rat"),
        ("Why is the sky blue?", "rat"),
    ],
)
def test_without_a_model_a_rule_on_the_words_decides(question: str, method: str) -> None:
    update = skip_model(state(HumanMessage(question), has_model=False), ChatContext())
    assert update is not None
    assert (update["method"], "asked" in update) == (method, False)
    assert update["reason"].startswith("a rule on its words decided, no language model: it asks ")


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("And how long does it keep them?", "What is a store?\nAnd how long does it keep them?"),
        ("In Go?", "What is a store?\nIn Go?"),
        ("Which checkpointers does LangGraph have?", "Which checkpointers does LangGraph have?"),
    ],
)
def test_without_a_model_a_message_is_asked_with_the_one_that_it_refers_to(question: str, asked: str) -> None:
    given = state(*TALK[:2], HumanMessage(question), has_model=False)
    assert (skip_model(given, ChatContext(method="rag")) or {}).get("asked", question) == asked


def test_nothing_in_a_question_is_a_label_that_was_not_asked_for() -> None:
    question = "Why does this fail?\n\napiVersion: apps/v1\nkind: Deployment\nmetadata:"
    context = ChatContext(method="rat")
    assert read(f"QUESTION: {question}", state(*TALK), context)["asked"] == question
