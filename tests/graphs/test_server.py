"""AAG on the real LangGraph server, as a client of the SDK sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from stepcraft.graphs.registry import GRAPHS
from tests.kitchen import OUTPUT_KEYS

GIVEN = {"question": "add long-term memory to a chat agent", "resources": ["a LangGraph agent", "a store"]}


@pytest.fixture
def client(langgraph_server: str) -> Iterator[SyncLangGraphClient]:
    with get_sync_client(url=langgraph_server) as opened:
        yield opened


def run(client: SyncLangGraphClient, given: Any = GIVEN, **options: Any) -> Any:
    return client.runs.wait(None, "aag", input=given, **options)


def test_a_run_with_a_context_of_its_own(client: SyncLangGraphClient) -> None:
    context = {
        "k": 1,
        "examples": True,
        "questions": True,
        "n_questions": 2,
        "critic": False,
        "nobody_knows": "this",
    }
    result = run(client, context=context)
    assert result["steps"]
    assert result["answer"].startswith(f"1. {result['steps'][0]}")
    assert [len(asked["evidence"]) for asked in result["questions"]] == [1, 1]
    assert 1 <= len(result["evidence"]) <= 3
    assert all(passage["title"] and passage["score"] > 0 for passage in result["evidence"])
    assert result["critiques"] == []
    assert result["usage"]["calls"] == 5
    assert "no language model wrote this" in result["warnings"][0]
    assert set(result) == OUTPUT_KEYS


def test_an_assistant_keeps_its_context(client: SyncLangGraphClient) -> None:
    assistant = client.assistants.create("aag", context={"questions": False, "critic": False})
    result = client.runs.wait(None, assistant["assistant_id"], input=GIVEN)
    assert (result["usage"]["calls"], result["questions"]) == (2, [])


def test_tokens_stream_with_the_name_of_their_node(client: SyncLangGraphClient) -> None:
    nodes: list[str] = []
    parts = client.runs.stream(
        None,
        "aag",
        input=GIVEN,
        context={"examples": True, "questions": True, "n_questions": 1, "max_updates": 1},
        stream_mode=["updates", "messages-tuple"],
    )
    for part in parts:
        assert part.event != "error", part.data
        if part.event == "messages":
            nodes.append(part.data[1]["langgraph_node"])
        if part.event == "updates":
            nodes += part.data
    assert set(nodes) - {"edit"} == {
        "begin",
        "retrieve",
        "draft",
        "to_query",
        "answer",
        "revise",
        "check_names",
        "critic",
    }
    assert nodes.count("draft") > 5, "word by word"


def test_a_thread_keeps_the_state(client: SyncLangGraphClient) -> None:
    thread = client.threads.create()["thread_id"]
    result = client.runs.wait(thread, "aag", input=GIVEN, context={"questions": False})
    state = client.threads.get_state(thread)
    assert state["next"] == []
    assert state["values"]["steps"] == result["steps"]


def test_a_resumed_run_keeps_its_settings(client: SyncLangGraphClient) -> None:
    thread = client.threads.create()["thread_id"]
    context = {"questions": False, "critic": False, "k": 1}
    client.runs.wait(thread, "aag", input=GIVEN, context=context, interrupt_before=["revise"])
    result: Any = client.runs.wait(thread, "aag", input=None)
    assert (result["usage"]["calls"], result["critiques"], len(result["evidence"])) == (2, [], 1)


@pytest.fixture(params=["client", "remote graph"])
def reviewed(request: pytest.FixtureRequest, client: SyncLangGraphClient) -> Any:
    """Runs AAG on one thread with an input, or with what a person answers; returns what it asks, and its state."""
    context: Any = {"questions": False, "critic": False, "review": True}
    thread = client.threads.create()["thread_id"]
    remote = RemoteGraph("aag", sync_client=client)
    config: Any = {"configurable": {"thread_id": thread}}

    def answered(given: Any = None, response: Any = None) -> Any:
        state: Any
        if request.param == "remote graph":
            state = remote.invoke(given or Command(resume=response), config, context=context)
        elif given:
            state = client.runs.wait(thread, "aag", input=given, context=context)
        else:
            state = client.runs.wait(thread, "aag", command={"resume": response})
        asked = state.get("__interrupt__")
        return asked and asked[0]["value"], state

    return answered


def test_a_review(reviewed: Any) -> None:
    asked, _ = reviewed(GIVEN)
    assert (asked["type"], asked["question"], asked["problem"]) == ("review", GIVEN["question"], "")
    again, _ = reviewed(response={"type": "reject"})
    assert "a rejection needs a reason" in again["problem"]
    assert again["steps"] == asked["steps"]
    done, result = reviewed(response={"type": "edit", "steps": ["Choose a store.", "Pass it on."]})
    assert (done, result["answer"]) == (None, "1. Choose a store.\n2. Pass it on.")


def test_what_is_remembered_has_to_be_allowed(client: SyncLangGraphClient) -> None:
    thread = client.threads.create()["thread_id"]
    context: Any = {"remember": True}
    given: Any = GIVEN
    result: Any = client.runs.wait(thread, "aag", input=given, context=context, raise_error=False)
    assert "(the entry 'remember' in STEPCRAFT_ALLOW or allow= of" in result["__error__"]["message"]


def test_a_run_without_a_thread_cannot_wait_for_a_review(client: SyncLangGraphClient) -> None:
    result = run(client, context={"review": True}, raise_error=False)
    assert "or run it on a thread of a LangGraph server" in result["__error__"]["message"]


def test_schemas(client: SyncLangGraphClient) -> None:
    assistant = client.assistants.search(graph_id="aag")[0]["assistant_id"]
    schemas: Any = client.assistants.get_schemas(assistant)
    assert schemas["input_schema"]["required"] == ["question"]
    assert {"answer", "steps", "evidence"} <= set(schemas["output_schema"]["properties"])
    prompt = schemas["context_schema"]["properties"]["critic_instructions"]
    assert (prompt["langgraph_nodes"], prompt["langgraph_type"]) == (["critic"], "prompt")


@pytest.mark.parametrize(
    ("given", "context", "sentence"),
    [
        ({"question": " "}, {}, "the question is empty; say what is wanted"),
        (GIVEN, {"k": 0}, "k=0 cannot be used: it should be greater than or equal to 1"),
        (GIVEN, {"model": "nosuch:model"}, "the model 'nosuch:model' cannot be used"),
    ],
)
def test_bad_input_is_an_error_with_our_sentence(
    client: SyncLangGraphClient, given: Any, context: Any, sentence: str
) -> None:
    result = run(client, given, context=context, raise_error=False)
    assert sentence in result["__error__"]["message"]


def test_a_client_of_mcp_reads_what_each_graph_is(langgraph_server: str) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    headers = {"Accept": "application/json, text/event-stream"}
    answer = httpx.post(f"{langgraph_server}/mcp", json=asked, headers=headers, timeout=30).json()
    tools = {tool["name"]: tool for tool in answer["result"]["tools"]}
    for name in GRAPHS:  # assistants that other tests made are tools, too
        tool = tools[name]
        assert tool["description"].casefold() == f"{GRAPHS[name].line}.".casefold()
        assert tool["inputSchema"]["required"] == ["question"]
        assert all(field["description"] for field in tool["inputSchema"]["properties"].values())
