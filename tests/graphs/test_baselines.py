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
