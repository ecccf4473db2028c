"""RPG on the real LangGraph server, as a client of the SDK sees it: over the bundled procedures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from tests.bridge import GIVEN

MEMORY = {"retriever": "memory"}
ASKED = {"question": "How does a LangGraph agent keep what it learned with a Store?"}


@pytest.fixture
def client(langgraph_server: str) -> Iterator[SyncLangGraphClient]:
    with get_sync_client(url=langgraph_server) as opened:
        yield opened


def test_a_run_over_the_bundled_procedures(client: SyncLangGraphClient) -> None:
    thread = client.threads.create()["thread_id"]
    context = {**MEMORY, "k": 3, "nobody_knows": "this"}
    result: Any = client.runs.wait(thread, "rpg", input={**ASKED, "kind": "multihop"}, context=context)
    assert set(result) == {"answer", "sentences", "plans", "segments", "evidence", "warnings", "usage"}
    assert result["answer"]
    assert 1 <= len(result["segments"]) <= 3
    assert 1 <= len(result["evidence"]) <= 3
    assert "no language model wrote this" in result["warnings"][0]
    kept: Any = client.threads.get_state(thread)
    assert kept["next"] == []
    assert kept["values"]["answer"] == result["answer"]


def test_passages_that_the_client_gives(client: SyncLangGraphClient) -> None:
    result: Any = client.runs.wait(None, "rpg", input=GIVEN, context={"citations": "inline"})
    assert result["evidence"][0]["id"] == "bridge"
    assert "[1]" in result["answer"]


def test_segments_and_tokens_stream(client: SyncLangGraphClient) -> None:
    nodes: set[str] = set()
    events: list[Any] = []
    modes: Any = ["messages-tuple", "custom"]
    for part in client.runs.stream(None, "rpg", input={**GIVEN, "kind": "multihop"}, stream_mode=modes):
        assert part.event != "error", part.data
        if part.event.startswith("messages"):
            nodes.add(part.data[1]["langgraph_node"])
        if part.event == "custom":
            events.append(part.data)
    assert nodes == {"plan", "answer", "combine"}
    told = [(event["node"], event["status"]) for event in events if event["type"] == "progress"]
    assert told[:3] == [("begin", "finished"), ("retrieve", "skipped"), ("outline", "started")]
    segments = [event["segment"] for event in events if event["type"] == "segment"]
    assert segments[0]["sentences"][0]["passage"] == "bridge"
    assert (events[-1]["type"], bool(events[-1]["sentences"])) == ("answer", True)


def test_schemas(client: SyncLangGraphClient) -> None:
    assistant = client.assistants.search(graph_id="rpg")[0]["assistant_id"]
    schemas: Any = client.assistants.get_schemas(assistant)
    assert schemas["input_schema"]["required"] == ["question"]
    assert {"answer", "plans", "segments", "evidence"} <= set(schemas["output_schema"]["properties"])
    prompt = schemas["context_schema"]["properties"]["plan_instructions"]
    assert (prompt["langgraph_nodes"], prompt["langgraph_type"]) == (["plan"], "prompt")


def test_without_a_source_the_bundled_procedures_answer_and_a_warning_says_so(
    client: SyncLangGraphClient,
) -> None:
    result: Any = client.runs.wait(None, "rpg", input=ASKED)
    assert result["answer"]
    named = [warning for warning in result["warnings"] if "no source is named" in warning]
    assert [warning.partition(";")[0] for warning in named] == [
        "no source is named, so the evidence comes from the bundled procedures"
    ]
