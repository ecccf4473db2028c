"""The chat: one call makes the question stand on its own and picks the graph."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from stepcraft import ChatContext, build_chat
from tests.kitchen import DRAFT, LOOK_UP, small_memory
from tests.scripted import ScriptedModel
from tests.shelf import THREAD, Shelf, shown

SCRIPTS: dict[str, tuple[str, list[str]]] = {
    "GOAL": ("aag", [LOOK_UP, DRAFT, "NO CHANGE"]),
    "QUESTION": ("rpg", ["KIND: long\n- Oster", "It has arches [p1].", "NO CHANGE"]),
    "REASON": ("rat", ["Haldruvin built it.", "NO CHANGE"]),
    "TALK": ("direct", ["Hello."]),
}


@pytest.mark.parametrize("kind", SCRIPTS)
def test_each_kind_of_message_has_its_graph(kind: str) -> None:
    method, replies = SCRIPTS[kind]
    model = ScriptedModel([f"KIND: {kind}\nQUESTION: Tell me of the Oster bridge.", *replies])
    with small_memory() as memory:
        graph = build_chat(model=model, sources=Shelf(), memory=memory)
        result = graph.invoke({"question": "Tell me of it."}, context=ChatContext())
    assert (result["method"], result["asked"]) == (method, "Tell me of the Oster bridge.")
    assert result["usage"]["calls"] == len(replies) + 1
    assert ("Sources:" in result["messages"][-1].text) == bool(result["evidence"])


def test_a_conversation_goes_on_with_its_thread() -> None:
    model = ScriptedModel(
        ["KIND: TALK\nQUESTION: Hi", "Hello.", "KIND: TALK\nQUESTION: Thanks for it", "Welcome."]
    )
    graph = build_chat(model=model, sources=Shelf(), checkpointer=InMemorySaver())
    graph.invoke({"messages": [("human", "Hi")]}, THREAD)
    result = graph.invoke({"messages": [("human", "Thanks")]}, THREAD)
    texts = [message.text for message in result["messages"]]
    assert texts == ["Hi", "Hello.", "Thanks", "Welcome."]
    assert shown(model.calls[2].prompt, "conversation") == ["Person: Hi\n\nAssistant: Hello."]
    assert result["usage"]["calls"] == 2


def test_a_source_that_dies_in_the_middle_of_a_chat_costs_its_passages() -> None:
    faults: list[Exception] = []

    def fail(_query: str) -> None:
        for fault in faults:
            raise fault

    route = "KIND: REASON\nQUESTION: Who built the Oster bridge?"
    model = ScriptedModel(
        {"route": [route] * 3, "draft": ["Haldruvin."] * 3, "revise": ["NO CHANGE"] * 2}
    )
    graph = build_chat(model=model, sources=Shelf(fail=fail), checkpointer=InMemorySaver())
    results: list[Any] = []
    for fault in ([], [ConnectionError("the wire is cut")], []):
        faults[:] = fault
        results.append(graph.invoke({"messages": [("human", "Who built it?")]}, THREAD))
    assert [result["answer"] for result in results] == ["Haldruvin."] * 3
    assert ["the wire is cut" in str(result["warnings"]) for result in results] == [
        False,
        True,
        False,
    ]
    texts = [message.text for message in results[-1]["messages"][1::2]]
    assert ["the wire is cut" in text for text in texts] == [False, True, False]
    assert [bool(result["evidence"]) for result in results] == [True, False, True]
    assert ["Sources:" in each.text for each in results[-1]["messages"][1::2]] == [
        True,
        False,
        True,
    ]


def test_a_graph_that_is_named_needs_no_call_for_a_single_message() -> None:
    model = ScriptedModel(["It has arches."])
    context = ChatContext(method="rag", method_settings={"k": 1})
    graph = build_chat(model=model, sources=Shelf())
    result = graph.invoke({"question": "What of Oster?"}, context=context)
    assert (result["method"], len(model.calls), len(result["evidence"])) == ("rag", 1, 1)


def test_the_graph_has_the_calls_that_are_left() -> None:
    model = ScriptedModel(["KIND: REASON\nQUESTION: Who?", "Haldruvin built it."])
    graph = build_chat(model=model, sources=Shelf())
    result = graph.invoke({"question": "Who?"}, context=ChatContext(max_calls=2))
    assert result["usage"]["calls"] == 2
    assert "max_calls=1" in str(result["warnings"])
