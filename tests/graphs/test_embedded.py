"""AAG inside of other people's graphs: whatever context, state, store and cache they hold."""

from __future__ import annotations

import operator
import re
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langgraph.cache.memory import InMemoryCache
from langgraph.graph import StateGraph
from langgraph.store.memory import InMemoryStore

from stepcraft import AagContext, BadInput, RpgContext, build_aag, open_memory
from stepcraft.memory.local import LocalMemory
from tests.graphs.parents import Shared, parent_of
from tests.kitchen import GOAL, OUTPUT_KEYS, PAPER, PROCEDURES, REVISED, cook, small_memory
from tests.scripted import ScriptedModel

ALL = ["answer"] * 4 + ["critic", "draft", "revise", "to_query"]


@pytest.fixture
def memory() -> Iterator[LocalMemory]:
    with small_memory() as opened:
        yield opened


@pytest.fixture
def model() -> ScriptedModel:
    return ScriptedModel(cook())


def examples(model: ScriptedModel) -> int:
    """How many procedures a call was shown at most: the k of the run."""
    return max(call.prompt.count("<evidence id=") for call in model.calls)


def test_no_context(memory: LocalMemory, model: ScriptedModel) -> None:
    assert build_aag(model=model, memory=memory).invoke(GOAL, context=PAPER)["answer"] == REVISED
    assert (examples(model), sorted(model.nodes)) == (3, ALL)


def test_our_context(memory: LocalMemory, model: ScriptedModel) -> None:
    build_aag(model=model, memory=memory).invoke(GOAL, context=AagContext(paper=True, k=1, critic=False))
    assert (examples(model), sorted(model.nodes)) == (1, [name for name in ALL if name != "critic"])


def test_a_dict_through_a_parent_without_a_schema(memory: LocalMemory, model: ScriptedModel) -> None:
    parent = parent_of(build_aag(model=model, memory=memory))
    assert parent.invoke(GOAL, context={"paper": True, "k": 1, "questions": False, "theirs": 7})["answer"]
    assert (examples(model), model.nodes) == (1, ["draft", "critic"])


def test_a_bad_value_in_a_dict_is_an_error(memory: LocalMemory, model: ScriptedModel) -> None:
    parent = parent_of(build_aag(model=model, memory=memory))
    with pytest.raises(BadInput, match="k='many' cannot be used"):
        parent.invoke(GOAL, context={"paper": True, "k": "many"})
    assert model.calls == []


class TheirDict(TypedDict, total=False):
    k: int
    user: str


def test_a_dict_of_the_parents_schema(memory: LocalMemory, model: ScriptedModel) -> None:
    parent = parent_of(build_aag(model=model, memory=memory), TheirDict)
    parent.invoke(GOAL, context={"paper": True, "k": 2, "user": "u"})
    assert examples(model) == 2


@dataclass
class Theirs:
    """Some fields have the names of ours."""

    k: int = 2
    critic: bool = False
    paper: bool = True
    user: str = "u"


def test_a_parents_object_gives_the_fields_that_are_ours(memory: LocalMemory, model: ScriptedModel) -> None:
    parent = parent_of(build_aag(model=model, memory=memory), Theirs)
    assert parent.invoke(GOAL, context=Theirs())["answer"] == REVISED
    assert (examples(model), sorted(model.nodes)) == (2, [name for name in ALL if name != "critic"])


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("max_calls", 0, "max_calls=0 cannot be used: it should be greater than or equal to 1"),
        ("temperature", "mild", "temperature='mild' cannot be used"),
        ("memory", ["a chat history"], "pass objects to the function that builds the graph"),
        ("model", object(), "rename its field, or call this graph in a node with a context of its own"),
    ],
)
def test_a_bad_value_in_a_parents_object_is_an_error(
    memory: LocalMemory, model: ScriptedModel, field: str, value: Any, why: str
) -> None:
    parent = parent_of(build_aag(model=model, memory=memory), SimpleNamespace)
    with pytest.raises(BadInput, match=re.escape(why)):
        parent.invoke(GOAL, context=SimpleNamespace(user="u", **{field: value}))
    assert model.calls == []


def test_of_another_graphs_context_only_changed_settings_are_taken(
    memory: LocalMemory, model: ScriptedModel
) -> None:
    parent = parent_of(build_aag(model=model, memory=memory), RpgContext)
    parent.invoke(GOAL, context=RpgContext(k=2))
    assert examples(model) == 2, "a changed setting"
    assert all("temperature" not in call.kwargs for call in model.calls), "RPG's default is 0.0"


def test_an_unknown_field_of_a_dict_is_an_error_with_the_nearest_name(
    memory: LocalMemory, model: ScriptedModel
) -> None:
    graph = build_aag(model=model, memory=memory)
    with pytest.raises(BadInput, match=r"there is no setting 'max_update'; did you mean 'max_updates'\?"):
        graph.invoke(GOAL, context={"paper": True, "max_update": 1})  # type: ignore[arg-type]
    assert model.calls == []


