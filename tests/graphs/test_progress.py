"""What every graph tells on `stream_mode="custom"` while it works."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.documents import Document
from langgraph.cache.memory import InMemoryCache
from langgraph.graph import START, StateGraph
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from stepcraft import AagContext, BadInput, NoAnswer, build_aag, build_rat, build_rpg, get_graph
from stepcraft.graphs.baselines import ReactContext, build_direct, build_react
from stepcraft.graphs.compile import Builder, add_inline_node
from stepcraft.graphs.registry import GRAPHS
from stepcraft.llm.resources import GraphResources
from stepcraft.progress import Event, Said
from tests.bridge import GIVEN, PLANS, planner
from tests.graphs.parents import parent_of
from tests.kitchen import GOAL, PAPER, cook, small_memory
from tests.scripted import ScriptedModel, ToolModel, searching
from tests.shelf import QUESTION, THOUGHTS, Shelf, thinker

ASKED = {
    "question": "How does a LangGraph agent keep what it learned with a Store from one thread to the next?"
}


def told(graph: Any, given: Any, **options: Any) -> list[Any]:
    """The progress of a run, in the order in which it is told."""
    parts = graph.stream(given, stream_mode="custom", **options)
    return [part for part in parts if part["type"] == "progress"]


def sentences(events: list[Any]) -> list[tuple[str, str, str]]:
    return [(event["node"], event["status"], event["text"]) for event in events]


def unknown_keys(value: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> list[str]:
    """The keys in a value of which its schema does not say anything."""
    schema = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if isinstance(value, list):
        return [key for item in value for key in unknown_keys(item, schema["items"], definitions)]
    if not isinstance(value, dict):
        return []
    fields = schema["properties"]
    inner = [
        key
        for name in value
        if name in fields
        for key in unknown_keys(value[name], fields[name], definitions)
    ]
    return [name for name in value if name not in fields] + inner


@pytest.mark.parametrize("name", GRAPHS)
def test_the_first_question_to_any_graph_is_answered_and_told_of(name: str) -> None:
    """On the default context and without a key, as it is served."""
    events: list[Any] = []
    within: list[Any] = []
    nodes: list[str] = []
    result: Any = {}
    modes: Any = ["custom", "updates", "values"]
    for namespace, mode, part in get_graph(name).stream(ASKED, stream_mode=modes, subgraphs=True):
        if mode == "custom":
            (within if namespace else events).append(part)
        elif not namespace:
            nodes += part if mode == "updates" else []
            result = part if mode == "values" else result
    assert result["answer"]
    assert result["evidence"] or name in {"direct", "cot"}
    assert (events[-1]["type"], events[-1]["answer"]) == ("answer", result["answer"])
    assert [event["type"] for event in events].count("answer") == 1
    over = [event["node"] for event in events if event.get("status", "started") != "started"]
    assert sorted(over) == sorted(nodes)
    begun = {event["node"] for event in (*events, *within) if event.get("status") == "started"}
    assert begun >= set(result["usage"]["nodes"])
    adapter: TypeAdapter[Event] = TypeAdapter(Event)
    schemas = adapter.json_schema()
    by_type = {one["properties"]["type"]["const"]: one for one in schemas["$defs"].values() if "type" in one["properties"]}  # fmt: skip
    for event in (*events, *within):
        adapter.validate_python(event, strict=True)
        assert unknown_keys(event, by_type[event["type"]], schemas["$defs"]) == []
        assert json.loads(json.dumps(event)) == event
        assert event["graph"] == name
        if event["type"] == "progress":
            assert event["text"].endswith((".", "\u2026"))
            assert ("reason" in event["data"]) == (event["status"] in {"skipped", "failed"})


AAG = [
    ("begin", "finished", "The question is read, and what the run needs is open."),
    (
        "retrieve",
        "started",
        "Searching for \u201cbake a rye bread using rye flour, a sourdough starter\u201d.",
    ),
    ("retrieve", "finished", "Found 3 procedures."),
    ("draft", "started", "Drafting the steps."),
    ("draft", "finished", "Wrote a draft of 3 steps, 1 of them with doubts."),
    ("to_query", "started", "Asking what is to be looked up."),
    ("to_query", "finished", "Asks 4 questions."),
    ("retrieve", "started", "Searching for 4 queries."),
    ("retrieve", "finished", "Found 4 procedures."),
    ("answer", "started", "Answering \u201cHow is a sourdough starter fed?\u201d."),
    ("answer", "finished", "Answered \u201cHow is a sourdough starter fed?\u201d."),
    ("revise", "started", "Revising the draft with what was looked up."),
    ("revise", "finished", "Changed 2 steps of the draft; there are 3 now."),
    ("critic", "started", "Checking 3 steps."),
    ("critic", "finished", "The critic asks for 1 edit."),
    ("edit", "started", "Applying 1 edit."),
    ("edit", "finished", "Changed 3 steps; there are 2 now."),
    ("critic", "started", "Checking 2 steps."),
    ("critic", "finished", "The critic is content with the steps."),
]


@pytest.mark.parametrize("way", ["sync", "async"])
async def test_aag_says_what_it_does(way: str) -> None:
    graph = build_aag(model=ScriptedModel(cook(1)), memory=small_memory())
    options: Any = {"stream_mode": "custom", "context": PAPER}
    if way == "sync":
        parts = list(graph.stream(GOAL, **options))
    else:
        parts = [part async for part in graph.astream(GOAL, **options)]
    *events, answer = parts
    assert answer == {"type": "answer", "graph": "aag", "answer": "1. Mix.\n2. Edited 1 times."}
    said = sentences(events)
    others = [one for one in said if one[0] == "answer" and "starter fed" not in one[2]]
    assert len(others) == 6, "each question is told of"
    # Nodes beside each other are told of in the order in which they work.
    assert sorted(one for one in said if one not in others) == sorted(AAG)
    assert [one for one in said if one[0] in {"begin", "revise", "critic", "edit"}] == [
        one for one in AAG if one[0] in {"begin", "revise", "critic", "edit"}
    ]
    data = {(event["node"], event["status"]): event["data"] for event in events}
    assert data["draft", "finished"] == {"steps": 3, "doubts": 1}
    assert data["edit", "finished"] == {"steps": 2, "changes": 3}
    critiques = [event["data"]["edits"] for event in events if event["node"] == "critic" and event["data"]]
    assert critiques == [["Edit 1 the second step."], []]
    questions = [event["data"]["question"] for event in events if event["node"] == "answer"]
    assert len(set(questions)) == 4


def test_of_rat_what_accept_reports_counts() -> None:
    draft = "".join([*THOUGHTS[:2], "It was rebuilt in 2004.\n\n", "It is of stone.\n\n", "It is high."])
    graph = build_rat(model=ScriptedModel(thinker("...x.", draft)), retriever=Shelf())
    events = told(graph, QUESTION, subgraphs=False)
    counted = [event for event in events if event["node"] == "accept"]
    assert [event["text"] for event in counted] == [
        "Checked thought 1 of 5: nothing to change.",
        "Checked thoughts 2 to 3 of 5: nothing to change.",
        "Checked thought 4 of 5: corrected.",
        "Checked thought 5 of 5: nothing to change.",
    ]
    assert [event["data"]["discarded"] for event in counted] == [0, 0, 1, 0]
    settled = [(one["thought"], one["changed"]) for event in counted for one in event["data"]["settled"]]
    assert settled == [(1, False), (2, False), (3, False), (4, True), (5, False)]
    steps = [event for event in events if event["node"] == "step"]
    assert all(event["data"]["provisional"] for event in steps)
    assert not any("provisional" in event["data"] for event in events if event["node"] != "step")
    over = [event["data"]["thought"] for event in steps if event["status"] == "finished"]
    assert sorted(over) == [1, 2, 3, 4, 5, 5], "the step that ran ahead of a correction is repeated"
    assert "Thought 4: a correction is proposed." in [event["text"] for event in steps]


def test_what_is_within_a_step_is_told_to_those_who_ask_for_subgraphs() -> None:
    graph = build_rat(model=ScriptedModel(thinker("x", THOUGHTS[0])), retriever=Shelf())
    parts = list(graph.stream(QUESTION, stream_mode="custom", subgraphs=True))
    within = [event for namespace, event in parts if namespace]
    assert [(event["node"], event["status"]) for event in within] == [
        (node, status) for node in ("to_query", "retrieve", "revise") for status in ("started", "finished")
    ]
    assert all(event["data"]["thought"] == 1 and event["data"]["provisional"] for event in within)


def test_a_parent_hears_of_it() -> None:
    graph = build_aag(model=ScriptedModel(cook()), memory=small_memory())
    parts = list(parent_of(graph).stream(GOAL, stream_mode="custom", subgraphs=True))
    assert {namespace[0].partition(":")[0] for namespace, _ in parts} == {"write"}
    assert {event["graph"] for _, event in parts} == {"aag"}
    assert parts[-1][1]["type"] == "answer"


def test_rpg_tells_of_its_topics() -> None:
    events = told(build_rpg(model=ScriptedModel(planner())), GIVEN, context={"check": "flag"})
    texts = [event["text"] for event in events]
    assert f"Planned 3 topics: {'; '.join(PLANS)}." in texts
    for topic in PLANS:
        mine = [event for event in events if event["data"].get("topic") == topic]
        assert [(event["node"], event["status"]) for event in mine] == [
            ("segment", "started"),
            ("segment", "finished"),
        ]
    assert texts[-1] == "No sentence rests on evidence."


def test_an_agent_tells_what_it_searches_for() -> None:
    model = ToolModel([searching("bridge"), "Haldruvin built it."])
    graph = build_react(model=model, retriever=Shelf())
    parts = list(graph.stream(QUESTION, stream_mode="custom", subgraphs=True, context=ReactContext(k=2)))
    within = sentences([event for namespace, event in parts if namespace])
    assert within == [
        ("agent", "started", "The agent decides what to do next."),
        ("agent", "finished", "The agent searches for \u201cbridge\u201d."),
        ("retrieve", "started", "Searching for \u201cbridge\u201d."),
        ("retrieve", "finished", "Found 2 passages."),
        ("agent", "started", "The agent decides what to do next."),
        ("agent", "finished", "The agent has finished."),
    ]
    outside = [event for namespace, event in parts if not namespace]
    assert sentences(outside[1:-1]) == [
        ("agent", "started", "The agent reads the question."),
        ("agent", "finished", "The agent searched 1 time and found 2 passages."),
        ("conclude", "finished", "The answer is that of the agent."),
    ]
    assert outside[-1] == {"type": "answer", "graph": "react", "answer": "Haldruvin built it."}


def test_a_step_that_fails_says_why() -> None:
    replies = {**cook(), "to_query": [ValueError("half a reply")] * 3}
    context = AagContext(paper=True, retry_wait_s=0)
    events = told(build_aag(model=ScriptedModel(replies), memory=small_memory()), GOAL, context=context)
    [failed] = [event for event in events if event["status"] == "failed"]
    why = "to_query was skipped: the model could not be asked: ValueError: half a reply"
    assert (failed["node"], failed["text"]) == ("to_query", why)
    assert failed["data"] == {"warnings": [why], "reason": why}


def test_a_limit_is_the_reason_of_the_steps_that_are_left_out() -> None:
    graph = build_aag(model=ScriptedModel(cook()), memory=small_memory())
    events = told(graph, GOAL, context={"paper": True, "questions": False, "max_calls": 1})
    [skipped] = [event for event in events if event["node"] == "critic"]
    assert skipped["status"] == "skipped"
    assert "max_calls=1 model calls were not enough" in skipped["data"]["reason"]


@pytest.mark.parametrize(
    ("model", "given", "error", "node", "why"),
    [
        (ScriptedModel(["", ""]), QUESTION, NoAnswer, "answer", "no answer was written: "),
        (
            ScriptedModel([]),
            {"question": " "},
            BadInput,
            "begin",
            "the question is empty; say what is wanted",
        ),
    ],
)
def test_a_run_that_ends_without_an_answer_tells_which_step_failed(
    model: Any, given: Any, error: type[Exception], node: str, why: str
) -> None:
    heard: list[Any] = []
    with pytest.raises(error):
        heard.extend(build_direct(model=model).stream(given, stream_mode="custom"))
    assert (heard[-1]["node"], heard[-1]["status"]) == (node, "failed")
    assert heard[-1]["text"].startswith(why)


def test_a_search_that_fails_says_why_and_one_that_finds_nothing_says_so() -> None:
    def fail(_query: str) -> Any:
        raise OSError("the shelf fell over")

    for says, status, text in (
        (fail, "failed", "retrieve: a search failed: the shelf fell over"),
        (lambda _query: [], "finished", "Nothing was found."),
    ):
        graph = build_rpg(model=ScriptedModel(planner()), retriever=Shelf(says=says))
        event = next(event for event in told(graph, QUESTION, context={"paper": True}) if event["node"] == "retrieve" and event["status"] != "started")  # fmt: skip
        assert (event["status"], event["text"]) == (status, text)


def test_replies_from_the_cache_are_told_of_as_such() -> None:
    graph = build_direct(model=ScriptedModel(["An answer."]), cache=InMemoryCache())
    first = told(graph, QUESTION)
    again = told(graph, QUESTION)
    assert [event["status"] for event in first] == ["finished", "started", "finished"]
    assert sentences(again) == sentences([first[0], first[2]])
    assert (first[-1]["data"], again[-1]["data"]) == ({}, {"cached": True})


KEY = "sk-proj-0123456789abcdefABCDEF"


def test_no_event_holds_a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KITCHEN_PASSWORD", "hunter22hunter22")

    def leak(_query: str) -> list[Document]:
        return [Document("Rye.", id=f"https://cook:{KEY}@kitchen/1", metadata={"title": f"token={KEY}"})]

    def reply(node: str, _prompt: str) -> Any:
        return f"Use hunter22hunter22 for {node}." if node != "revise" else OSError(f"{KEY} is refused")

    graph = build_rat(model=ScriptedModel(reply), retriever=Shelf(says=leak))
    given = {"question": f"{'Why? ' * 38}Is {KEY} right, or hunter22hunter22?"}
    parts = list(
        graph.stream(given, stream_mode="custom", subgraphs=True, context={"query_from": "question"})
    )
    events = [part for _, part in parts if part["type"] == "progress"]
    assert {"step", "retrieve", "revise", "accept"} <= {event["node"] for event in events}
    heard = json.dumps(events)
    assert "***" in heard
    assert "hunter22" not in heard
    assert KEY[:12] not in heard


class Count(TypedDict):
    count: int


@pytest.mark.parametrize("heard", [True, False])
def test_a_description_is_asked_where_somebody_listens_and_never_fails_a_run(*, heard: bool) -> None:
    asked: list[Any] = []

    def add(state: Count) -> Any:
        return {"count": state["count"] + 1}

    def describe(state: Any, update: Any) -> Said:
        asked.append((state, update))
        raise KeyError("what a person left out")

    builder: Builder = StateGraph(Count)
    add_inline_node(builder, GraphResources("counting"), add, "Add one.", describe)
    builder.add_edge(START, "add")
    graph = builder.compile()
    given: Any = {"count": 1}
    if heard:
        [event] = graph.stream(given, stream_mode="custom")
        assert (event["graph"], event["text"], event["data"]) == ("counting", "add: finished.", {})
    assert graph.invoke(given) == {"count": 2}
    assert asked == ([({"count": 1}, {"count": 2})] if heard else [])
