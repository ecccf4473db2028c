"""The paper's AAG, call by call: thirteen calls, and eight where the critic is content."""

from collections import Counter
from typing import Any

import pytest

from stepcraft_papers.contexts import AagPaperContext
from stepcraft_papers.graphs.aag import build_aag_paper
from tests.kitchen import GOAL, small_memory
from tests.scripted import ScriptedModel
from tests.shelf import shown

DRAFT = "1. Mix the rye flour with water.\n2. [[Let it rise for an hour.]]\n3. Bake it."
QUESTIONS = "\n".join(f"How is {thing} made?" for thing in ("starter", "bread", "flour", "yoghurt"))
CONTENT = "NO UPDATE REQUIRED"


def cook(critiques: int = 0, **replies: list[Any]) -> ScriptedModel:
    script = {
        "draft": [DRAFT],
        "to_query": [f"OUTLINE\n- mix\nQUESTIONS\n{QUESTIONS}"],
        "answer": [f"Answer {number}." for number in range(4)],
        "revise": [DRAFT.replace(" for an hour", "")],
        "critic": [*["* Edit the second step."] * critiques, CONTENT],
        "edit": [f"1. Mix.\n2. Edited {number} times." for number in range(critiques)],
    }
    return ScriptedModel({**script, **replies})


def run(model: ScriptedModel, **context: Any) -> Any:
    graph: Any = build_aag_paper(model=model, memory=small_memory())
    return graph.invoke(GOAL, context=AagPaperContext(**context))


@pytest.mark.parametrize(
    ("context", "critiques", "calls"),
    [
        ({}, 3, "draft to_query answer*4 revise critic*3 edit*3"),  # thirteen
        ({}, 0, "draft to_query answer*4 revise critic"),  # eight
        ({"questions": False}, 1, "draft critic*2 edit"),  # NOQG
        ({"answers": False}, 1, "draft to_query revise critic*2 edit"),  # NOAG
        ({"critic": False}, 0, "draft to_query answer*4 revise"),  # NOCR
    ],
)
def test_calls(context: Any, critiques: int, calls: str) -> None:
    model = cook(critiques)
    result = run(model, **context)
    counts = {node: int(times or 1) for node, _, times in (c.partition("*") for c in calls.split())}
    assert Counter(model.nodes) == counts
    assert sorted(counts, key=model.nodes.index)[2:] == list(counts)[2:]
    assert "[[" not in str({key: result[key] for key in ("answer", "steps", "questions")})


def test_the_draft_is_written_beside_the_questions_and_these_are_answered_side_by_side() -> None:
    result = run(model := cook())
    assert len({call.superstep for call in model.calls[:2]}) == 1
    assert len({call.superstep for call in model.calls[2:6]}) == 1
    revise = model.calls[6].prompt
    assert shown(revise, "steps") == [DRAFT]
    notes = [f"Q: {each['question']}\nA: {each['answer']}" for each in result["questions"]]
    assert shown(revise, "notes") == ["\n".join(notes)]


@pytest.mark.parametrize(
    ("model", "statuses"),
    [
        (cook(3), ["verified", "verified", "unverified"]),
        (cook(1), ["verified", "content"]),
        (cook(1, edit=[ValueError("overloaded")]), ["skipped", "content"]),
        (cook(critic=[f"{CONTENT}\n- Salt.", CONTENT], edit=["1. Mix."]), ["verified", "content"]),
    ],
)
def test_critiques_say_what_became_of_them(model: ScriptedModel, statuses: list[str]) -> None:
    assert [each["status"] for each in run(model)["critiques"]] == statuses