@pytest.mark.parametrize(("schema", "context", "k"), [(None, None, 3), (Theirs, Theirs(k=1), 1)])
def test_called_inside_a_node(
    memory: LocalMemory, model: ScriptedModel, schema: Any, context: Any, k: int
) -> None:
    aag = build_aag(model=model, memory=memory)

    def node(state: Shared) -> Shared:
        return {"answer": aag.invoke({"question": state["question"]})["answer"]}

    assert parent_of(node, schema).invoke(GOAL, context=context)["answer"] == REVISED
    assert examples(model) == k


def test_called_inside_a_node_with_a_context_of_its_own(memory: LocalMemory, model: ScriptedModel) -> None:
    aag = build_aag(model=model, memory=memory)

    def node(state: Shared) -> Shared:
        own = AagContext(paper=True, k=1, questions=False)
        return {"answer": aag.invoke({"question": state["question"]}, context=own)["answer"]}

    parent_of(node, Theirs).invoke(GOAL, context=Theirs())
    assert (examples(model), model.nodes) == (1, ["draft", "critic"])


class Listing(Shared, total=False):
    """A parent with lists and reducers of its own under names that are ours, too."""

    warnings: Annotated[list[str], operator.add]
    questions: Annotated[list[Any], operator.add]
    evidence: Annotated[list[Any], operator.add]
    steps: list[str]
    usage: dict[str, Any]


def test_shared_lists_are_not_doubled(memory: LocalMemory, model: ScriptedModel) -> None:
    parent = parent_of(build_aag(model=model, memory=memory), state=Listing)
    before = {"warnings": ["theirs"], "questions": ["asked before"], "evidence": []}
    result = parent.invoke({**GOAL, **before}, context={"paper": True, "max_calls": 7})
    assert result["warnings"][0] == "theirs"
    assert [line.partition(":")[0] for line in result["warnings"][1:]] == ["the run stopped early"]
    assert result["questions"][0] == "asked before"
    assert [asked["question"] for asked in result["questions"][1:]] == [
        "How is a sourdough starter fed?",
        "How is bread baked?",
        "How is dough kneaded?",
        "How is bread cooled?",
    ]
    ids = [passage["id"] for passage in result["evidence"]]
    assert len(ids) == len(set(ids)) > 0
    assert result["usage"]["calls"] == len(model.calls) == 7


def test_the_parents_stream_shows_our_nodes(memory: LocalMemory, model: ScriptedModel) -> None:
    parent = parent_of(build_aag(model=model, memory=memory))
    seen = [
        node
        for namespace, update in parent.stream(GOAL, context=PAPER, stream_mode="updates", subgraphs=True)
        for node in update
        if namespace
    ]
    assert sorted(set(seen)) == sorted({*ALL, "begin", "retrieve"})


@pytest.mark.parametrize(
    "index", [None, {"dims": 8, "embed": DeterministicFakeEmbedding(size=8), "fields": ["text"]}]
)
def test_the_store_of_the_graph_is_a_memory(model: ScriptedModel, index: Any) -> None:
    store = InMemoryStore(index=index) if index else InMemoryStore()
    open_memory("store:", store=store).add(PROCEDURES)
    open_memory("store:elsewhere", store=store).add(PROCEDURES[:1])
    graph = build_aag(model=model, memory="store:", store=store)
    result = graph.invoke(GOAL, context=PAPER)
    assert {passage["id"] for passage in result["evidence"]} <= {procedure.id for procedure in PROCEDURES}
    assert (examples(model), result["warnings"]) == (3, [])


def test_the_context_names_a_part_of_the_store(model: ScriptedModel) -> None:
    store = InMemoryStore()
    open_memory("store:elsewhere", store=store).add(PROCEDURES[:1])
    result = build_aag(model=model, store=store, allow="store:*").invoke(
        GOAL, context={"paper": True, "memory": "store:elsewhere"}
    )
    assert [passage["id"] for passage in result["evidence"]] == [PROCEDURES[0].id]


async def test_the_store_of_a_parent_on_a_loop(model: ScriptedModel) -> None:
    store = InMemoryStore()
    open_memory("store:", store=store).add(PROCEDURES)
    builder = StateGraph(Shared)
    builder.add_node("write", build_aag(model=model, memory="store:"))
    builder.set_entry_point("write")
    assert (await builder.compile(store=store).ainvoke(GOAL, context=PAPER))["answer"] == REVISED
    assert examples(model) == 3


def test_a_store_that_is_not_there(model: ScriptedModel) -> None:
    with pytest.raises(BadInput, match="store: names LangGraph's store"):
        build_aag(model=model, memory="store:").invoke(GOAL, context=PAPER)
    assert model.calls == []


def twice(replies: dict[str, list[Any]]) -> ScriptedModel:
    return ScriptedModel({node: given * 2 for node, given in replies.items()})


def content(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name != "usage"}


