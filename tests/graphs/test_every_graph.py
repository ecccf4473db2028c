"""What holds for every graph: its input, settings, edges, events, and the ways to run it."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt
from pydantic import ValidationError

from stepcraft import (
    AagContext,
    BadInput,
    NoAnswer,
    RatContext,
    aag_builder,
    build_aag,
    build_rat,
    build_rpg,
    get_graph,
    rat_builder,
    rpg_builder,
)
from stepcraft.contexts.base import Settings
from stepcraft.graphs.registry import GRAPHS, context_of
from tests.kitchen import CHANGE, DRAFT, GAPS, LOOK_UP, small_memory
from tests.scripted import ScriptedModel, ToolModel, block, searching
from tests.servers.openai_server import OpenAIServer
from tests.shelf import QUESTION, THREAD, Shelf
from tests.sources import own

REPLIES = {
    "rat": ["Haldruvin built it.", block(1, new="In 1873."), "NO CHANGE"],
    "rpg": [
        "KIND: long\n- Oster",
        "- mayor",
        "It has arches [p1].",
        block(1, new="Four of them."),
        "NO CHANGE",
    ],
    "aag": [LOOK_UP, GAPS, DRAFT, CHANGE, "NO CHANGE"],
}


def scripted_settings(name: str) -> Settings:
    """Return the settings that take all of a script's replies."""
    looks = {"looks": 2} if name == "aag" else {}
    return context_of(name)(rounds=2, **looks)


def scripted(
    name: str, *, replies: list[Any] | None = None, **options: Any
) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(replies or REPLIES[name])
    options |= {"settings": scripted_settings(name)} if name in REPLIES else {}
    options = {"sources": Shelf(), "memory": small_memory(), **options}
    return get_graph(name, model=model, **options), model


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(
    "given",
    [
        {"question": ""},
        {"question": " \n"},
        {"question": 7},
        {"messages": []},
        {"question": "x" * 50_001},
    ],
)
def test_a_question_that_cannot_be_used_is_refused(name: str, given: Any) -> None:
    with pytest.raises(BadInput, match="question"):
        get_graph(name).invoke(given)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(
    ("field", "value"),
    [("max_calls", 0), ("nobody_knows", 1), ("deadline_s", float("inf")), ("temperature", 3)],
)
def test_settings_that_cannot_be_used_are_refused(name: str, field: str, value: Any) -> None:
    with pytest.raises(ValidationError, match=field):
        get_graph(name).invoke(QUESTION, context={field: value})


@pytest.mark.parametrize("length", [0, 50_001])
def test_instructions_are_a_text_that_is_not_too_long(length: int) -> None:
    assert RatContext(draft_instructions="x" * 50_000).draft_instructions
    with pytest.raises(ValidationError, match="draft_instructions"):
        RatContext(draft_instructions="x" * length)


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize(
    "options",
    [
        {"model": 42},
        {"node_models": {"answer": 42}},
        {"sources": 42},
        {"sources": [42]},
        {"memory": 42},
        {"embeddings": 42},
        {"settings": 42},
    ],
)
def test_objects_of_another_kind_are_refused_when_a_graph_is_built(name: str, options: Any) -> None:
    with pytest.raises(BadInput, match="42"):
        get_graph(name, **options)


@pytest.mark.parametrize("name", GRAPHS)
def test_an_option_that_is_none_or_empty_is_as_one_that_is_not_given(name: str) -> None:
    nothing: Any = {
        "model": None,
        "node_models": {},
        "memory": None,
        "sources": [],
        "embeddings": None,
        "settings": None,
    }
    plain, built = (get_graph(name, **each).invoke(QUESTION) for each in ({}, nothing))
    assert built["answer"] == plain["answer"]


def test_a_search_tool_is_a_source_and_another_tool_is_refused() -> None:
    graph = get_graph("rag", model=ScriptedModel(["Steep it."]), sources=own.search)
    passages = graph.invoke(QUESTION, context={"k": 2})["evidence"]
    assert [each["text"][:14] for each in passages] == ["Tea of kind 0.", "Tea of kind 1."]
    with pytest.raises(BadInput, match="compare"):
        get_graph("rag", sources=own.compare)


def test_an_unknown_graph_and_an_unknown_node_are_refused() -> None:
    with pytest.raises(BadInput, match="rta"):
        get_graph("rta")
    with pytest.raises(BadInput, match="drfat"):
        get_graph("rat", node_models={"drfat": "extractive"})
    with pytest.raises(BadInput, match="drfat"):
        get_graph("rat").invoke(QUESTION, context={"node_models": {"drfat": "extractive"}})


