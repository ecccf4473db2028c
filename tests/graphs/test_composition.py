"""The methods put together: AAG with a source beside its memory, composed procedures, RAT and RPG over procedures."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from stepcraft import (
    AagContext,
    BadInput,
    Procedure,
    RatContext,
    RpgContext,
    build_aag,
    build_rat,
    build_rpg,
    compose,
)
from stepcraft.memory.files import write_jsonl
from stepcraft.memory.local import LocalMemory
from stepcraft.memory.protocol import Found
from stepcraft.memory.retriever import composed
from tests.kitchen import GOAL, PAPER, PROCEDURES, QUESTIONS, REVISED, cook, small_memory
from tests.scripted import ScriptedModel
from tests.shelf import DRAFT, Shelf, thinker

BESIDE = "Beside procedures the evidence holds passages from other sources; the answer may rest on either."
STARTER = Procedure(
    "a jar, rye flour", "a sourdough starter", ("Stir flour and water.", "Wait a day."), source="s.md"
)
BREAD = Procedure(
    "salt, A sourdough  starter", "a sourdough bread", ("Knead.", "Bake the bread."), source="b.md"
)
TOAST = Procedure("a sourdough bread", "toast", ("Toast it.",))


@pytest.fixture
def memory() -> Iterator[LocalMemory]:
    with small_memory() as opened:
        yield opened


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Any:
    """Runs a graph either way."""
    if request.param == "sync":
        return lambda graph, given, context=None: graph.invoke(given, context=context)
    return lambda graph, given, context=None: asyncio.run(graph.ainvoke(given, context=context))


def asked_of(model: ScriptedModel, node: str) -> list[str]:
    return [call.prompt for call in model.calls if call.node == node]


def test_answers_from_the_memory_and_a_source(run: Any, memory: LocalMemory) -> None:
    shelf, model = Shelf(), ScriptedModel(cook())
    graph = build_aag(model=model, memory=memory, retriever=shelf)
    result = run(graph, GOAL, AagContext(paper=True, answer_from="memory+source", k=2))
    questions = [line[3:] for line in QUESTIONS.splitlines()[-4:]]
    assert sorted(shelf.queries) == sorted((question, 2) for question in questions)
    assert sorted(model.nodes) == sorted(["draft", "to_query", *["answer"] * 4, "revise", "critic"])
    assert result["usage"]["calls"] == 8
    known = {procedure.id for procedure in PROCEDURES}
    for asked in result["questions"]:
        first, second, *rest = asked["evidence"]
        assert (first in known, second) == (True, f"{asked['question']}/0"), "the best of each first"
        assert f"{asked['question']}/1" in rest
    for prompt in asked_of(model, "answer"):
        assert BESIDE in prompt
        assert "Passage 1 on" in prompt
        assert "how to" in prompt
    assert all("Passage" not in prompt for prompt in asked_of(model, "draft"))
    assert {f"{question}/1" for question in questions} < {found["id"] for found in result["evidence"]}


def test_without_being_asked_for_no_source_is_searched(run: Any, memory: LocalMemory) -> None:
    shelf, model = Shelf(), ScriptedModel(cook())
    result = run(build_aag(model=model, memory=memory, retriever=shelf), GOAL, PAPER)
    assert shelf.queries == []
    assert all(BESIDE not in prompt for prompt in asked_of(model, "answer"))
    assert result["answer"] == REVISED


def test_both_are_searched_side_by_side(run: Any) -> None:
    both = Barrier(2, timeout=10)

    class Meeting(LocalMemory):
        def search(self, query: str, k: int = 3, *, alpha: float | None = None) -> Any:
            if "using" not in query:
                both.wait()
            return super().search(query, k, alpha=alpha)

        async def asearch(self, query: str, k: int = 3, *, alpha: float | None = None) -> Any:
            return await asyncio.to_thread(self.search, query, k, alpha=alpha)

    def says(_query: str) -> Any:
        both.wait()

    with Meeting(":memory:", embeddings="none") as memory:
        memory.add(PROCEDURES)
        graph = build_aag(model=ScriptedModel(cook()), memory=memory, retriever=Shelf(says=says))
        result = run(graph, GOAL, AagContext(paper=True, answer_from="memory+source", n_questions=1))
    assert result["warnings"] == [], "each waits until the other is under way"


def test_a_source_that_fails_leaves_the_memory(run: Any, memory: LocalMemory) -> None:
    def says(_query: str) -> Any:
        raise OSError("the shelf fell down")

    graph = build_aag(model=ScriptedModel(cook()), memory=memory, retriever=Shelf(says=says))
    result = run(graph, GOAL, AagContext(paper=True, answer_from="memory+source"))
    assert result["warnings"] == ["retrieve: a search failed: Shelf: the shelf fell down"]
    assert all(asked["evidence"] for asked in result["questions"])


def test_a_source_must_be_named(run: Any, memory: LocalMemory) -> None:
    model = ScriptedModel([])
    with pytest.raises(BadInput, match="no source is named for the evidence; name corpus:PATH"):
        run(build_aag(model=model, memory=memory), GOAL, AagContext(paper=True, answer_from="memory+source"))
    assert model.calls == []


def baker() -> LocalMemory:
    memory = LocalMemory(":memory:", embeddings="none")
    memory.add([STARTER, BREAD])
    return memory


def test_a_composed_pair_is_offered_to_the_draft_as_one(run: Any) -> None:
    model = ScriptedModel(cook())
    with baker() as memory:
        result = run(
            build_aag(model=model, memory=memory),
            {"question": "a sourdough bread"},
            AagContext(paper=True, compose=True),
        )
    whole = compose(STARTER, BREAD)
    [prompt] = asked_of(model, "draft")
    assert prompt.endswith(
        '<evidence id="1">\n'
        "a sourdough bread (composed: first a sourdough starter)\n"
        "how to a sourdough bread using a jar, rye flour\n"
        "1. Stir flour and water.\n2. Wait a day.\n3. Knead.\n4. Bake the bread.\n"
        "</evidence>"
    )
    flagged = [found for found in result["evidence"] if "composed_of" in found]
    assert [(found["id"], found["composed_of"], found["source"]) for found in flagged] == [
        (whole.id, [STARTER.id, BREAD.id], "s.md, b.md")
    ]
    assert flagged[0]["title"] == "a sourdough bread (composed: first a sourdough starter)"
    for asked in result["questions"]:
        assert set(asked["evidence"]) <= {STARTER.id, BREAD.id}, "questions are about the parts"


def test_nothing_is_composed_unless_asked_for(run: Any) -> None:
    model = ScriptedModel(cook())
    with baker() as memory:
        graph = build_aag(model=model, memory=memory)
        result = run(graph, {"question": "a sourdough bread"}, {"examples": True})
    [prompt] = asked_of(model, "draft")
    assert prompt.count("<evidence id=") == 2
    assert all("composed_of" not in found for found in result["evidence"])


def test_each_procedure_is_in_one_pair() -> None:
    other = PROCEDURES[0]
    hits = [Found(TOAST, 0.9), Found(other, 0.8), Found(BREAD, 0.7), Found(STARTER, 0.6)]
    assert [tuple(hit.procedure for hit in pair) for pair in composed(hits)] == [
        (BREAD, TOAST),
        (other,),
        (STARTER,),
    ]
    assert composed([]) == []


def test_rat_over_procedures(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "kitchen.jsonl"
    write_jsonl(PROCEDURES, file)
    draft = "To slice a bread, let it cool.\n\nTo bake a white bread, knead flour and yeast."
    model = ScriptedModel(thinker("xx", draft))
    context = RatContext(passages_per_step=1, window=1)
    result = run(
        build_rat(model=model, retriever=f"memory:{file}"),
        {"question": "How is a bread made and sliced?"},
        context,
    )
    assert model.nodes == ["draft", *["to_query", "revise"] * 2, "finish"]
    known = {procedure.id: procedure for procedure in PROCEDURES}
    for revision in result["revisions"]:
        [passage] = revision["evidence"]
        assert passage["text"] == known[passage["id"]].text()
    assert [found["id"] in known for found in result["evidence"]] == [True] * len(result["evidence"])
    assert DRAFT not in result["answer"]


def test_rpg_over_procedures(run: Any, tmp_path: Path) -> None:
    file = tmp_path / "kitchen.jsonl"
    write_jsonl(PROCEDURES, file)
    model = ScriptedModel(
        {
            "plan": ["Slicing a bread once it is cool", "<complete>"],
            "answer": ["Let the bread cool, then cut it."],
        }
    )
    context = RpgContext(k=4, paper=True)
    result = run(
        build_rpg(model=model, retriever=f"memory:{file}"), {"question": "How is a bread sliced?"}, context
    )
    assert model.nodes[:2] == ["plan", "answer"]
    [segment] = result["segments"]
    known = {procedure.id: procedure for procedure in PROCEDURES}
    assert any("Let the bread cool." in sentence["text"] for sentence in segment["sentences"])
    assert set(segment["evidence"]) <= set(known)
