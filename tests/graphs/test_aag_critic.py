"""AAG's critic sees the evidence, and what its edits name is looked up."""

from collections.abc import Iterator
from typing import Any

import pytest

from stepcraft import build_aag
from stepcraft.memory.local import LocalMemory
from tests.graphs.test_aag import CountingMemory
from tests.kitchen import CLOCK, CONTENT, GOAL, PROCEDURES, cook
from tests.scripted import ScriptedModel


@pytest.fixture
def memory() -> Iterator[CountingMemory]:
    with CountingMemory(":memory:", embeddings="none") as opened:
        opened.add([*PROCEDURES, CLOCK])
        yield opened


def run(memory: LocalMemory, context: Any, **replies: list[Any]) -> tuple[dict[str, Any], ScriptedModel]:
    model = ScriptedModel(cook() | replies)
    return build_aag(model=model, memory=memory).invoke(GOAL, context=context), model


def prompt(model: ScriptedModel, node: str) -> str:
    return next(call.prompt for call in model.calls if call.node == node)


def test_the_critic_sees_the_goals_evidence_and_the_answers(memory: CountingMemory) -> None:
    result, model = run(memory, {"examples": True, "questions": True, "k": 1})
    shown = prompt(model, "critic")
    assert shown.count("<evidence id=") == 1 < len(result["evidence"])
    assert (
        shown.split("<evidence id=")[1]
        == prompt(model, "draft").split("<evidence id=")[1].partition("\n\n<")[0]
        + (shown.split("<evidence id=")[1].partition("</evidence>")[2])
    )
    assert "Q: How is bread baked?\nA: Answer" in shown
    assert shown.index("<evidence") < shown.index("<steps>"), "what stays the same comes first"


@pytest.mark.parametrize("context", [{"critic_evidence": False}, {"paper": True}])
def test_off(memory: CountingMemory, context: dict[str, Any]) -> None:
    _, model = run(
        memory, context, critic=["- Step 1: use `wind_up`.", CONTENT], edit=["1. A.\n2. B.\n3. C."]
    )
    assert "<evidence" not in prompt(model, "critic")
    assert "<notes>" not in prompt(model, "critic")
    assert not [query for query, _ in memory.queries if "wind_up" in query]


def test_an_edit_that_names_something_new_is_looked_up_first(memory: CountingMemory) -> None:
    edits = "- Step 1: turn the clock's key with `wind_up`.\n- Step 2: shorten it."
    result, model = run(memory, {"k": 1}, critic=[edits, CONTENT], edit=["1: Call `wind_up`."])
    assert memory.queries[-1][0] == "Step 1: turn the clock's key with `wind_up`."
    assert "Turn the key with `wind_up`." in prompt(model, "edit")
    assert CLOCK.id in {passage["id"] for passage in result["evidence"]}
    assert [name["verified"] for name in result["names"]] == [True]


def test_an_edit_that_names_nothing_new_is_not_looked_up(memory: CountingMemory) -> None:
    edits = "- Step 1: name the `rye flour`.\n- Step 2: say how long."
    _, model = run(memory, {"k": 1}, critic=[edits, CONTENT], edit=["1: Mix."])
    assert not [query for query, _ in memory.queries if "Step" in query]
    assert model.nodes[-3:] == ["critic", "edit", "critic"]
