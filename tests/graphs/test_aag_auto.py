"""AAG by its defaults, call by call: facts instead of examples, and questions only for what the draft doubts."""

from collections.abc import Iterator
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from stepcraft import AagContext, BadInput, build_aag
from stepcraft.memory.local import LocalMemory
from stepcraft.text.sections import UNFAMILIAR
from tests.graphs.test_aag import stages
from tests.kitchen import CLOCK, CONTENT, DRAFT, GOAL, cook, small_memory
from tests.scripted import ScriptedModel
from tests.shelf import Shelf

SURE = "1. Mix the rye flour, water and the sourdough starter.\n2. Let it rise.\n3. Bake it."
PATCH = "2: Let it rise overnight."
THREAD: Any = {"configurable": {"thread_id": "1"}}


@pytest.fixture
def memory() -> Iterator[LocalMemory]:
    with small_memory() as opened:
        yield opened


def run(
    memory: LocalMemory, context: Any = None, given: Any = GOAL, **replies: list[Any]
) -> tuple[dict[str, Any], ScriptedModel]:
    model = ScriptedModel(cook() | {"revise": [PATCH]} | replies)
    return build_aag(model=model, memory=memory).invoke(given, context=context), model


def prompt(model: ScriptedModel, node: str) -> str:
    return next(call.prompt for call in model.calls if call.node == node)


def test_nothing_is_asked_where_nothing_is_doubted(memory: LocalMemory) -> None:
    result, model = run(memory, draft=[SURE])
    assert stages(model) == [["draft"], ["critic"]]
    assert result["answer"] == SURE
    assert (result["questions"], result["warnings"]) == ([], [])


def test_one_question_for_each_doubt_and_each_unused_resource(memory: LocalMemory) -> None:
    result, model = run(memory, draft=[DRAFT])
    assert stages(model) == [["draft"], ["to_query"], ["answer"] * 2, ["revise"], ["critic"]]
    asked = prompt(model, "to_query")
    assert "- Let it rise for an hour.\n- a sourdough starter" in asked
    assert "exactly 2 questions, one for each doubt" in asked
    assert "[[Let it rise for an hour.]]" in asked
    assert "OUTLINE" not in asked
    assert [one["question"] for one in result["questions"]] == [
        "How is a sourdough starter fed?",
        "How is bread baked?",
    ]
    assert result["steps"][1] == "Let it rise overnight."
    assert "[[" not in repr(result)


@pytest.mark.parametrize(("n", "asked"), [(1, 1), (2, 2), (6, 6), (None, 4)])
def test_at_most_so_many_questions(memory: LocalMemory, n: int | None, asked: int) -> None:
    draft = "\n".join(f"{number}. Do [[thing {number}]]." for number in range(1, 9))
    questions = "QUESTIONS\n" + "\n".join(f"{number}. How is thing {number} done?" for number in range(1, 9))
    replies: dict[str, list[Any]] = {"draft": [draft], "to_query": [questions], "answer": ["Thus."] * 6}
    context = {} if n is None else {"n_questions": n}
    result, model = run(memory, {"k": 1, **context}, {"question": "do things"}, **replies)
    assert len(result["questions"]) == model.nodes.count("answer") == asked


def test_a_name_of_the_goal_that_the_draft_leaves_out_is_asked_about(memory: LocalMemory) -> None:
    given = {"question": "bake a bread with the RyeMaster and `dough_kit` in Riga"}
    draft = ["1. Set the RyeMaster up.\n2. Bake."]
    _, model = run(memory, given=given, draft=draft, revise=["NO CHANGE"])
    assert "<doubts>\n- dough_kit\n- Riga\n</doubts>" in prompt(model, "to_query")


def test_without_a_draft_questions_are_asked_about_the_goal(memory: LocalMemory) -> None:
    result, model = run(memory, draft=["", ""], revise=[SURE])
    assert stages(model) == [["draft"] * 2, ["to_query"], ["answer"] * 4, ["revise"], ["critic"]]
    assert "exactly 4 questions" in prompt(model, "to_query")
    assert result["answer"] == SURE


def test_sources_that_are_named_for_the_answers_are_asked(memory: LocalMemory) -> None:
    shelf, model = Shelf(), ScriptedModel(cook() | {"draft": [SURE], "revise": [PATCH]})
    graph = build_aag(model=model, memory=memory, retriever=shelf)
    graph.invoke(GOAL, context={"answer_from": "memory+source"})
    assert len(shelf.queries) == 4
    assert "exactly 4 questions" in prompt(model, "to_query")


def test_the_draft_is_written_without_the_procedures(memory: LocalMemory) -> None:
    memory.add([CLOCK])
    _, model = run(memory, {"k": 5}, {"question": "wind a clock"}, draft=["1. Wind the clock."])
    shown = prompt(model, "draft")
    assert "<evidence" not in shown
    assert "<names>\nwind_up\n</names>" in shown
    _, model = run(memory, {"examples": True}, draft=[SURE])
    assert "Carry over what serves" in prompt(model, "draft")
    assert "how to bake a white bread" in prompt(model, "draft")


