"""Messages as LangChain's integrations deliver them, what is read of them, and answers."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from stepcraft import NoAnswer, build_rat, get_graph
from stepcraft.contexts.baselines import RagContext
from stepcraft.errors import UnreadableReply
from stepcraft.graphs.baselines import build_rag
from stepcraft.llm.prompt import without_system_role
from stepcraft.llm.reply import Refused, answer_text, is_cut_off, odd_end, reply_text
from tests.scripted import ScriptedModel, ToolModel, block, searching
from tests.shelf import QUESTION, Shelf

THOUGHT = "Was it 1871? Passage 1 says 1873."
ANSWER = "It was built in 1873."
CITED = "The bridge has eighteen arches."


def text(words: str, **more: Any) -> dict[str, Any]:
    """A block of text."""
    return {"type": "text", "text": words, **more}


def message(content: Any, refusal: Any = None, thoughts: Any = None, **metadata: Any) -> AIMessage:
    """A message; what its provider says of it is its metadata."""
    more = {"refusal": refusal, "reasoning_content": thoughts}
    return AIMessage(content, response_metadata=metadata, additional_kwargs=more)


def cited(**citation: Any) -> list[dict[str, Any]]:
    """A text in three blocks, the second with a citation."""
    return [text("The bridge has "), text("eighteen arches", **citation), text(".")]


REASONING = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": THOUGHT}],
}
CHAR_LOCATION = {"type": "char_location", "cited_text": "18", "document_index": 0}
URL_CITATION = {"type": "url_citation", "url": "https://example.org", "title": "Oster"}
SEARCH = [
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
]
CODE = [
    {"type": "executable_code", "executable_code": "9+9", "language": "PYTHON", "id": "1"},
    {"type": "code_execution_result", "code_execution_result": "18", "outcome": 1},
]
HARMONY = (
    f"<|channel|>analysis<|message|>{THOUGHT}<|end|>"
    f"<|start|>assistant<|channel|>final<|message|>{ANSWER}<|return|>"
)

WHOLE = {
    "openai": (message(ANSWER, finish_reason="stop"), ANSWER),
    "openai responses": (
        message(
            [
                REASONING,
                text("I look.", annotations=[], id="msg_1", phase="commentary"),
                text(ANSWER, annotations=[URL_CITATION], id="msg_2", phase="final_answer"),
                text("It is of stone.", annotations=[], id="msg_3", phase="final_answer"),
            ],
            status="completed",
        ),
        f"{ANSWER}\nIt is of stone.",
    ),
    "anthropic": (
        message(
            [
                {"type": "thinking", "thinking": THOUGHT, "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "ZGF0YQ"},
                text(ANSWER),
            ],
            stop_reason="end_turn",
            stop_details=None,
        ),
        ANSWER,
    ),
    "anthropic citations": (
        message(cited(citations=[CHAR_LOCATION]), stop_reason="end_turn"),
        CITED,
    ),
    "anthropic search": (
        message([text("I search."), *SEARCH, *cited(citations=[CHAR_LOCATION])]),
        f"I search.\n{CITED}",
    ),
    "anthropic standard content": (
        message(cited(annotations=[{"type": "citation"}]), output_version="v1"),
        CITED,
    ),
    "google parts": (message(["It has ar", "ches."], finish_reason="STOP"), "It has arches."),
    "google streamed": (
        message(
            [{"type": "thinking", "thinking": THOUGHT}, text("It has ar", index=1), "ches", "."],
            finish_reason="STOPSTOPSTOP",
        ),
        "It has arches.",
    ),
    "google blocks": (
        message([text("It has ar"), text("ches.")], model_provider="google_genai"),
        "It has arches.",
    ),
    "google thinking": (
        message(
            [
                {"type": "thinking", "thinking": THOUGHT},
                text(ANSWER, extras={"signature": "eA=="}),
                text("", extras={"signature": "eA=="}),
            ],
            finish_reason="STOP",
            prompt_feedback={"block_reason": None, "block_reason_message": None},
        ),
        ANSWER,
    ),
    "google code": (message(["Run:", *CODE, "It is 18."]), "Run:\nIt is 18."),
    "bedrock": (
        message(
            [{"type": "reasoning_content", "reasoning_content": {"text": THOUGHT}}, text(ANSWER)],
            stopReason="end_turn",
        ),
        ANSWER,
    ),
    "bedrock citations": (message(cited(citations=[{"title": "O", "source_content": []}])), CITED),
    "deepseek": (message(ANSWER, thoughts=THOUGHT, finish_reason="stop"), ANSWER),
    "deepseek template": (message(f"{THOUGHT}\n</think>\n\n{ANSWER}"), ANSWER),
    "qwen": (message(f"<think>\n{THOUGHT}\n</think>\n\n{ANSWER}", finish_reason="stop"), ANSWER),
    "qwen without thinking": (message(f"<think>\n\n</think>\n\n{ANSWER}"), ANSWER),
    "gpt-oss": (message(HARMONY, finish_reason="stop"), ANSWER),
    "mistral": (
        message(
            [{"type": "thinking", "thinking": [text(THOUGHT)]}, text(ANSWER)], finish_reason="stop"
        ),
        ANSWER,
    ),
    "mistral references": (message(cited(reference={"reference_ids": [1]})), CITED),
    "ollama": (message(ANSWER, thoughts=THOUGHT, done_reason="stop"), ANSWER),
    "image": (message([text(ANSWER), {"type": "image", "base64": "AA=="}]), ANSWER),
}


@pytest.mark.parametrize(("reply", "expected"), WHOLE.values(), ids=WHOLE)
def test_the_text_of_a_message(reply: AIMessage, expected: str) -> None:
    assert reply_text(reply) == expected
    assert (is_cut_off(reply), odd_end(reply)) == (False, "")


@pytest.mark.parametrize(
    "metadata",
    [
        {"finish_reason": "length"},
        {"finish_reason": "MAX_TOKENS"},
        {"finish_reason": "MAX_TOKENSMAX_TOKENSMAX_TOKENS"},
        {"finish_reason": "model_length"},
        {"stop_reason": "max_tokens"},
        {"stop_reason": "model_context_window_exceeded"},
        {"stopReason": "max_tokens"},
        {"stopReason": "model_context_window_exceeded"},
        {"finishReason": "length"},
        {"done_reason": "length"},
        {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
        {"status": "incomplete"},
    ],
    ids=str,
)
def test_a_reply_that_was_cut_off(metadata: dict[str, Any]) -> None:
    reply = message("It was", **metadata)
    assert is_cut_off(reply)
    assert reply_text(reply) == "It was"


@pytest.mark.parametrize("opening", ["<think>\n", "<|channel|>analysis<|message|>", "[THINK]"])
def test_a_reply_that_was_cut_off_within_its_reasoning(opening: str) -> None:
    reply = message(opening + THOUGHT, finish_reason="stop")
    assert is_cut_off(reply)
    with pytest.raises(UnreadableReply, match="cut off before any text"):
        reply_text(reply)


@pytest.mark.parametrize(
    "content", ["", " \n", "\u200b", "\x00", [REASONING], "<think>\nhm\n</think>\n"]
)
def test_an_empty_reply(content: Any) -> None:
    with pytest.raises(UnreadableReply, match="empty"):
        reply_text(message(content))


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (message("", "I may not.", finish_reason="stop"), "I may not"),
        (message("It was", finish_reason="content_filter"), "content_filter"),
        (message([{"type": "refusal", "refusal": "I may not.", "id": "msg_1"}]), "I may not"),
        (message([text("It was"), {"type": "refusal", "refusal": ""}]), "refuses"),
        (
            message([{"type": "non_standard", "value": {"type": "refusal", "refusal": "No."}}]),
            r"No\.",
        ),
        (
            message(
                [text("It was", annotations=[], id="msg_1")],
                status="incomplete",
                incomplete_details={"reason": "content_filter"},
            ),
            "content_filter",
        ),
        (message("It was", stop_reason="refusal", stop_details=None), "refusal"),
        (
            message("It was", stop_reason="refusal", stop_details={"explanation": "Germs."}),
            "Germs.*refusal",
        ),
        (message("It was", finish_reason="SAFETY", finish_message="Bad."), "Bad.*safety"),
        (message("It was", finish_reason="RECITATION"), "recitation"),
        (message("It was", finish_reason="PROHIBITED_CONTENT"), "prohibited"),
        (message("It was", finish_reason="BLOCKLIST"), "blocklist"),
        (message("It was", finish_reason="SPII"), "spii"),
        (message("", prompt_feedback={"block_reason": "JAILBREAK"}), "jailbreak"),
        (message("Blocked by us.", stopReason="guardrail_intervened"), "Blocked by us"),
        (message("It was", stopReason="content_filtered"), "content_filtered"),
        (message("It was", finish_reason="sensitive"), "sensitive"),
        (message("It was", finish_reason="ERROR_TOXIC"), "error_toxic"),
    ],
)
def test_half_a_text_of_a_refused_reply_is_no_answer(reply: AIMessage, words: str) -> None:
    with pytest.raises(Refused, match=words):
        reply_text(reply)
    assert not is_cut_off(reply)
    assert odd_end(reply) == ""
    model = ScriptedModel([reply])
    with pytest.raises(NoAnswer, match=words):
        build_rag(model=model, sources=Shelf()).invoke(QUESTION)
    assert len(model.calls) == 1, "it is not asked again"


@pytest.mark.parametrize(
    ("last", "answer"), [(f"<think>\n{THOUGHT}\n</think>\n{ANSWER}", ANSWER), ("", "Haldruvin.")]
)
def test_the_agents_answer_is_read_in_the_same_way(last: str, answer: str) -> None:
    model = ToolModel([searching("Oster"), last, "Haldruvin."])
    assert get_graph("react", model=model, sources=Shelf()).invoke(QUESTION)["answer"] == answer


CALL = '{"name": "search", "arguments": {"query": "Oster"}}'


@pytest.mark.parametrize(
    "call",
    [
        CALL,
        f"```json\n{CALL}\n```",
        f"[{CALL}, {CALL}]",
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"I will search for it:\n\n<tool_call>{CALL}</tool_call>\n<tool_call>{CALL}</tool_call>",
        f"[TOOL_CALLS][{CALL}]",
        'CALL search {"query": "Oster"}',
        '<function=search>{"query": "Oster"}</function>',
        '<function_calls><invoke name="search"></invoke></function_calls>',
        "Action: search\nAction Input: Oster",
        '<|python_tag|>search.call(query="Oster")',
        '[search(query="Oster")]',
        '<\uff5cDSML\uff5cfunction_calls>\n<\uff5cDSML\uff5cinvoke name="search">\n</\uff5cDSML\uff5cinvoke>',
        '<|START_ACTION|>[{"tool_name": "search", "parameters": {"q": "x"}}]<|END_ACTION|>',
        '[{"tool_call_id": "0", "tool_name": "search", "parameters": {"q": "x"}}]',
        "```tool_code\nsearch(q='limit')\n```",
        "<\uff5ctool\u2581calls\u2581begin\uff5c>function<\uff5ctool\u2581sep\uff5c>search",
        "I use `search`.<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>search",
        f"Let me see.\n\nI search. <|tool_call|>[{CALL}]",
    ],
)
def test_the_call_of_a_tool_in_the_text_is_no_answer(call: str) -> None:
    model = ScriptedModel([call, "Haldruvin."])
    assert build_rag(model=model, sources=Shelf()).invoke(QUESTION)["answer"] == "Haldruvin."
    assert "calls a tool" in model.calls[1].prompt
    agent = ToolModel([searching("Oster"), call, "Haldruvin."])
    assert (
        get_graph("react", model=agent, sources=Shelf()).invoke(QUESTION)["answer"] == "Haldruvin."
    )


def test_a_call_that_the_model_answers_itself_is_left_out() -> None:
    message = AIMessage(f"<tool_call>\n{CALL}\n</tool_call>\nHaldruvin.")
    assert reply_text(message) == "Haldruvin."


@pytest.mark.parametrize(
    "answer",
    [
        '{"name": "Oster", "type": "bridge"}',
        '{"name": "search", "description": "Finds.", "parameters": {}}',
        "The model writes\n<tool_call>\u2026</tool_call>\nand waits.",
        f"It replies as follows.\n\n```\n<tool_call>{CALL}</tool_call>\n```",
        "Call `search(query)`.",
        "Phi-4 puts results into `<|tool_response|>`, and calls into <|tool_call|>\ntokens.",
        f"It writes:\n\n```\n<|tool_call|>[{CALL}]<|/tool_call|>\n```",
        "Action: none.",
        "[]",
        "[Oster](https://example.org)",
        "[Point(x=1, y=2)]",
        "Pass the object first:\n\nbuild.call(bridge, 1873)",
    ],
)
def test_an_answer_may_show_the_call_of_a_tool(answer: str) -> None:
    assert reply_text(AIMessage(answer)) == answer


def test_changes_that_the_reasoning_rejects_are_not_applied() -> None:
    change = block(1, "Haldruvin", "Quandt")
    model = ScriptedModel([f"I could write\n\n{change}\n\nbut no.\n</think>\n\nNO CHANGE"])
    rat = build_rat(model=model, sources=Shelf())
    result = rat.invoke({**QUESTION, "draft": "Haldruvin built it."})
    assert result["answer"] == "Haldruvin built it."


@pytest.mark.parametrize(
    "reply",
    [
        "Certainly not.\n\nIt was never built.",
        "Great Britain won 27 medals.\nFrance won 5.",
        "Great Britain won these medals:\n- gold",
        "Okay is a word.\nIt is used everywhere.",
        "Here are the three arches of Oster:\n- a",
        "<b>A</b> is before <b>C</b>",
        "<answer>A</answer> or <answer>B</answer>",
        "```python\nprint(1)\n```",
        "```\npip install stepcraft\n```",
        "```\nx = 1\n```",
        "```\nSELECT name FROM users\n```",
        '```json\n{"a": 1}\n```',
        "```py\nx\n```\nand\n```py\ny\n```",
    ],
)
def test_an_answer_stays_whole(reply: str) -> None:
    assert answer_text(reply) == reply


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Sure, here is the answer:\n\nParis.", "Paris."),
        ("Certainly! Here\u2019s what I found:\n\nParis.", "Paris."),
        ("<answer>\nParis.\n</answer>", "Paris."),
        ("```\nParis.\n```", "Paris."),
        ("```\nParis\n```", "Paris"),
        ("```text\nThe bridge has 18 arches [1].\n```", "The bridge has 18 arches [1]."),
        ("```\n1. Mix\n2. Bake\n```", "1. Mix\n2. Bake"),
        ("```md\n# Oster\n\n```\nls\n```\n\nDone.\n```", "# Oster\n\n```\nls\n```\n\nDone."),
        ("````markdown\nRun\n```\nls\n```\n````", "Run\n```\nls\n```"),
        ("Here is the program:\n\n```c\nint x;\n```", "```c\nint x;\n```"),
        ("Sure, here is the answer:\n```markdown\n**Paris**\n```", "**Paris**"),
    ],
)
def test_what_stands_around_an_answer_goes(reply: str, answer: str) -> None:
    assert answer_text(reply) == answer


def test_a_draft_of_code_alone_keeps_its_fence() -> None:
    code = "```python\ndef a():\n    return 1\n\n\ndef b():\n    return 2\n```"
    model = ScriptedModel([code, "NO CHANGE"])
    assert build_rat(model=model, sources=Shelf()).invoke(QUESTION)["answer"] == code


def test_a_model_without_a_system_role_gets_one_human_message() -> None:
    model = ScriptedModel(["", "Haldruvin built it."])
    graph = build_rag(model=model, sources=Shelf())
    graph.invoke(QUESTION, context=RagContext(system_role=False))
    assert [[each.type for each in call.messages] for call in model.calls] == [
        ["human"],
        ["human", "human"],
    ]
    assert "reply_format" in model.calls[0].prompt


def test_a_prompt_of_one_message_stays_as_it_is() -> None:
    assert without_system_role([HumanMessage("Oster?")]) == [HumanMessage("Oster?")]
