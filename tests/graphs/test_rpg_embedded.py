"""RPG inside of other people's graphs: whatever context, state and cache they hold; what it streams."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from langgraph.cache.memory import InMemoryCache

from stepcraft import BadInput, RpgContext, build_rpg
from tests.bridge import GIVEN, PLANS, QUESTION, documents, planner
from tests.graphs.parents import Shared, parent_of
from tests.scripted import ScriptedModel
from tests.shelf import Shelf, section

CYCLE = ["plan", "select", "answer"]


@dataclass
class Theirs:
    """Some fields have the names of ours."""

    max_cycles: int = 1
    temperature: float = 0.3
    user: str = "u"


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(planner())


def shelf() -> Shelf:
    return Shelf(says=documents)


@pytest.mark.parametrize(
    ("schema", "context", "passages", "cycles", "temperature"),
    [
        (None, None, 5, 3, 0.0),
        (None, {"k": 3, "theirs": 7}, 3, 3, 0.0),
        (dict, {"max_cycles": 2}, 5, 2, 0.0),
        (RpgContext, RpgContext(paper=True, k=4, temperature=None), 4, 3, None),
        (Theirs, Theirs(), 5, 1, 0.3),
    ],
    ids=["none", "a dict", "a dict of theirs", "ours", "their object"],
)
@pytest.mark.parametrize("inside", ["as a subgraph", "called in a node"])
async def test_the_context_of_a_parent(
    model: ScriptedModel, inside: str, schema: Any, context: Any, passages: int, cycles: int, temperature: Any
) -> None:
    found = shelf()
    rpg = build_rpg(model=model, retriever=found)

    async def calling(state: Shared) -> Shared:
        return {"answer": (await rpg.ainvoke({"question": state["question"]}))["answer"]}

    parent = parent_of(rpg if inside == "as a subgraph" else calling, schema)
    result = await parent.ainvoke(QUESTION, context=context)
    assert result["answer"] == "\n\n".join(f"On {plan}: so it was." for plan in PLANS[:cycles])
    assert {count for _, count in found.queries} == {passages}
    assert {call.kwargs.get("temperature") for call in model.calls} == {temperature}


@pytest.mark.parametrize("kind", [dict, SimpleNamespace])
def test_a_bad_value_of_a_parent_is_an_error(model: ScriptedModel, kind: Any) -> None:
    parent = parent_of(build_rpg(model=model, retriever=shelf()), kind)
    with pytest.raises(BadInput, match="max_cycles='many' cannot be used"):
        parent.invoke(QUESTION, context=kind(max_cycles="many", k=3))
    assert model.calls == []


class Full(Shared, total=False):
    """A parent that has fields of its own under names of ours that are not handed out."""

    evidence: list[Any]
    segments: list[Any]
    plan: dict[str, str]
    signal: int
    selected: list[str]
    answer_style: str


def test_what_is_not_handed_out_leaves_a_parents_fields_alone(model: ScriptedModel) -> None:
    parent = parent_of(build_rpg(model=model, retriever=shelf()), state=Full)
    own = {"plan": {"their": "plan"}, "signal": 9, "selected": ["theirs"], "answer_style": "theirs"}
    result = parent.invoke({**QUESTION, **own, "evidence": ["old"]})
    assert {name: result[name] for name in own} == own
    assert len(result["segments"]) == 3
    assert result["evidence"] == [], "nothing is cited"


@pytest.mark.parametrize("way", ["sync", "async"])
async def test_segments_stream_as_they_are_written(way: str) -> None:
    model = ScriptedModel(planner(), latency=0.05)
    parent = parent_of(build_rpg(model=model, retriever=shelf()))
    options: Any = {"stream_mode": "custom", "subgraphs": True, "context": {"paper": True}}
    if way == "sync":
        told = [(part, len(model.calls)) for _, part in parent.stream(QUESTION, **options)]
    else:
        told = [(part, len(model.calls)) async for _, part in parent.astream(QUESTION, **options)]
    segments = [(part["segment"], calls) for part, calls in told if part["type"] == "segment"]
    assert [segment["plan"] for segment, _ in segments] == PLANS
    assert told[-1][0]["type"] == "answer"
    assert told[-1][0]["answer"].startswith(f"On {PLANS[0]}")
    assert segments[0][1] < 6, "the first comes before the last is written"


def test_what_streams_is_what_is_given_back(model: ScriptedModel) -> None:
    told: list[Any] = []
    result: Any = {}
    graph = build_rpg(model=model, cache=InMemoryCache())
    for mode, part in graph.stream(GIVEN, stream_mode=["custom", "values"]):
        if mode == "custom":
            told += [part] if part["type"] != "progress" else []
        else:
            result = part
    *segments, end = told
    assert sorted(PLANS.index(part["segment"]["plan"]) for part in segments) == [0, 1, 2]
    assert end == {
        "type": "answer",
        "graph": "rpg",
        "answer": result["answer"],
        "sentences": result["sentences"],
    }
    calls = len(model.calls)
    again = [part for part in graph.stream(GIVEN, stream_mode="custom") if part["type"] != "progress"]
    assert (len(model.calls), again[-1], len(again)) == (calls, end, 4), "cached replies are streamed as well"


def test_a_segment_that_fails_is_not_streamed() -> None:
    plain = planner()
    model = ScriptedModel(
        lambda node, prompt: (
            ValueError("no")
            if node == "answer" and section(prompt, "plan") == PLANS[1]
            else plain(node, prompt)
        )
    )
    parts = build_rpg(model=model).stream(GIVEN, stream_mode="custom", context={"retry_wait_s": 0})
    told = list(parts)
    assert {part["segment"]["plan"] for part in told if part["type"] == "segment"} == {PLANS[0], PLANS[2]}
    [left_out] = [part for part in told if part.get("status") == "skipped" and part["node"] == "segment"]
    assert left_out["data"]["topic"] == PLANS[1]
    assert left_out["data"]["reason"] == "answer was skipped: the model could not be asked: ValueError: no"


def test_tokens_stream_with_the_name_of_their_node(model: ScriptedModel) -> None:
    parent = parent_of(build_rpg(model=model, retriever=shelf()))
    words: Counter[str] = Counter()
    for namespace, (_, facts) in parent.stream(
        QUESTION, context={"paper": True}, stream_mode="messages", subgraphs=True
    ):
        assert len(namespace) == 1
        words[facts["langgraph_node"]] += 1
    assert set(words) == {"plan", "answer"}
    assert words["answer"] > 20, "word by word"


def test_the_parents_stream_shows_our_nodes(model: ScriptedModel) -> None:
    parent = parent_of(build_rpg(model=model, retriever=shelf()))
    seen = Counter(
        node
        for namespace, update in parent.stream(
            QUESTION, context={"paper": True}, stream_mode="updates", subgraphs=True
        )
        for node in update
        if namespace
    )
    once = dict.fromkeys(("begin", "retrieve", "combine", "trace"), 1)
    assert seen == once | dict.fromkeys(CYCLE, 3)


def content(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name != "usage"}


@pytest.mark.parametrize("kind", ["long", "short", "multihop"])
@pytest.mark.parametrize("context", [{}, {"plan": False}, {"select": False}, {"citations": "inline"}])
async def test_a_cached_run_asks_nothing(model: ScriptedModel, kind: str, context: Any) -> None:
    graph = build_rpg(model=model, cache=InMemoryCache())
    given = {**GIVEN, "kind": kind}
    first = graph.invoke(given, context=context)
    calls = len(model.calls)
    again = [graph.invoke(given, context=context), await graph.ainvoke(given, context=context)]
    assert len(model.calls) == calls == first["usage"]["calls"]
    for result in again:
        assert (content(result), result["usage"]["calls"]) == (content(first), 0)


def test_another_kind_is_not_answered_from_the_cache(model: ScriptedModel) -> None:
    graph = build_rpg(model=model, cache=InMemoryCache())
    graph.invoke({**GIVEN, "kind": "short"}, context={"paper": True})
    graph.invoke({**GIVEN, "kind": "multihop"}, context={"paper": True})
    assert Counter(model.nodes) == {"plan": 4, "answer": 4, "combine": 1}


@pytest.mark.parametrize("fails", ["plan", "answer"])
def test_a_failed_step_is_not_kept(fails: str) -> None:
    plain, failing = planner(), True

    def reply(node: str, prompt: str) -> Any:
        third = node == fails and f"2. {PLANS[1]}" in prompt if fails == "plan" else PLANS[2] in prompt
        return "" if failing and node == fails and third else plain(node, prompt)

    model = ScriptedModel(reply)
    graph = build_rpg(model=model, cache=InMemoryCache())
    first = graph.invoke(GIVEN, context={"paper": True})
    failing = False
    calls = len(model.calls)
    second = graph.invoke(GIVEN, context={"paper": True})
    assert (len(first["segments"]), len(second["segments"])) == (2, 3)
    assert (len(first["warnings"]), second["warnings"]) == (1, [])
    assert model.nodes[calls:] == (["plan", "answer"] if fails == "plan" else ["answer"])


def test_the_drawing_shows_the_nodes() -> None:
    drawing = build_rpg().get_graph(xray=True).draw_mermaid()
    for node in (
        "begin",
        "retrieve",
        "outline",
        "plan",
        "select",
        "answer",
        "gather",
        "combine",
        "trace",
        "check",
    ):
        assert f"\t{node}({node}<hr/>" in drawing


def test_the_context_schema_is_what_studio_shows() -> None:
    fields = build_rpg().get_context_jsonschema()["properties"]
    assert all("default" in shown and shown["description"] for shown in fields.values())
    assert {"retriever", "k", "max_cycles", "plan", "retrieve", "select", "citations", "reranker"} <= set(
        fields
    )
    for node in ("plan", "answer", "combine"):
        shown = fields[f"{node}_instructions"]
        assert (shown["langgraph_nodes"], shown["langgraph_type"]) == ([node], "prompt")
        assert shown["default"] == getattr(RpgContext(paper=True), f"{node}_instructions")


def test_the_schemas_of_input_and_output() -> None:
    graph = build_rpg()
    given = graph.get_input_jsonschema()
    assert given["required"] == ["question"]
    assert set(given["properties"]) == {"question", "kind", "passages"}
    output = {"answer", "sentences", "plans", "segments", "evidence", "warnings", "usage"}
    assert set(graph.get_output_jsonschema()["properties"]) == output
