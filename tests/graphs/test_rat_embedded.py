"""RAT inside of other people's graphs: whatever context, state and cache they hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from langgraph.cache.memory import InMemoryCache

from stepcraft import BadInput, RatContext, build_rat
from tests.graphs.parents import Shared, parent_of
from tests.scripted import ScriptedModel
from tests.shelf import DRAFT, QUESTION, Shelf, thinker

STEP = ["to_query", "retrieve", "revise", "note"]


@dataclass
class Theirs:
    """Some fields have the names of ours."""

    passages_per_step: int = 1
    finish: str = "thoughts"
    user: str = "u"


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(thinker("..."))


@pytest.mark.parametrize(
    ("schema", "context", "passages", "answer"),
    [
        (None, None, 2, "The answer."),
        (None, {"passages_per_step": 3, "theirs": 7}, 3, "The answer."),
        (dict, {"finish": "thoughts"}, 1, DRAFT),
        (RatContext, RatContext(passages_per_step=4), 4, "The answer."),
        (Theirs, Theirs(), 1, DRAFT),
    ],
    ids=["none", "a dict", "a dict of theirs", "ours", "their object"],
)
@pytest.mark.parametrize("inside", ["as a subgraph", "called in a node"])
async def test_the_context_of_a_parent(
    model: ScriptedModel, inside: str, schema: Any, context: Any, passages: int, answer: str
) -> None:
    shelf = Shelf()
    rat = build_rat(model=model, retriever=shelf)

    async def calling(state: Shared) -> Shared:
        return {"answer": (await rat.ainvoke({"question": state["question"]}))["answer"]}

    parent = parent_of(rat if inside == "as a subgraph" else calling, schema)
    assert (await parent.ainvoke(QUESTION, context=context))["answer"] == answer
    assert {count for _, count in shelf.queries} == {passages}


def test_called_in_a_node_with_a_context_of_its_own(model: ScriptedModel) -> None:
    rat = build_rat(model=model, retriever=Shelf())

    def node(state: Shared) -> Shared:
        own = RatContext(finish="thoughts", query="draft")
        return {"answer": rat.invoke({"question": state["question"]}, context=own)["answer"]}

    assert parent_of(node, Theirs).invoke(QUESTION, context=Theirs())["answer"] == DRAFT
    assert model.nodes == ["draft", *["revise"] * 3]


@pytest.mark.parametrize("kind", [dict, SimpleNamespace])
def test_a_bad_value_of_a_parent_is_an_error(model: ScriptedModel, kind: Any) -> None:
    parent = parent_of(build_rat(model=model, retriever=Shelf()), kind)
    with pytest.raises(BadInput, match="window='wide open' cannot be used"):
        parent.invoke(QUESTION, context=kind(window="wide open", split="paragraphs"))
    assert model.calls == []


class Full(Shared, total=False):
    """A parent that has fields of its own under names of ours that are not handed out."""

    evidence: list[Any]
    revisions: list[Any]
    text: str
    done: bool
    results: list[str]


def test_what_is_not_handed_out_leaves_a_parents_fields_alone(model: ScriptedModel) -> None:
    parent = parent_of(build_rat(model=model, retriever=Shelf()), state=Full)
    own = {"text": "theirs", "done": True, "results": ["theirs"]}
    result = parent.invoke({**QUESTION, **own, "evidence": ["old"]})
    assert {name: result[name] for name in own} == own
    assert len(result["revisions"]) == 3
    assert len(result["evidence"]) == 6


def test_tokens_stream_with_the_name_of_their_node(model: ScriptedModel) -> None:
    parent = parent_of(build_rat(model=model, retriever=Shelf()))
    words: Counter[str] = Counter()
    depths: dict[str, int] = {}
    for namespace, (_, facts) in parent.stream(QUESTION, stream_mode="messages", subgraphs=True):
        words[facts["langgraph_node"]] += 1
        depths[facts["langgraph_node"]] = len(namespace)
    assert set(words) == {"draft", "to_query", "revise", "finish"}
    assert words["draft"] > 10, "word by word"
    assert depths == {"draft": 1, "to_query": 2, "revise": 2, "finish": 1}


def test_the_parents_stream_shows_our_nodes(model: ScriptedModel) -> None:
    parent = parent_of(build_rat(model=model, retriever=Shelf()))
    seen = Counter(
        node
        for namespace, update in parent.stream(QUESTION, stream_mode="updates", subgraphs=True)
        for node in update
        if namespace
    )
    rounds = {"begin": 1, "draft": 1, "split": 1, "accept": 2, "finish": 1}
    assert seen == rounds | {"step": 3} | dict.fromkeys(STEP, 3)


def content(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name != "usage"}


@pytest.mark.parametrize("context", [{}, {"causal": False}, {"split": "model"}, {"revise_scope": "thought"}])
async def test_a_cached_run_asks_nothing(context: Any) -> None:
    think = thinker(".x.")
    model = ScriptedModel(lambda node, prompt: DRAFT if node == "split" else think(node, prompt))
    graph = build_rat(model=model, retriever=Shelf(), cache=InMemoryCache())
    first = graph.invoke(QUESTION, context=context)
    calls = len(model.calls)
    again = [graph.invoke(QUESTION, context=context), await graph.ainvoke(QUESTION, context=context)]
    assert len(model.calls) == calls == first["usage"]["calls"]
    for result in again:
        assert (content(result), result["usage"]["calls"]) == (content(first), 0)


def test_another_question_is_not_answered_from_the_cache(model: ScriptedModel) -> None:
    graph = build_rat(model=model, retriever=Shelf(), cache=InMemoryCache())
    graph.invoke(QUESTION)
    graph.invoke({"question": "Who rebuilt it?"})
    assert Counter(model.nodes) == {"draft": 2, "to_query": 6, "revise": 6, "finish": 2}


@pytest.mark.parametrize("fails", ["to_query", "revise", "retrieve"])
def test_a_failed_step_is_not_kept(fails: str) -> None:
    think, failing = thinker("..."), True

    def reply(node: str, prompt: str) -> Any:
        return "" if failing and node == fails and "2004" in prompt else think(node, prompt)

    def moody(query: str) -> None:
        if failing and fails == "retrieve" and "2004" in query:
            raise OSError("the shelf fell over")

    model = ScriptedModel(reply)
    graph = build_rat(model=model, retriever=Shelf(says=moody), cache=InMemoryCache())
    first = graph.invoke(QUESTION, context={"show_rest": False})
    calls = len(model.calls)
    failing = False
    second = graph.invoke(QUESTION, context={"show_rest": False})
    assert [bool(revision["skipped"]) for revision in first["revisions"]] == [False, False, True]
    assert [bool(revision["skipped"]) for revision in second["revisions"]] == [False, False, False]
    assert (len(first["warnings"]), second["warnings"]) == (1, [])
    again = ["to_query", "revise"] if fails == "to_query" else ["revise"]
    assert model.nodes[calls:] == again


def test_the_drawing_shows_the_nodes() -> None:
    drawing = build_rat().get_graph(xray=True).draw_mermaid()
    for node in ("begin", "draft", "split", "accept", "finish"):
        assert f"\t{node}({node}<hr/>" in drawing
    for node in STEP:
        assert f"step\\3a{node}({node}<hr/>" in drawing


def test_the_context_schema_is_what_studio_shows() -> None:
    fields = build_rat().get_context_jsonschema()["properties"]
    assert all("default" in shown and shown["description"] for shown in fields.values())
    assert {"retriever", "finish", "window", "causal", "max_retrievals", "step_deadline_s"} <= set(fields)
    for node in ("draft", "split", "to_query", "revise", "finish"):
        shown = fields[f"{node}_instructions"]
        assert (shown["langgraph_nodes"], shown["langgraph_type"]) == ([node], "prompt")
        assert shown["default"] == getattr(RatContext(), f"{node}_instructions")


def test_the_schemas_of_input_and_output() -> None:
    graph = build_rat()
    assert graph.get_input_jsonschema()["required"] == ["question"]
    output = {"answer", "draft", "revisions", "evidence", "warnings", "usage"}
    assert set(graph.get_output_jsonschema()["properties"]) == output
