"""The baselines of one call: what they ask, what they look up, what they give, and what goes wrong."""

import asyncio
from typing import Any

import pytest
from langgraph.cache.memory import InMemoryCache
from langgraph.checkpoint.memory import InMemorySaver

from stepcraft import BadInput, MemoryFailure, NoAnswer
from stepcraft.graphs.baselines import build_cot, build_direct, build_few_shot, build_rag
from stepcraft.memory.local import LocalMemory
from tests.kitchen import GOAL, PROCEDURES, dish, small_memory
from tests.scripted import ScriptedModel
from tests.shelf import QUESTION, Shelf

BUILDERS = {"direct": build_direct, "cot": build_cot, "rag": build_rag, "few_shot": build_few_shot}
KEYS = {"answer", "evidence", "warnings", "usage"}


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Any:
    """Runs a graph either way."""
    if request.param == "sync":
        return lambda graph, given, context=None: graph.invoke(given, context=context)
    return lambda graph, given, context=None: asyncio.run(graph.ainvoke(given, context=context))


@pytest.mark.parametrize("name", BUILDERS)
def test_one_call(run: Any, name: str) -> None:
    model = ScriptedModel(["Haldruvin."])
    result = run(BUILDERS[name](model=model), {**QUESTION, "kind": "short"})
    assert set(result) - {"draft"} == KEYS
    assert (result["answer"], result["warnings"]) == ("Haldruvin.", [])
    assert result["usage"]["nodes"] == {
        "answer": {k: result["usage"][k] for k in ("calls", "input_tokens", "output_tokens")}
    }
    assert model.nodes == ["answer"]
    assert "One sentence at most" in model.calls[0].prompt


def test_the_prompt_of_direct() -> None:
    model = ScriptedModel(["Knead."])
    build_direct(model=model).invoke({"question": GOAL["question"], "resources": ["rye flour", "water"]})
    [call] = model.calls
    assert call.messages[0].text.startswith("Answer the question from what you know.")
    assert call.messages[1].text == (
        "<question>\nbake a rye bread\n</question>\n\n<resources>\nrye flour, water\n</resources>"
    )


def test_cot_keeps_its_thoughts_apart(run: Any) -> None:
    model = ScriptedModel(["It is in Mostar.\n\nThe Answer is old.\n\n**ANSWER**\nHaldruvin.\n\nIn 1566."])
    result = run(build_cot(model=model), QUESTION)
    assert result["draft"] == "It is in Mostar.\n\nThe Answer is old."
    assert result["answer"] == "Haldruvin.\n\nIn 1566."


@pytest.mark.parametrize(
    ("reply", "draft", "answer"),
    [
        ("I think.\nAnswer: Haldruvin.", "I think.", "Haldruvin."),
        ("I think.\n\n**Final answer:** Haldruvin.", "I think.", "Haldruvin."),
        ("I think.\n\nHaldruvin.", "I think.", "Haldruvin."),
        ("Haldruvin.", "", "Haldruvin."),
        ("## ANSWER\nHaldruvin.", "", "Haldruvin."),
    ],
)
def test_cot_reads_odd_replies(reply: str, draft: str, answer: str) -> None:
    result = build_cot(model=ScriptedModel([reply])).invoke(QUESTION)
    assert (result["draft"], result["answer"]) == (draft, answer)


def test_cot_without_an_answer_is_asked_again() -> None:
    model = ScriptedModel(["I think.\n\nANSWER:", "I think.\n\nANSWER: Haldruvin."])
    assert build_cot(model=model).invoke(QUESTION)["answer"] == "Haldruvin."
    assert "there was nothing under the line ANSWER." in model.calls[1].prompt


@pytest.mark.parametrize("k", [1, 5])
def test_rag_searches_once(run: Any, k: int) -> None:
    shelf, model = Shelf(), ScriptedModel(["Haldruvin."])
    result = run(build_rag(model=model, retriever=shelf), QUESTION, {"k": k})
    assert shelf.queries == [(QUESTION["question"], k)]
    assert len(result["evidence"]) == k
    assert [f"Passage {number} on" in model.calls[0].prompt for number in range(k)] == [True] * k