def test_a_cached_run_asks_nothing(memory: LocalMemory) -> None:
    model = twice(cook(1))
    graph = build_aag(model=model, memory=memory, cache=InMemoryCache())
    first = graph.invoke(GOAL, context=PAPER)
    calls = len(model.calls)
    second = graph.invoke(GOAL, context=PAPER)
    assert (calls, len(model.calls)) == (10, 10)
    assert content(second) == content(first)
    assert (first["usage"]["calls"], second["usage"]["calls"]) == (10, 0)


async def test_a_cached_run_asks_nothing_on_a_loop(memory: LocalMemory) -> None:
    model = twice(cook())
    graph = build_aag(model=model, memory=memory, cache=InMemoryCache())
    first, second = await graph.ainvoke(GOAL, context=PAPER), await graph.ainvoke(GOAL, context=PAPER)
    assert len(model.calls) == first["usage"]["calls"] == 8
    assert (content(second), second["usage"]["calls"]) == (content(first), 0)


@pytest.mark.parametrize(
    "context",
    [
        {"k": 1},
        {"revise_instructions": "Improve it."},
        {"temperature": 0.5},
        {"node_models": {"critic": "extractive"}},
    ],
)
def test_another_context_is_not_answered_from_the_cache(memory: LocalMemory, context: Any) -> None:
    model = twice(cook())
    graph = build_aag(model=model, memory=memory, cache=InMemoryCache())
    graph.invoke(GOAL, context=PAPER)
    result = graph.invoke(GOAL, context={"paper": True, **context})
    assert len(model.calls) == (15 if "node_models" in context else 16)
    assert result["usage"]["calls"] == 8


def test_another_goal_is_not_answered_from_the_cache(memory: LocalMemory) -> None:
    model = twice(cook())
    graph = build_aag(model=model, memory=memory, cache=InMemoryCache())
    graph.invoke(GOAL, context=PAPER)
    graph.invoke({**GOAL, "question": "bake a wheat bread"})
    assert len([call for call in model.calls if call.node == "draft"]) == 2


def test_a_failed_step_is_not_kept(memory: LocalMemory) -> None:
    replies = cook()
    model = ScriptedModel(
        {node: given * 2 for node, given in replies.items()} | {"critic": ["", "", *replies["critic"]]}
    )
    graph = build_aag(model=model, memory=memory, cache=InMemoryCache())
    first, second = graph.invoke(GOAL, context=PAPER), graph.invoke(GOAL, context=PAPER)
    assert first["warnings"][0].startswith("critic was skipped")
    assert second["warnings"] == []
    assert [past["status"] for past in second["critiques"]] == ["content"]
    assert (second["usage"]["calls"], model.nodes[-1]) == (1, "critic")


def test_a_spent_budget_is_not_kept(memory: LocalMemory) -> None:
    model = twice(cook())
    graph = build_aag(model=model, memory=memory, cache=InMemoryCache())
    first = graph.invoke(GOAL, context={"paper": True, "max_calls": 7})
    second = graph.invoke(GOAL, context={"paper": True, "max_calls": 7})
    assert "max_calls=7" in first["warnings"][0]
    assert second["warnings"] == [], "the first run's replies left calls for the rest"
    assert second["usage"]["calls"] == 1


def test_the_drawing_shows_the_nodes() -> None:
    drawing = build_aag().get_graph().draw_mermaid()
    for node in ("draft", "to_query", "retrieve", "answer", "revise", "critic", "edit"):
        assert f"\t{node}({node}<hr/>" in drawing
    for edge in (
        "to_query --> retrieve",
        "answer -.-> revise",
        "draft -.-> retrieve",
        "draft -.-> revise",
        "critic -.-> edit",
        "edit -.-> critic",
    ):
        assert edge in drawing


def test_the_context_schema_is_what_studio_shows() -> None:
    schema = build_aag().get_context_jsonschema()
    fields = schema["properties"]
    assert fields["k"] | {"title": ""} == {
        "default": 3,
        "description": "Procedures retrieved for each query.",
        "langgraph_nodes": ["retrieve", "look_up"],
        "maximum": 50,
        "minimum": 1,
        "title": "",
        "type": "integer",
    }
    assert all("default" in shown and shown["description"] for shown in fields.values())
    assert {"model", "node_models", "memory", "max_calls", "deadline_s", "n_questions"} <= set(fields)
    for node in ("draft", "to_query", "answer", "revise", "critic", "edit"):
        shown = fields[f"{node}_instructions"]
        assert (shown["langgraph_nodes"], shown["langgraph_type"]) == ([node], "prompt")
        assert shown["default"] == getattr(AagContext(), f"{node}_instructions")


def test_the_schemas_of_input_and_output() -> None:
    graph = build_aag()
    assert set(graph.get_input_jsonschema()["properties"]) == {"question", "resources"}
    assert graph.get_input_jsonschema()["required"] == ["question"]
    assert set(graph.get_output_jsonschema()["properties"]) == OUTPUT_KEYS