@pytest.mark.parametrize("name", REPLIES)
def test_the_usage_of_a_run_is_the_sum_of_the_usage_of_its_nodes(name: str) -> None:
    graph, model = scripted(name)
    usage = graph.invoke(QUESTION)["usage"]
    counts = [
        (node["calls"], node["input_tokens"], node["output_tokens"])
        for node in usage["nodes"].values()
    ]
    total = (usage["calls"], usage["input_tokens"], usage["output_tokens"])
    assert total == tuple(map(sum, zip(*counts, strict=True)))
    assert (usage["calls"], usage["output_tokens"] > 0) == (len(model.calls), True)


@pytest.mark.parametrize("name", REPLIES)
def test_the_answer_is_the_one_whole_message_of_a_stream(name: str) -> None:
    graph, _ = scripted(name)
    given = {"messages": [HumanMessage(QUESTION["question"])]}
    streamed = [message for message, _ in graph.stream(given, stream_mode="messages")]
    [answer] = [each for each in streamed if not isinstance(each, AIMessageChunk)]
    assert answer is streamed[-1]


@pytest.mark.parametrize(("name", "context"), [("aag", RatContext()), ("rat", AagContext())])
def test_the_context_of_another_graph_is_refused(name: str, context: Settings) -> None:
    with pytest.raises(BadInput, match=type(context).__name__):
        get_graph(name).invoke(QUESTION, context=context)


def test_a_parent_may_have_the_context_of_another_graph() -> None:
    graph, _ = scripted("aag")
    builder = StateGraph(MessagesState, context_schema=RatContext).add_node("aag", graph)
    builder.add_edge(START, "aag")
    parent: Any = builder.compile()
    given = {"messages": [HumanMessage("bake")]}
    assert parent.invoke(given, context=RatContext(rounds=1))["messages"][-1].text


