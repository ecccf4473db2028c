"""The scripted model, under a graph as it is used."""

from __future__ import annotations

from collections.abc import Iterator
from operator import add
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph

from tests.scripted import ScriptedModel


class State(TypedDict):
    said: Annotated[list[str], add]


def pair(model: ScriptedModel) -> CompiledStateGraph[State]:
    """Two nodes, one after the other, each asking the model its own name."""

    def node(name: str) -> RunnableLambda[State, dict[str, Any]]:
        def call(_: State) -> dict[str, Any]:
            return {"said": [model.invoke(name).text]}

        async def acall(_: State) -> dict[str, Any]:
            return {"said": [(await model.ainvoke(name)).text]}

        return RunnableLambda(call, afunc=acall)

    builder = StateGraph(State).add_node("first", node("first")).add_node("second", node("second"))
    builder.add_edge("__start__", "first").add_edge("first", "second")
    return builder.compile()


@pytest.mark.parametrize(
    "script",
    [
        ["one", "two"],
        {"second": ["two"], "first": ["one"]},
        lambda node, prompt: {"first": "one", "second": "two"}[node] if node == prompt else "wrong",
    ],
    ids=["list", "nodes", "function"],
)
async def test_each_script_answers_both_ways(script: Any) -> None:
    for way in ("sync", "async"):
        model = ScriptedModel(script)
        graph = pair(model)
        out = graph.invoke({"said": []}) if way == "sync" else await graph.ainvoke({"said": []})
        assert out == {"said": ["one", "two"]}
        assert model.nodes == ["first", "second"]
        assert [call.prompt for call in model.calls] == ["first", "second"]


def test_tokens_stream_from_their_node() -> None:
    graph = pair(ScriptedModel(["one  two\nthree ", "four"]))
    stream: Iterator[Any] = graph.stream({"said": []}, stream_mode="messages")
    heard = [(meta["langgraph_node"], chunk.content) for chunk, meta in stream if chunk.content]
    assert heard == [
        ("first", "one"),
        ("first", "  two"),
        ("first", "\nthree "),
        ("second", "four"),
    ]


def test_a_stream_merges_to_the_reply() -> None:
    reply = AIMessage(
        "a b", additional_kwargs={"refusal": None}, response_metadata={"finish_reason": "length"}
    )
    whole = AIMessageChunk(content="")
    for chunk in ScriptedModel([reply]).stream([HumanMessage("x" * 40)]):
        whole += chunk
    assert whole.content == "a b"
    assert whole.response_metadata["finish_reason"] == "length"
    assert whole.usage_metadata == {"input_tokens": 10, "output_tokens": 0, "total_tokens": 10}
    assert reply.usage_metadata is None


def test_content_blocks_pass_whole() -> None:
    blocks: list[str | dict[Any, Any]] = [
        {"type": "reasoning", "reasoning": "hm"},
        {"type": "text", "text": "so"},
    ]
    model = ScriptedModel(lambda node, prompt: AIMessage(blocks))
    assert model.invoke("hi").text == "so"
    assert "".join(chunk.text for chunk in model.stream("hi")) == "so"


async def test_exceptions_are_raised_and_timed() -> None:
    model = ScriptedModel([TimeoutError("late")] * 2, latency=0.01)
    with pytest.raises(TimeoutError, match="late"):
        model.invoke("hi")
    with pytest.raises(TimeoutError, match="late"):
        await model.ainvoke("hi")
    assert all(call.ended and call.ended - call.started >= 0.01 for call in model.calls)


def test_a_script_that_ran_out_names_the_node() -> None:
    with pytest.raises(AssertionError, match="'second'"):
        pair(ScriptedModel({"first": ["one"]})).invoke({"said": []})


def test_bound_settings_are_recorded() -> None:
    model = ScriptedModel(["one"], profile={"max_input_tokens": 10})
    model.bind(temperature=0.5).invoke("hi")
    assert model.calls[0].kwargs == {"temperature": 0.5}
    assert model.profile == {"max_input_tokens": 10}
