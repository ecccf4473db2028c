"""AAG by its defaults, call by call: facts instead of examples, and questions only for what the draft doubts."""

from collections.abc import Iterator
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from stepcraft import AagContext, BadInput, build_aag
from stepcraft.memory.local import LocalMemory
from stepcraft.text.sections import NOT_SAID, UNFAMILIAR
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
    assert stages(model) == [["assess"], ["draft"], ["critic"]]
    assert result["answer"] == SURE
    assert (result["questions"], result["warnings"]) == ([], [])


def test_one_question_for_each_doubt_and_each_unused_resource(memory: LocalMemory) -> None:
    result, model = run(memory, draft=[DRAFT])
    assert stages(model) == [["assess"], ["draft"], ["to_query"], ["answer"] * 2, ["revise"], ["critic"]]
    asked = prompt(model, "to_query")
    assert "- Let it rise for an hour.\n- a sourdough starter" in asked
    assert "one question for each doubt, 2 in all" in asked
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
    assert len(result["questions"]) == asked
    assert f"one question for each doubt, {asked} in all" in prompt(model, "to_query")


def test_a_name_of_the_goal_that_the_draft_leaves_out_is_asked_about(memory: LocalMemory) -> None:
    given = {"question": "bake a bread with the RyeMaster and `dough_kit` in Riga for an LLM"}
    draft = ["1. Set the RyeMaster up.\n2. Bake."]
    _, model = run(memory, given=given, draft=draft, revise=["NO CHANGE"])
    assert "<doubts>\n- dough_kit\n- Riga\n</doubts>" in prompt(model, "to_query")


def test_without_a_draft_questions_are_asked_about_the_goal(memory: LocalMemory) -> None:
    result, model = run(memory, draft=["", ""], revise=[SURE])
    assert stages(model) == [["assess"], ["draft"] * 2, ["to_query"], ["answer"] * 4, ["revise"], ["critic"]]
    assert "exactly 4 questions" in prompt(model, "to_query")
    assert result["answer"] == SURE


def test_sources_that_are_named_for_the_answers_are_asked(memory: LocalMemory) -> None:
    shelf, model = Shelf(), ScriptedModel(cook() | {"draft": [SURE], "revise": [PATCH]})
    graph = build_aag(model=model, memory=memory, retriever=shelf)
    graph.invoke(GOAL, context={"answer_from": "memory+source"})
    assert len(shelf.queries) == 4
    assert "exactly 4 questions" in prompt(model, "to_query")


def test_a_model_that_knows_the_goal_drafts_without_the_procedures(memory: LocalMemory) -> None:
    memory.add([CLOCK])
    _, model = run(memory, {"k": 5}, {"question": "wind a clock"}, draft=["1. Wind the clock."])
    assert "<names>\nwind_up\n</names>" in prompt(model, "assess")
    assert "<evidence" not in prompt(model, "assess") + prompt(model, "draft")
    assert "wind_up" not in prompt(model, "draft")
    _, model = run(memory, {"examples": True}, draft=[SURE])
    assert "assess" not in model.nodes
    assert "Carry over what serves" in prompt(model, "draft")
    assert "how to bake a white bread" in prompt(model, "draft")


@pytest.mark.parametrize("verdict", ["UNFAMILIAR", "**Unfamiliar.**", ["maybe", "UNFAMILIAR"], ["", ""]])
def test_a_model_that_does_not_drafts_from_what_is_found(memory: LocalMemory, verdict: Any) -> None:
    replies = [verdict] if isinstance(verdict, str) else verdict
    result, model = run(memory, {"k": 1}, assess=replies, draft=[SURE])
    assert stages(model) == [["assess"] * len(replies), ["to_query"], ["draft"], ["critic"]]
    assert "how to feed a sourdough starter" in prompt(model, "to_query")
    assert "one to 4 questions" in prompt(model, "to_query")
    shown = prompt(model, "draft")
    assert shown.count("<evidence id=") == len(result["evidence"]) > 1, "each procedure once"
    assert "how to bake a white bread" in shown
    assert "how to feed a sourdough starter" in shown
    assert [asked["answer"] for asked in result["questions"]] == [""] * 4
    assert result["answer"] == SURE


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({"questions": False}, [["assess"], ["draft"], ["critic"]]),
        ({"questions": True}, [["assess"], ["to_query"], ["draft"], ["critic"]]),
        ({"answers": True}, [["assess"], ["to_query"], ["answer"] * 4, ["draft"], ["critic"]]),
        ({"max_calls": 1}, [["draft"]]),
        ({"max_calls": 2}, [["assess"], ["draft"]]),
        ({"max_calls": 3}, [["assess"], ["to_query"], ["draft"]]),
    ],
)
def test_the_ablations_on_what_the_model_does_not_know(
    memory: LocalMemory, context: dict[str, Any], expected: list[list[str]]
) -> None:
    result, model = run(memory, context, assess=[UNFAMILIAR], draft=[SURE])
    assert stages(model) == expected
    assert "how to bake a white bread" in prompt(model, "draft")
    assert result["answer"] == SURE