@pytest.mark.parametrize(
    ("name", "context", "value"),
    [
        ("aag", {"sources": ["corpus:/etc"]}, "corpus:/etc"),
        ("aag", {"memory": "/etc/passwd"}, "/etc/passwd"),
        ("rat", {"model": "openai:large"}, "openai:large.*STEPCRAFT_MODELS"),
    ],
)
def test_a_context_names_only_what_is_registered(
    name: str, context: Any, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPCRAFT_MODELS", "small=openai:small")
    with pytest.raises(BadInput, match=value):
        get_graph(name).invoke(QUESTION, context=context)


def test_the_environment_names_the_model_of_graphs_without_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STEPCRAFT_MODEL", "nobody:small")
    with pytest.raises(BadInput, match="nobody"):
        get_graph("rag").invoke(QUESTION)
    assert get_graph("rag", model=OWN, sources=Shelf()).invoke(QUESTION)["answer"]


OWN = ScriptedModel(lambda _node, _prompt: "Haldruvin.")
WRONG = 42


def test_a_context_chooses_among_registered_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPCRAFT_MODELS", f"own={__name__}:OWN; wrong={__name__}:WRONG")
    graph = get_graph("rag", sources=Shelf())
    assert graph.invoke(QUESTION, context={"model": "own"})["answer"] == "Haldruvin."
    with pytest.raises(BadInput, match="WRONG, a int"):
        graph.invoke(QUESTION, context={"model": "wrong"})
    with pytest.raises(BadInput, match="OWN"):
        graph.invoke(QUESTION, context={"model": f"{__name__}:OWN"})


@pytest.mark.parametrize("name", ["gpt-4.1-mini", "openai:gpt-4.1-mini", "ollama:llama3"])
def test_a_registered_model_with_a_full_stop_in_its_name_is_no_module(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("STEPCRAFT_MODELS", f"small={name}")
    monkeypatch.setenv("OPENAI_API_KEY", "opensesame")
    graph = get_graph("rag", sources=Shelf())
    with OpenAIServer(["Haldruvin."]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        if name.startswith("ollama"):
            with pytest.raises(BadInput, match="langchain-ollama"):
                graph.invoke(QUESTION, context={"model": "small"})
        else:
            answer = graph.invoke(QUESTION, context={"model": "small"})["answer"]
            assert answer == "Haldruvin."


def test_a_context_chooses_among_registered_sources() -> None:
    shelves = {"docs": Shelf(), "wiki": Shelf()}
    graph = get_graph("rag", model=ScriptedModel(["Haldruvin."]), sources=shelves)
    graph.invoke(QUESTION, context={"sources": ["wiki"]})
    assert (shelves["docs"].queries, shelves["wiki"].queries) == ([], [QUESTION["question"]])


@pytest.mark.parametrize(
    ("name", "replies"),
    [
        ("rag", ["Knead."]),
        ("react", [searching("white bread"), "Knead."]),
        (
            "chat",
            [
                "KIND: QUESTION\nQUESTION: White bread?",
                "- Oster",
                "NOTHING",
                "Knead [p1].",
                "NO CHANGE",
            ],
        ),
    ],
)
def test_a_memory_that_a_context_names_is_searched_in_addition_to_the_sources(
    name: str, replies: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "m.jsonl").write_text(
        '{"output": "white bread", "input": "flour", "steps": ["Knead."]}'
    )
    monkeypatch.setenv("STEPCRAFT_MEMORIES", f"kitchen={tmp_path}/m.jsonl")
    shelf = Shelf()
    graph = get_graph(name, model=ToolModel(replies), sources=shelf, embeddings="none")
    result = graph.invoke({"question": "White bread?"}, context={"memory": "kitchen"})
    assert "white bread" in str(result["evidence"])
    assert shelf.queries


@pytest.mark.parametrize("name", sorted(GRAPHS.keys() - {"direct"}))
@pytest.mark.parametrize("named", [{"memory": "cellar"}, {"sources": ["cellar"]}])
def test_an_unknown_name_is_refused_before_the_first_call(name: str, named: Any) -> None:
    model = ScriptedModel([])
    graph = get_graph(name, model=model, sources=Shelf(), memory={"kitchen": small_memory()})
    with pytest.raises(BadInput, match=r"may not name the .* 'cellar': registered are"):
        graph.invoke(QUESTION, context=named)
    assert not model.calls


@pytest.mark.parametrize(
    "context",
    [
        {"method_settings": {"sources": ["cellar"]}},
        {"method_settings": {"model": "cellar"}},
        {"method": "rag", "method_settings": {"node_models": {"answer": "cellar"}}},
        {"method": "direct", "memory": "cellar"},
    ],
)
def test_a_chat_also_refuses_an_unknown_name_for_its_graphs(context: Any) -> None:
    model = ScriptedModel([])
    graph = get_graph("chat", model=model, sources=Shelf())
    with pytest.raises(BadInput, match="'cellar'"):
        graph.invoke(
            {"messages": [("human", "Hi"), ("ai", "Hi"), ("human", "Who?")]}, context=context
        )
    assert not model.calls


def test_the_environment_names_a_source_for_graphs_without_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("STEPCRAFT_SOURCE", "tests.sources.own:search")
    graph = get_graph("rag", model=ScriptedModel(["Steep it."]))
    passages = graph.invoke(QUESTION)["evidence"]
    assert passages[0]["text"].startswith("Tea of kind 0.")


def test_sources_without_names_are_numbered_from_one() -> None:
    shelves = [Shelf(), Shelf()]
    graph = get_graph("rag", model=ScriptedModel(["Haldruvin."]), sources=shelves)
    graph.invoke(QUESTION, context={"sources": ["Shelf-2"]})
    assert [bool(each.queries) for each in shelves] == [False, True]


@pytest.mark.parametrize("name", REPLIES)
def test_sync_async_and_streamed_runs_are_the_same(name: str) -> None:
    results = []
    for run in (
        lambda graph: graph.invoke(QUESTION),
        lambda graph: asyncio.run(graph.ainvoke(QUESTION)),
        lambda graph: list(graph.stream(QUESTION, stream_mode="values"))[-1],
    ):
        graph, model = scripted(name)
        result = run(graph)
        results.append((result["answer"], result["usage"], result["revisions"], model.nodes))
    assert results[0] == results[1] == results[2]
    assert results[0][1]["calls"] == len(REPLIES[name])


def parent_of(graph: Any, context_schema: Any = None) -> Any:
    """Return a graph with messages whose only node is a graph of ours."""
    parent = StateGraph(MessagesState, context_schema=context_schema)
    parent.add_node("ours", graph)
    parent.add_edge(START, "ours")
    return parent.compile()


@pytest.mark.parametrize("name", REPLIES)
def test_messages_go_in_and_out_also_of_a_parent(name: str) -> None:
    asked = {"messages": [HumanMessage(QUESTION["question"])]}
    result = scripted(name)[0].invoke(asked)
    for messages in (result["messages"], parent_of(scripted(name)[0]).invoke(asked)["messages"]):
        assert [message.type for message in messages] == ["human", "ai"]
        assert messages[-1].text == result["answer"]


@pytest.mark.parametrize("name", REPLIES)
def test_a_run_says_what_it_does_and_streams_its_answer(name: str) -> None:
    graph, model = scripted(name)
    events = list(graph.stream(QUESTION, stream_mode="custom"))
    assert {event["graph"] for event in events} == {name}
    progress = [event for event in events if event["type"] == "progress"]
    assert all(event["text"].endswith(".") for event in progress)
    nodes = [event["node"] for event in progress]
    assert "retrieve" in nodes
    asking = [node for node in nodes if node in model.nodes]
    assert asking == [node for node in model.nodes for _ in range(2)], "before and after a call"
    others = [event["type"] for event in events if event["type"] != "progress"]
    assert others == ["draft", "answer"]


@pytest.mark.parametrize("name", REPLIES)
def test_an_interrupt_within_a_source_pauses_the_run(name: str) -> None:
    graph, _ = scripted(name, checkpointer=InMemorySaver(), sources=Shelf(fail=interrupt))
    paused = graph.invoke(QUESTION, THREAD)
    assert paused["__interrupt__"][0].value == QUESTION["question"]


LONG_REASON = ConnectionError("the wire is cut " * 100)
SHELF = "the source Shelf-1 failed: ConnectionError('"


@pytest.mark.parametrize(
    ("name", "replies", "words", "before"),
    [
        ("rag", ["Haldruvin."], "a search failed", SHELF),
        ("react", [LONG_REASON, "Haldruvin."], "the agent failed", "ConnectionError: "),
        ("rat", ["Haldruvin.", LONG_REASON], "could not be asked", "ConnectionError: "),
    ],
)
def test_a_warning_has_300_characters_of_its_reason(
    name: str, replies: list[Any], words: str, before: str
) -> None:
    def fail(_query: str) -> None:
        if name == "rag":
            raise LONG_REASON

    graph = get_graph(name, model=ToolModel(replies), sources=Shelf(fail=fail))
    warnings = graph.invoke(QUESTION)["warnings"]
    (warning,) = [each for each in warnings if words in each]
    reason = f"{before}{LONG_REASON}"
    assert reason[:300] in warning
    assert reason[:301] not in warning


def decided(kind: str) -> Any:
    """Return what a person decides in a review."""
    return {"decisions": [{"type": kind, **({"message": "why"} if kind == "reject" else {})}]}


QUERIES = "PART 1: builder"
LONG_STEP = "Oster has arches. " * 60
LONG_PARTS = f"{LONG_STEP}\n\n{LONG_STEP}"
"""Two parts that do not fit a prompt of 600 tokens together."""
MORE = block(1, new="More.")
WALKS: dict[str, list[tuple[list[Any], Any, Any, list[Any]]]] = {
    "rat": [
        (["NO CHANGE"], {"draft": "Haldruvin."}, {}, []),
        (["Oster.", QUERIES, MORE, QUERIES, "NO CHANGE"], {}, {"query": "model"}, []),
        (["NO CHANGE", "NO CHANGE"], {"draft": LONG_PARTS}, {"max_input_tokens": 600}, []),
    ],
    "rpg": [
        (
            [*REPLIES["rpg"][:2], "It [p1].", QUERIES, MORE, QUERIES, "NO CHANGE"],
            {},
            {"query": "model"},
            [],
        ),
        (
            [*REPLIES["rpg"][:2], LONG_PARTS, "NO CHANGE", "NO CHANGE"],
            {},
            {"max_input_tokens": 600},
            [],
        ),
    ],
    "aag": [
        (
            [LOOK_UP, GAPS, DRAFT, "NO CHANGE", CHANGE],
            {},
            {"review": True},
            [decided("reject"), decided("approve")],
        ),
        ([LOOK_UP, GAPS, DRAFT, "NO CHANGE"], {}, {"remember": True}, [decided("approve")]),
        (
            [LOOK_UP, GAPS, f"1. {LONG_STEP}\n2. {LONG_STEP}", "NO CHANGE", "NO CHANGE"],
            {},
            {"max_input_tokens": 600},
            [],
        ),
    ],
}
"""Runs that take the edges which the plain one does not: replies, more input, context, reviews."""


@pytest.mark.parametrize(("name", "most"), [("aag", 20), ("rat", 16), ("rpg", 16)])
def test_every_edge_of_the_drawing_is_taken_by_some_run(name: str, most: int) -> None:
    drawn = {(edge.source, edge.target) for edge in get_graph(name).get_graph().edges}
    assert len(drawn) <= most
    taken: set[tuple[str, str]] = set()
    for replies, more, context, responses in [(REPLIES[name], {}, {}, []), *WALKS[name]]:
        graph, _ = scripted(name, replies=replies, checkpointer=InMemorySaver())
        nodes = [START]
        for step in [{**QUESTION, **more}, *(Command(resume=each) for each in responses)]:
            for update in graph.stream(step, THREAD, context=context_of(name)(**context)):
                nodes += [node for node in update if node != "__interrupt__"]
        taken |= set(pairwise([*nodes, END]))
    assert drawn - taken == set()


def test_settings_without_a_context_are_the_builders_and_a_parents_are_not_ours() -> None:
    class ParentContext(Settings):
        """A parent's settings, with a field of the same name."""

        rounds: int = 5

    model = ScriptedModel(["Haldruvin built it.", block(1, new="In 1873."), block(1, new="Twice.")])
    graph = build_rat(model=model, sources=Shelf(), settings=RatContext(rounds=1))
    parent = parent_of(graph, ParentContext)
    parent.invoke({"messages": [("human", "Who built Oster?")]}, context=ParentContext())
    assert model.nodes == ["draft", "revise"]


def test_a_run_that_is_resumed_without_a_context_has_that_which_it_began_with() -> None:
    model = ScriptedModel([*REPLIES["aag"][:3], "NO CHANGE"])
    with small_memory() as memory:
        graph = build_aag(model=model, memory=memory, checkpointer=InMemorySaver())
        graph.invoke(QUESTION, THREAD, context=AagContext(remember=True))
        result = graph.invoke(Command(resume=decided("approve")), THREAD)
    assert result["remembered"]


class TeamContext(AagContext):
    """The context of a team: a default of its own, and a field that its own nodes read."""

    remember: bool = True
    team: str = ""


@pytest.mark.parametrize("place", ["context", "builder"])
def test_a_context_of_a_subclass_is_one_of_its_graph(place: str) -> None:
    model = ScriptedModel([*REPLIES["aag"][:3], "NO CHANGE"])
    team = TeamContext(team="kitchen")
    options: Any = {"settings": team} if place == "builder" else {}
    with small_memory() as memory:
        graph = build_aag(model=model, memory=memory, checkpointer=InMemorySaver(), **options)
        graph.invoke(QUESTION, THREAD, context=team if place == "context" else None)
        result = graph.invoke(Command(resume=decided("approve")), THREAD)
    assert result["remembered"]


@pytest.mark.parametrize("build", [build_aag, build_rat, build_rpg])
def test_the_keyless_model_answers_with_a_warning(build: Any) -> None:
    result = build(sources=Shelf()).invoke(QUESTION)
    assert result["answer"]
    assert "keyless" in str(result["warnings"])


def test_bundled_procedures_of_another_trade_are_not_used() -> None:
    graph = build_aag(model="extractive")
    pension = graph.invoke({"question": "transfer a pension to another insurer"})
    agent = graph.invoke({"question": "add long-term memory to a chat agent"})
    assert (pension["evidence"], bool(agent["evidence"])) == ([], True)
    assert any("bundled procedures" in warning for warning in pension["warnings"])


TURNS = {
    "rat": ["Oster has arches.", "NO CHANGE", "Ilse Quandt was mayor.", "NO CHANGE"],
    "rpg": [
        "- Oster",
        GAPS,
        "It has arches [p1].",
        "NO CHANGE",
        "- mayor",
        GAPS,
        "Quandt [p1].",
        "NO CHANGE",
    ],
}


def by_question(text: str) -> Any:
    return {"question": text}


def by_message(text: str) -> Any:
    return {"messages": [HumanMessage(text)]}


@pytest.mark.parametrize("name", TURNS)
@pytest.mark.parametrize(
    "ask", [(by_question, by_question), (by_message, by_message), (by_question, by_message)]
)
def test_a_second_turn_of_a_thread_has_its_own_question_and_evidence(name: str, ask: Any) -> None:
    graph, model = scripted(name, replies=TURNS[name], checkpointer=InMemorySaver())
    graph.invoke(ask[0]("What of Oster?"), THREAD)
    second = graph.invoke(ask[1]("Who was mayor?"), THREAD)
    assert "Who was mayor?" in model.calls[-1].prompt
    assert "What of Oster?" not in model.calls[-1].prompt
    assert [each["id"] for each in second["evidence"]] == ["mayor"]
    assert "Quandt" in second["answer"]
    assert second["usage"]["calls"] == len(TURNS[name]) // 2


def test_a_turn_that_failed_leaves_no_question_to_the_next() -> None:
    replies = [ConnectionError("503"), "Ilse Quandt was mayor.", "NO CHANGE"]
    graph, _ = scripted("rat", replies=replies, checkpointer=InMemorySaver())
    with pytest.raises(NoAnswer):
        graph.invoke(by_message("What of Oster?"), THREAD)
    assert "Quandt" in graph.invoke(by_message("Who was mayor?"), THREAD)["answer"]


def test_a_question_that_is_asked_again_is_answered_anew() -> None:
    replies = ["Oster has arches.", "NO CHANGE", "Oster has four arches.", "NO CHANGE"]
    graph, _ = scripted("rat", replies=replies, checkpointer=InMemorySaver())
    answers = [graph.invoke(by_question("What of Oster?"), THREAD)["answer"] for _ in range(2)]
    assert answers == replies[::2]


def test_what_came_with_a_question_is_not_the_next_ones() -> None:
    graph, model = scripted(
        "rat",
        replies=["NO CHANGE", "NO CHANGE", *TURNS["rat"][2:], "NO CHANGE"],
        checkpointer=InMemorySaver(),
    )
    given = {"question": "What of Oster?", "draft": "Oster has arches."}
    for _ in range(2):
        assert graph.invoke(given, THREAD)["answer"] == given["draft"]
    assert "Quandt" in graph.invoke(by_question("Who was mayor?"), THREAD)["answer"]
    assert graph.invoke(given, THREAD)["answer"] == given["draft"]
    aag, model = scripted(
        "aag", replies=[LOOK_UP, GAPS, DRAFT, "NO CHANGE"] * 2, checkpointer=InMemorySaver()
    )
    aag.invoke({"question": "bake a bread", "resources": "spelt"}, THREAD)
    aag.invoke(by_question("make yoghurt"), THREAD)
    assert ["spelt" in call.prompt for call in model.calls] == [True] * 4 + [False] * 4


@pytest.mark.parametrize(
    "reply", [ConnectionError("503"), AIMessage("", additional_kwargs={"refusal": "I may not."})]
)
def test_a_parents_retry_policy_does_not_ask_again_what_had_no_answer(reply: Any) -> None:
    graph, model = scripted("rag", replies=[reply] * 3)
    retry = RetryPolicy(max_attempts=3, initial_interval=0.01)
    builder = StateGraph(MessagesState).add_node("rag", graph, retry_policy=retry)
    parent: Any = builder.add_edge(START, "rag").compile()
    with pytest.raises(NoAnswer):
        parent.invoke({"messages": [HumanMessage("Who?")]})
    assert len(model.calls) == 1


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize(
    ("make_builder", "last"),
    [(rat_builder, "finish"), (rpg_builder, "trace"), (aag_builder, "finish")],
)
def test_a_step_before_the_last_node_changes_the_answer_everywhere(
    make_builder: Any, last: str, way: str
) -> None:
    def marked(state: Any) -> Any:
        return {**state, "answer": f"{state['answer']}\n\nRead twice."}

    model = ScriptedModel(lambda node, _: "NO CHANGE" if node == "revise" else "1. It has arches.")
    builder = make_builder(model=model, sources=Shelf(), memory=small_memory())
    builder.add_node(last, marked | builder.nodes.pop(last).runnable)
    graph = builder.compile()
    given: Any = {"messages": [HumanMessage(QUESTION["question"])]}
    modes: Any = ["custom", "values"]

    async def streamed() -> list[Any]:
        return [each async for each in graph.astream(given, stream_mode=modes)]

    parts = asyncio.run(streamed()) if way == "async" else [*graph.stream(given, stream_mode=modes)]
    result = [state for mode, state in parts if mode == "values"][-1]
    (event,) = [each for mode, each in parts if mode == "custom" and each["type"] == "answer"]
    assert result["answer"].endswith("Read twice.")
    assert result["messages"][-1].text == event["answer"] == result["answer"]