@pytest.mark.parametrize(
    "declined", ["UNFAMILIAR", "**Unfamiliar**", "UNFAMILIAR\n\nI do not know this product."]
)
def test_a_draft_that_is_declined_is_written_from_the_procedures(memory: LocalMemory, declined: str) -> None:
    result, model = run(memory, {"k": 1}, draft=[declined, SURE])
    assert stages(model) == [["draft"], ["to_query"], ["draft"], ["critic"]]
    assert "how to feed a sourdough starter" in prompt(model, "to_query")
    assert "one to 4 questions" in prompt(model, "to_query")
    shown = model.calls[-2].prompt
    assert shown.count("<evidence id=") == len(result["evidence"]) > 1, "each procedure once"
    assert "how to bake a white bread" in shown
    assert "how to feed a sourdough starter" in shown
    assert UNFAMILIAR not in shown
    assert [asked["answer"] for asked in result["questions"]] == [""] * 4
    assert result["answer"] == SURE
    assert result["warnings"] == []


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({"questions": False}, [["draft"], ["draft"], ["critic"]]),
        ({"questions": True}, [["draft", "to_query"], ["draft"], ["critic"]]),
        ({"answers": True}, [["draft"], ["to_query"], ["answer"] * 4, ["draft"], ["critic"]]),
    ],
)
def test_the_ablations_of_a_draft_that_is_declined(
    memory: LocalMemory, context: dict[str, Any], expected: list[list[str]]
) -> None:
    result, model = run(memory, context, draft=[UNFAMILIAR, SURE])
    assert stages(model) == expected
    assert result["answer"] == SURE


def test_nobody_declines_twice_or_with_an_empty_memory(memory: LocalMemory) -> None:
    result, model = run(memory, draft=[UNFAMILIAR] * 3, revise=[SURE])
    assert model.nodes == ["draft", "to_query", "draft", "draft", "revise", "critic"]
    assert result["answer"] == SURE
    with LocalMemory(":memory:") as empty:
        _, model = run(empty, draft=[SURE])
    assert UNFAMILIAR not in prompt(model, "draft")


def test_a_declined_draft_can_be_resumed_anywhere(memory: LocalMemory) -> None:
    model = ScriptedModel(cook() | {"draft": [UNFAMILIAR, SURE]})
    graph = build_aag(model=model, memory=memory, checkpointer=InMemorySaver())
    graph.invoke(GOAL, THREAD, interrupt_before=["to_query"])
    graph.update_state(THREAD, {"queries": ["How is rye milled?"]}, as_node="to_query")
    result = graph.invoke(None, THREAD)
    assert model.nodes == ["draft", "draft", "critic"]
    assert [asked["question"] for asked in result["questions"]] == ["How is rye milled?"]


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({"questions": True}, [["draft", "to_query"], ["answer"] * 4, ["revise"], ["critic"]]),
        ({"questions": False}, [["draft"], ["critic"]]),
        ({"answers": False}, [["draft"], ["to_query"], ["revise"], ["critic"]]),
        ({"critic": False}, [["draft"], ["to_query"], ["answer"] * 2, ["revise"]]),
        ({"paper": True}, [["draft", "to_query"], ["answer"] * 4, ["revise"], ["critic"]]),
        ({"paper": True, "questions": False}, [["draft"], ["critic"]]),
    ],
)
def test_the_ablations(memory: LocalMemory, context: dict[str, Any], expected: list[list[str]]) -> None:
    _, model = run(memory, context, draft=[DRAFT], revise=["1. Mix.\n2. Wait.\n3. Bake."])
    assert stages(model) == expected


def test_the_paper_is_a_preset() -> None:
    paper = AagContext(paper=True)
    values = (paper.examples, paper.questions, paper.critic_evidence, paper.names, paper.rewrite)
    assert values == (True, True, False, False, "whole")
    assert AagContext(paper=True, questions=False, answers=False).questions is False
    assert AagContext(**{name: getattr(paper, name) for name in paper.changed}) == paper


@pytest.mark.parametrize("context", [{"examples": False}, {"questions": "often"}, {"rewrite": "some"}])
def test_bad_values(context: Any) -> None:
    with pytest.raises(BadInput, match="cannot be used"):
        AagContext(**context)


def test_the_drawn_graph_shows_both_orders(memory: LocalMemory) -> None:
    edges = {(edge.source, edge.target) for edge in build_aag(memory=memory).get_graph().edges}
    assert {("retrieve", "to_query"), ("draft", "to_query"), ("draft", "revise")} < edges
    assert {("revise", "check_names"), ("critic", "look_up"), ("look_up", "edit")} < edges


def test_a_draft_written_by_hand_is_asked_about(memory: LocalMemory) -> None:
    model = ScriptedModel(cook() | {"revise": ["NO CHANGE"]})
    graph = build_aag(model=model, memory=memory, checkpointer=InMemorySaver())
    graph.invoke({"question": "bake"}, THREAD, interrupt_before=["draft"])
    graph.update_state(THREAD, {"draft": ["Mix [[flour]]."]}, as_node="draft")
    result = graph.invoke(None, THREAD)
    assert model.nodes == ["to_query", "answer", "revise", "critic"]
    assert result["steps"] == ["Mix flour."]


def test_the_keyless_model_asks_about_unused_resources(memory: LocalMemory) -> None:
    given = {"question": "bake a white bread", "resources": "wheat flour, yeast, a rolling pin"}
    result = build_aag(model="extractive", memory=memory).invoke(given)
    assert [asked["question"] for asked in result["questions"]] == ["How does one work with a rolling pin?"]
    assert result["usage"]["nodes"]["draft"]["calls"] == 2, "it knows nothing without evidence"
    assert "NO CHANGE" not in result["answer"]
    assert CONTENT not in result["answer"]