def test_rag_searches_the_memory_where_no_source_is_named(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPCRAFT_SOURCE", "nosuch")
    result = run(build_rag(model=ScriptedModel(["Knead."]), memory=small_memory()), GOAL)
    assert {found["id"] for found in result["evidence"]} <= {procedure.id for procedure in PROCEDURES}
    result = run(build_rag(model=ScriptedModel(["Knead."]), retriever=Shelf()), GOAL)
    assert result["evidence"][0]["title"] == "On bake a rye bread using rye flour, a sour"
    bundled = run(
        build_rag(model=ScriptedModel(["Knead."]), retriever=Shelf()), GOAL, {"retriever": "memory"}
    )
    assert "Passage" not in bundled["evidence"][0]["text"]
    with pytest.raises(BadInput, match="'nosuch' is no source of evidence"):
        run(build_rag(model=ScriptedModel([])), GOAL)


def test_rag_answers_from_given_passages(run: Any) -> None:
    shelf, model = Shelf(), ScriptedModel(["Haldruvin."])
    given = {**QUESTION, "passages": ["It was Haldruvin.", {"text": "In 1566.", "id": "b", "title": "When"}]}
    result = run(build_rag(model=model, retriever=shelf), given)
    assert [passage["text"] for passage in result["evidence"]] == ["It was Haldruvin.", "In 1566."]
    assert shelf.queries == []
    assert '<evidence id="2">\nWhen\nIn 1566.\n</evidence>' in model.calls[0].prompt


def test_passages_that_are_empty_are_not_searched_for(run: Any) -> None:
    shelf = Shelf()
    result = run(build_rag(model=ScriptedModel(["Perhaps."]), retriever=shelf), {**QUESTION, "passages": []})
    assert (result["evidence"], shelf.queries) == ([], [])
    assert result["warnings"] == ["the passages are empty; the answer is written without evidence"]


def test_a_search_that_fails_costs_the_search(run: Any) -> None:
    def says(_query: str) -> Any:
        raise OSError("the shelf fell down")

    result = run(build_rag(model=ScriptedModel(["Perhaps."]), retriever=Shelf(says=says)), QUESTION)
    assert (result["answer"], result["evidence"]) == ("Perhaps.", [])
    assert result["warnings"] == ["retrieve: a search failed: the shelf fell down"]


def test_few_shot_picks_the_same_examples_for_a_seed(run: Any) -> None:
    def picked(dishes: list[Any], **context: int) -> list[str]:
        with LocalMemory(":memory:", embeddings="none") as memory:
            memory.add(dishes)
            result = run(build_few_shot(model=ScriptedModel(["Bake."]), memory=memory), GOAL, context)
            return [found["title"] for found in result["evidence"]]

    dishes = [dish(number) for number in range(40)]
    first = picked(dishes, seed=1, k=5)
    assert len(set(first)) == 5
    assert picked(dishes[::-1], seed=1, k=5) == first
    assert picked(dishes, seed=2, k=5) != first
    assert picked(dishes, seed=1, k=2) == first[:2]
    assert set(picked(dishes, k=50)) == {one.output for one in dishes}


def test_the_prompt_of_few_shot() -> None:
    model = ScriptedModel(["1. Mix."])
    with small_memory() as memory:
        result = build_few_shot(model=model, memory=memory).invoke(GOAL, context={"k": 1})  # type: ignore[arg-type]
    [example] = result["evidence"]
    assert model.calls[0].messages[1].text.endswith(f'<evidence id="1">\n{example["text"]}\n</evidence>')


def test_a_memory_that_fails_costs_the_examples(run: Any) -> None:
    class Failing(LocalMemory):
        def __iter__(self) -> Any:
            raise MemoryFailure("the disk is gone")

    with Failing(":memory:", embeddings="none") as memory:
        memory.add(PROCEDURES)
        result = run(build_few_shot(model=ScriptedModel(["Bake."]), memory=memory), GOAL)
    assert result["warnings"] == ["sample: there are no examples: the disk is gone"]
    assert result["answer"] == "Bake."


@pytest.mark.parametrize("name", BUILDERS)
def test_no_answer(run: Any, name: str) -> None:
    model = ScriptedModel(lambda _node, _prompt: ValueError("boom"))
    with pytest.raises(NoAnswer, match=r"no answer was written: answer was skipped: .*ValueError: boom"):
        run(BUILDERS[name](model=model), QUESTION, {"retry_wait_s": 0})
    assert len(model.calls) == 3


@pytest.mark.parametrize("name", BUILDERS)
def test_a_thread_begins_afresh(name: str) -> None:
    model = ScriptedModel(["One.", "Two."])
    graph = BUILDERS[name](model=model, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    graph.invoke({**GOAL, "kind": "short", "passages": ["A passage."]}, config)
    second = graph.invoke({"question": "another goal"}, config)
    assert (second["answer"], second["usage"]["calls"]) == ("Two.", 1)
    for old in ("rye flour, a sourdough starter", "One sentence at most", "A passage."):
        assert old not in model.calls[1].messages[-1].text + model.calls[1].messages[0].text


@pytest.mark.parametrize("name", BUILDERS)
def test_replies_are_kept(name: str) -> None:
    model = ScriptedModel(["One."])
    graph = BUILDERS[name](model=model, cache=InMemoryCache())
    assert [graph.invoke(QUESTION)["usage"]["calls"] for _ in range(2)] == [1, 0]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"question": "x", "kind": "brief"}, "kind='brief' cannot be used: it should be one of long, short"),
        ({"question": "x", "kind": ["long"]}, "kind=.* cannot be used"),
        ({"question": "x", "resources": 5}, "resources must be a text, not int: 5"),
        ({"question": "x", "passages": [7]}, r"passages\[0\] must be a text"),
        ({"question": "x" * 60_000}, "question has 60,000 characters; at most 50,000 are taken"),
    ],
)
@pytest.mark.parametrize("name", BUILDERS)
def test_bad_input_fails_before_any_call(run: Any, name: str, given: Any, sentence: str) -> None:
    model = ScriptedModel([])
    with pytest.raises(BadInput, match=sentence):
        run(BUILDERS[name](model=model), given)
    assert model.calls == []