def test_procedures_that_are_too_many_for_a_prompt_are_left_out(memory: LocalMemory) -> None:
    result, model = run(memory, {"max_input_tokens": 520}, assess=[UNFAMILIAR], draft=[SURE])
    left_out = [warning for warning in result["warnings"] if warning.startswith("draft: ")]
    assert len(left_out) == 1
    assert "the least similar, were left out to keep within 520 input tokens" in left_out[0]
    assert 0 < prompt(model, "draft").count("<evidence id=") < len(result["evidence"])


def test_a_draft_from_what_is_found_that_fails_is_made_up_for(memory: LocalMemory) -> None:
    result, model = run(memory, assess=[UNFAMILIAR], draft=["", ""], revise=[SURE])
    assert model.nodes == ["assess", "to_query", "draft", "draft", "revise", "critic"]
    assert result["answer"] == SURE


def test_nothing_is_assessed_with_an_empty_memory() -> None:
    with LocalMemory(":memory:") as empty:
        _, model = run(empty, draft=[SURE])
    assert model.nodes == ["draft", "critic"]


def test_a_draft_that_is_still_to_be_written_takes_what_was_found_for_other_questions(
    memory: LocalMemory,
) -> None:
    model = ScriptedModel(cook() | {"assess": [UNFAMILIAR], "draft": [SURE]})
    graph = build_aag(model=model, memory=memory, checkpointer=InMemorySaver())
    graph.invoke(GOAL, THREAD, interrupt_before=["to_query"])
    graph.update_state(THREAD, {"queries": ["How is rye milled?"]}, as_node="to_query")
    result = graph.invoke(None, THREAD)
    assert model.nodes == ["assess", "draft", "critic"]
    assert [asked["question"] for asked in result["questions"]] == ["How is rye milled?"]


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ({"questions": True}, [["assess"], ["draft", "to_query"], ["answer"] * 4, ["revise"], ["critic"]]),
        ({"questions": False}, [["assess"], ["draft"], ["critic"]]),
        ({"answers": False}, [["assess"], ["draft"], ["to_query"], ["revise"], ["critic"]]),
        ({"critic": False}, [["assess"], ["draft"], ["to_query"], ["answer"] * 2, ["revise"]]),
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


def test_what_nothing_is_found_for_costs_no_call(memory: LocalMemory) -> None:
    draft, questions = "1. Mix.\n2. Call [[the zeppelin]].", "QUESTIONS\n1. How is a zeppelin called?"
    result, model = run(memory, given={"question": "mix"}, draft=[draft], to_query=[questions])
    assert "answer" not in model.nodes
    assert result["questions"][0]["answer"] == NOT_SAID


def test_a_draft_written_by_hand_is_asked_about(memory: LocalMemory) -> None:
    model = ScriptedModel(cook() | {"revise": ["NO CHANGE"]})
    graph = build_aag(model=model, memory=memory, checkpointer=InMemorySaver())
    graph.invoke({"question": "bake"}, THREAD, interrupt_before=["draft"])
    graph.update_state(THREAD, {"draft": ["Mix [[flour]]."]}, as_node="draft")
    result = graph.invoke(None, THREAD)
    assert model.nodes == ["assess", "to_query", "answer", "revise", "critic"]
    assert result["steps"] == ["Mix flour."]


def test_the_keyless_model_asks_about_unused_resources(memory: LocalMemory) -> None:
    given = {"question": "bake a white bread", "resources": "wheat flour, yeast, a rolling pin"}
    result = build_aag(model="extractive", memory=memory).invoke(given)
    assert [asked["question"] for asked in result["questions"]] == ["How does one work with a rolling pin?"]
    assert "revise" not in result["usage"]["nodes"], "it knows nothing but its evidence"
    assert "NO CHANGE" not in result["answer"]
    assert CONTENT not in result["answer"]
