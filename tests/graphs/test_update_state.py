"""`update_state` at every node of every graph: the run goes on from what was written."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from stepcraft import AagContext, RatContext, RpgContext, build_aag, build_rat, build_rpg
from stepcraft.graphs.baselines import build_cot, build_direct, build_few_shot, build_rag, build_react
from tests.bridge import QUESTION as BRIDGE
from tests.bridge import documents, planner
from tests.graphs.killed import THREAD
from tests.kitchen import CONTENT, GOAL, PAPER, REVISED, cook, forever, small_memory
from tests.scripted import ScriptedModel
from tests.shelf import QUESTION, Shelf, section, thinker

PASSAGE = {
    "id": "mine",
    "title": "Mine",
    "text": "I built the Old Bridge of Mostar.",
    "source": "",
    "score": 1.0,
}
STEPS = {"steps": ["Mine."], "answer": "1. Mine."}
SENTENCE = {"passage": "mine", "position": 0, "text": "My own sentence.", "score": 1.0}
SEGMENT = {
    "plan": "mine",
    "sentences": [SENTENCE],
    "text": "Mine.",
    "evidence": ["mine"],
    "unsupported": False,
}

AAG_UPDATES: dict[str, dict[str, Any]] = {
    "begin": {},
    "retrieve": {"evidence": [PASSAGE]},
    "draft": {"draft": ["Mine."]},
    "to_query": {"queries": ["Mine?"]},
    "answer": {"questions": [{"question": "Mine?", "answer": "Mine.", "evidence": []}]},
    "revise": STEPS,
    "critic": {"edits": ["Mine."]},
    "edit": STEPS,
}
RAT_UPDATES: dict[str, dict[str, Any]] = {
    "begin": {},
    "draft": {"draft": "Mine.\n\nMy own."},
    "split": {"thoughts": ["Mine.\n\n", "My own."]},
    "step": {},
    "accept": {"text": "Mine.\n\n"},
    "finish": {"answer": "Mine."},
}
RPG_UPDATES: dict[str, dict[str, Any]] = {
    "begin": {},
    "retrieve": {"evidence": [PASSAGE]},
    "plan": {"plan": "mine", "signal": ""},
    "select": {"selected": [SENTENCE]},
    "answer": {"segments": [SEGMENT], "plans": ["mine"]},
    "combine": {"answer": "Mine.", "evidence": []},
}
BASELINE_UPDATES: dict[str, dict[str, Any]] = {"begin": {}, "answer": {"answer": "Mine."}}
SEARCHING = {**BASELINE_UPDATES, "retrieve": {"evidence": [PASSAGE]}}


def says(replies: Any) -> ScriptedModel:
    return ScriptedModel(replies)


def graphs() -> dict[str, tuple[Any, Any, Any, dict[str, dict[str, Any]]]]:
    """By name: how it is built, its input, its context, and what is written at each of its nodes."""
    shelf, saver = Shelf(), InMemorySaver()
    aag: dict[str, Any] = {"model": says(forever(cook(2))), "memory": small_memory(), "checkpointer": saver}
    rat: dict[str, Any] = {"model": says(thinker(".x.")), "retriever": shelf, "checkpointer": saver}
    found = Shelf(says=documents)
    rpg: dict[str, Any] = {"model": says(planner()), "retriever": found, "checkpointer": saver}
    alone: dict[str, Any] = {"model": says(lambda *_: "ANSWER\nIt stands."), "checkpointer": saver}
    return {
        "aag": (build_aag(**aag), GOAL, PAPER, AAG_UPDATES),
        "aag-auto": (build_aag(**aag), GOAL, None, AAG_UPDATES),
        "aag-NOQG": (build_aag(**aag), GOAL, AagContext(paper=True, questions=False), AAG_UPDATES),
        "aag-NOAG": (build_aag(**aag), GOAL, AagContext(paper=True, answers=False), AAG_UPDATES),
        "rat": (build_rat(**rat), QUESTION, RatContext(), RAT_UPDATES),
        "rat-not-causal": (build_rat(**rat), QUESTION, RatContext(causal=False), RAT_UPDATES),
        "rpg": (build_rpg(**rpg), BRIDGE, RpgContext(paper=True), RPG_UPDATES),
        "rpg-short": (build_rpg(**rpg), {**BRIDGE, "kind": "short"}, RpgContext(paper=True), RPG_UPDATES),
        "rpg-whole": (build_rpg(**rpg), BRIDGE, RpgContext(paper=True, select=False), RPG_UPDATES),
        "direct": (build_direct(**alone), QUESTION, None, BASELINE_UPDATES),
        "cot": (build_cot(**alone), QUESTION, None, BASELINE_UPDATES),
        "rag": (build_rag(**alone, retriever=shelf), QUESTION, None, SEARCHING),
        "few_shot": (build_few_shot(**alone, memory=small_memory()), GOAL, None, BASELINE_UPDATES),
        "react": (build_react(**alone, retriever=shelf), QUESTION, None, SEARCHING),
    }


@pytest.mark.parametrize("name", list(graphs()))
def test_a_run_goes_on_from_every_update_at_every_checkpoint(name: str) -> None:
    graph, given, context, updates = graphs()[name]
    graph.invoke(given, THREAD, context=context)
    checkpoints = [kept for kept in graph.get_state_history(THREAD) if "settings" in kept.values]
    assert len(checkpoints) > len(updates) / 2
    for kept in checkpoints:
        for node, update in [*updates.items(), *((None, update) for update in updates.values())]:
            where = f"{node or 'no node'} writes {list(update)} before {kept.next}"
            fork = graph.update_state(kept.config, update, as_node=node)
            result = graph.invoke(None, fork, context=context)
            assert graph.get_state(THREAD).next == (), where
            assert result["answer"], where


def aag(model: ScriptedModel, before: list[str]) -> Any:
    """A run of AAG that has stopped before a node."""
    graph = build_aag(model=model, memory=small_memory(), checkpointer=InMemorySaver())
    graph.invoke(GOAL, THREAD, context=PAPER, interrupt_before=before)
    assert set(graph.get_state(THREAD).next) == set(before)
    return graph


def test_steps_written_before_the_revision_are_not_revised() -> None:
    model = ScriptedModel(cook())
    graph = aag(model, ["revise"])
    graph.update_state(THREAD, STEPS, as_node="revise")
    result = graph.invoke(None, THREAD)
    assert (result["answer"], result["steps"]) == ("1. Mine.", ["Mine."])
    assert "revise" not in model.nodes
    assert section(model.calls[-1].prompt, "steps") == "1. Mine."


def test_a_draft_written_before_the_revision_is_revised_with_the_answers_that_are_there() -> None:
    for node in ("draft", None):
        model = ScriptedModel(cook())
        graph = aag(model, ["revise"])
        graph.update_state(THREAD, {"draft": ["Mine."]}, as_node=node)
        result = graph.invoke(None, THREAD)
        assert model.nodes.count("answer") == len(result["questions"]) == 4
        revision = next(call.prompt for call in model.calls if call.node == "revise")
        assert section(revision, "steps") == "1. Mine."
        assert revision.count("A: Answer") == 4
        assert result["answer"] == REVISED


def test_an_answer_written_before_the_revision_replaces_that_of_its_question() -> None:
    model = ScriptedModel(cook())
    graph = aag(model, ["revise"])
    asked = graph.get_state(THREAD).values["questions"][1]["question"]
    graph.update_state(THREAD, {"questions": [{"question": asked, "answer": "Mine.", "evidence": []}]})
    result = graph.invoke(None, THREAD)
    assert [one["answer"] for one in result["questions"]] == ["Answer 1.", "Mine.", "Answer 3.", "Answer 4."]
    assert model.nodes.count("answer") == 4


def test_a_draft_written_beside_the_questions_leaves_the_questions_to_the_model() -> None:
    model = ScriptedModel(cook())
    graph = aag(model, ["draft", "to_query"])
    graph.update_state(THREAD, {"draft": ["Mine."]}, as_node="draft")
    graph.invoke(None, THREAD)
    assert model.nodes == ["to_query", *["answer"] * 4, "revise", "critic"]


def test_questions_written_beside_the_draft_are_asked_and_the_draft_is_written() -> None:
    model = ScriptedModel(cook())
    graph = aag(model, ["draft", "to_query"])
    graph.update_state(THREAD, {"queries": ["How is bread made?"]}, as_node="to_query")
    result = graph.invoke(None, THREAD)
    assert model.nodes == ["draft", "answer", "revise", "critic"]
    assert [one["question"] for one in result["questions"]] == ["How is bread made?"]


def test_questions_written_before_the_revision_replace_the_earlier_ones() -> None:
    model = ScriptedModel(cook() | {"answer": ["Answer."] * 5})
    graph = aag(model, ["revise"])
    graph.update_state(THREAD, {"queries": ["How is mine made?"]}, as_node="to_query")
    result = graph.invoke(None, THREAD)
    assert [one["question"] for one in result["questions"]] == ["How is mine made?"]
    assert model.nodes.count("draft") == 1


def test_procedures_written_after_the_search_are_what_the_draft_is_shown() -> None:
    model = ScriptedModel(cook())
    graph = aag(model, ["draft", "to_query"])
    graph.update_state(THREAD, {"evidence": [PASSAGE]}, as_node="retrieve")
    graph.invoke(None, THREAD)
    [draft] = [call.prompt for call in model.calls if call.node == "draft"]
    assert (section(draft, "evidence"), draft.count("<evidence id=")) == (
        "Mine\nI built the Old Bridge of Mostar.",
        1,
    )


def test_edits_written_after_the_critic_are_applied() -> None:
    model = ScriptedModel(cook() | {"critic": [CONTENT, CONTENT], "edit": ["1. Edited."]})
    graph = build_aag(model=model, memory=small_memory(), checkpointer=InMemorySaver())
    graph.invoke(GOAL, THREAD, context=PAPER)
    graph.update_state(THREAD, {"edits": ["Mine."]}, as_node="critic")
    result = graph.invoke(None, THREAD)
    assert section(model.calls[-2].prompt, "edits") == "- Mine."
    assert (result["steps"], result["critiques"][1]) == (
        ["Edited."],
        {"edits": ["Mine."], "status": "verified"},
    )


def test_without_questions_a_draft_that_is_written_is_the_procedure() -> None:
    context = AagContext(paper=True, questions=False)
    model = ScriptedModel(cook())
    graph = build_aag(model=model, memory=small_memory(), checkpointer=InMemorySaver())
    graph.invoke(GOAL, THREAD, context=context, interrupt_before=["draft"])
    graph.update_state(THREAD, {"draft": ["[[Mine.]]"]}, as_node="draft")
    result = graph.invoke(None, THREAD, context=context)
    assert (result["answer"], model.nodes) == ("1. Mine.", ["critic"])


def test_a_draft_of_rat_that_is_rewritten_late_is_checked_from_its_first_thought() -> None:
    graph = build_rat(model=ScriptedModel(thinker("...")), retriever=Shelf(), checkpointer=InMemorySaver())
    graph.invoke(QUESTION, THREAD)
    graph.update_state(THREAD, {"draft": "One.\n\nTwo."}, as_node="draft")
    result = graph.invoke(None, THREAD)
    assert [revision["thought"] for revision in result["revisions"]] == ["One.\n\n", "Two."]


@pytest.mark.parametrize(
    ("node", "update", "first"),
    [
        ("retrieve", {"evidence": [PASSAGE]}, ["plan", "answer"]),
        ("plan", {"plan": "the destruction of the bridge", "signal": ""}, ["answer", "plan"]),
    ],
)
def test_what_runs_beside_what_was_written_is_still_made(node: str, update: Any, first: list[str]) -> None:
    model = ScriptedModel(planner())
    shelf = Shelf(says=documents)
    graph = build_rpg(model=model, retriever=shelf, checkpointer=InMemorySaver())
    graph.invoke(BRIDGE, THREAD, context=RpgContext(paper=True), interrupt_before=["plan", "retrieve"])
    graph.update_state(THREAD, update, as_node=node)
    result = graph.invoke(None, THREAD)
    assert model.nodes[:2] == first
    assert (len(shelf.queries), len(result["segments"])) == (int(node == "plan"), 3)
    assert {one["passage"] for one in result["segments"][0]["sentences"]} == (
        {"mine"} if node == "retrieve" else {"bridge"}
    )
