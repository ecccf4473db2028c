"""The graphs of langgraph.json on the real LangGraph server, as a client of the SDK sees them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from langgraph_sdk import get_client, get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.servers.langgraph_server import ROOT

GRAPHS = list(json.loads((ROOT / "langgraph.json").read_text("utf-8"))["graphs"])
QUESTION = "How does a LangGraph agent keep what it learned with a Store?"
GIVEN: Any = {"question": QUESTION}


@pytest.fixture
def client(langgraph_server: str) -> Iterator[SyncLangGraphClient]:
    with get_sync_client(url=langgraph_server) as opened:
        yield opened


async def test_every_graph_answers_keyless_and_by_a_served_model(langgraph_server: str) -> None:
    """Runs have event loops of their own here, and models named by strings lose no call."""

    async def answers(name: str, model: str) -> Any:
        asked = {"messages": [{"role": "user", "content": QUESTION}]}
        result = await server.runs.wait(None, name, input=asked, context={"model": model})
        return result.get("answer") and [message["type"] for message in result["messages"]], result

    async with get_client(url=langgraph_server, timeout=60) as server:
        runs = [answers(name, model) for name in GRAPHS for model in ("extractive", "openai:quick")]
        for outcome, result in await asyncio.gather(*runs):
            assert outcome == ["human", "ai"], result


def test_a_run_with_a_context_of_its_own_and_an_assistant_that_keeps_one(
    client: SyncLangGraphClient,
) -> None:
    result: Any = client.runs.wait(None, "rag", input=GIVEN, context={"k": 1})
    assert len(result["evidence"]) == 1
    assistant = client.assistants.create("rag", context={"k": 2})
    result = client.runs.wait(None, assistant["assistant_id"], input=GIVEN)
    assert len(result["evidence"]) == 2


@pytest.mark.parametrize("name", GRAPHS)
def test_studio_reads_the_nodes_of_each_setting(client: SyncLangGraphClient, name: str) -> None:
    assistant = client.assistants.search(graph_id=name)[0]
    schemas: Any = client.assistants.get_schemas(assistant["assistant_id"])
    fields = schemas["context_schema"]["properties"]
    prompts = [field for field in fields.values() if field.get("langgraph_type") == "prompt"]
    assert prompts
    assert all(field["langgraph_nodes"] for field in prompts)


@pytest.mark.parametrize(
    ("context", "value"),
    [
        ({"sources": ["corpus:/etc"]}, "corpus:/etc"),
        ({"k": 0}, "k"),
        ({"remember": True}, "STEPCRAFT_REMEMBER"),
    ],
)
def test_a_context_that_may_not_be_is_an_error_that_says_why(
    client: SyncLangGraphClient, context: Any, value: str
) -> None:
    result: Any = client.runs.wait(None, "aag", input=GIVEN, context=context, raise_error=False)
    assert value in result["__error__"]["message"]


def test_a_review_is_asked_and_answered(client: SyncLangGraphClient) -> None:
    thread = client.threads.create()["thread_id"]
    client.runs.wait(thread, "aag", input=GIVEN, context={"review": True})
    state: Any = client.threads.get_state(thread)
    (interrupt,) = [each for task in state["tasks"] for each in task["interrupts"]]
    assert interrupt["value"]["action_requests"][0]["name"] == "review"
    command: Any = {"resume": {"decisions": [{"type": "approve"}]}}
    result: Any = client.runs.wait(thread, "aag", command=command)
    assert [review["type"] for review in result["reviews"]] == ["approve"]


def test_events_and_tokens_are_streamed(client: SyncLangGraphClient) -> None:
    modes: Any = ["custom", "messages-tuple"]
    parts = list(client.runs.stream(None, "rat", input=GIVEN, stream_mode=modes))
    events: list[Any] = [part.data for part in parts if part.event == "custom"]
    assert [event["type"] for event in events].count("answer") == 1
    assert any(part.event == "messages" for part in parts)


def test_mcp_lists_the_graphs(langgraph_server: str) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    headers = {"accept": "application/json, text/event-stream"}
    reply = httpx.post(f"{langgraph_server}/mcp", json=call, headers=headers, timeout=30)
    assert {tool["name"] for tool in reply.json()["result"]["tools"]} >= set(GRAPHS)
