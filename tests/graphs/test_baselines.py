"""The baselines: one call each, and an agent that always ends with an answer of the model's own."""

from __future__ import annotations

from typing import Any

import pytest

from stepcraft import get_graph
from stepcraft.contexts.baselines import ReactContext
from tests.scripted import ScriptedModel, ToolModel, searching
from tests.shelf import QUESTION, Shelf, ids, shown


@pytest.mark.parametrize(("name", "passages"), [("direct", 0), ("rag", 2)])
def test_one_call(name: str, passages: int) -> None:
    model = ScriptedModel(["Haldruvin."])
    result = get_graph(name, model=model, sources=Shelf()).invoke(QUESTION)
    assert (model.nodes, result["answer"]) == (["answer"], "Haldruvin.")
    assert len(shown(model.calls[0].prompt, "passage")) == len(result["evidence"]) == passages


def agent(*replies: Any, **context: Any) -> tuple[Any, ToolModel, Shelf]:
    model, shelf = ToolModel(replies), Shelf()
    graph = get_graph("react", model=model, sources=shelf)
    return graph.invoke(QUESTION, context=ReactContext(**context)), model, shelf


def test_the_agent_searches_and_answers() -> None:
    result, _, shelf = agent(searching("Oster"), searching("mayor"), "Haldruvin, under Quandt.")
    assert shelf.queries == ["Oster", "mayor"]
    assert (result["answer"], result["usage"]["calls"]) == ("Haldruvin, under Quandt.", 3)
    assert ids(result) == ["Oster", "mayor"]


def test_searches_beyond_the_limit_are_blocked_and_a_notice_of_it_is_never_the_answer() -> None:
    calls = [searching(str(number)) for number in range(3)]
    result, model, shelf = agent(*calls, "Haldruvin.", max_searches=1)
    assert (shelf.queries, result["answer"]) == (["0"], "Haldruvin.")
    assert model.nodes[-1] == "answer"
    assert "tools" not in model.calls[-1].kwargs


def test_a_failing_agent_leaves_the_answer_to_one_call() -> None:
    result, _, _ = agent(RuntimeError("out of order"), "Haldruvin.")
    assert result["answer"] == "Haldruvin."
    assert "out of order" in str(result["warnings"])


def test_the_calls_of_a_failing_agent_are_counted() -> None:
    replies = [searching("Oster"), searching("mayor"), RuntimeError("503"), "Haldruvin."]
    result, model, _ = agent(*replies, max_calls=4)
    assert (result["answer"], len(model.calls), result["usage"]["calls"]) == ("Haldruvin.", 4, 4)
    assert result["usage"]["nodes"]["agent"]["output_tokens"] == 0 < result["usage"]["input_tokens"]
    assert ids(result) == ["Oster", "mayor"]


@pytest.mark.parametrize(("most", "calls"), [(1, ["answer"]), (2, ["model", "answer"])])
def test_one_call_is_reserved_for_the_agents_answer(most: int, calls: list[str]) -> None:
    def reply(node: str, _prompt: str) -> Any:
        return searching("Oster") if node == "model" else "Haldruvin."

    model = ToolModel(reply)
    graph = get_graph("react", model=model, sources=Shelf())
    result = graph.invoke(QUESTION, context=ReactContext(max_calls=most))
    assert (model.nodes, result["usage"]["calls"]) == (calls, most)
    assert result["answer"] == "Haldruvin."


def test_an_agent_takes_a_model_with_fallbacks() -> None:
    second = ToolModel([searching("Oster"), "Haldruvin."])
    model = ToolModel([RuntimeError("503")] * 2).with_fallbacks([second])
    result = get_graph("react", model=model, sources=Shelf()).invoke(QUESTION)
    assert (result["answer"], result["warnings"]) == ("Haldruvin.", [])
    assert result["usage"]["nodes"]["agent"]["calls"] == 4
