"""RAT on the real LangGraph server, as a client of the SDK sees it: over the bundled procedures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

GIVEN = {
    "question": "How does a LangGraph agent keep what it learned with a Store from one thread to the next?"
}
MEMORY = {"retriever": "memory"}


@pytest.fixture
def client(langgraph_server: str) -> Iterator[SyncLangGraphClient]:
    with get_sync_client(url=langgraph_server) as opened:
        yield opened


def test_a_run_over_the_bundled_procedures(client: SyncLangGraphClient) -> None:
    thread = client.threads.create()["thread_id"]
    context = {**MEMORY, "passages_per_step": 1, "max_retrievals": 2, "nobody_knows": "this"}
    result: Any = client.runs.wait(thread, "rat", input=GIVEN, context=context)
    assert set(result) == {"answer", "draft", "revisions", "evidence", "warnings", "usage"}
    assert result["answer"]
    looked_up = [revision for revision in result["revisions"] if not revision["skipped"]]
    assert 1 <= len(looked_up) <= 2
    assert all(len(revision["evidence"]) == 1 for revision in looked_up)
    assert all(passage["title"] and passage["text"] for passage in result["evidence"])
    assert "no language model wrote this" in result["warnings"][0]
    kept: Any = client.threads.get_state(thread)
    assert kept["next"] == []
    assert kept["values"]["answer"] == result["answer"]


def test_tokens_stream_with_the_name_of_their_node(client: SyncLangGraphClient) -> None:
    nodes: set[str] = set()
    streamed = client.runs.stream(
        None, "rat", input=GIVEN, context=MEMORY, stream_mode=["messages-tuple"], stream_subgraphs=True
    )
    for part in streamed:
        assert part.event != "error", part.data
        if part.event.startswith("messages"):
            nodes.add(part.data[1]["langgraph_node"])
    assert nodes == {"draft", "to_query", "revise", "finish"}


def test_schemas(client: SyncLangGraphClient) -> None:
    assistant = client.assistants.search(graph_id="rat")[0]["assistant_id"]
    schemas: Any = client.assistants.get_schemas(assistant)
    assert schemas["input_schema"]["required"] == ["question"]
    assert {"answer", "draft", "revisions", "evidence"} <= set(schemas["output_schema"]["properties"])
    prompt = schemas["context_schema"]["properties"]["revise_instructions"]
    assert (prompt["langgraph_nodes"], prompt["langgraph_type"]) == (["revise"], "prompt")


def test_without_a_source_the_bundled_procedures_answer_and_a_warning_says_so(
    client: SyncLangGraphClient,
) -> None:
    result: Any = client.runs.wait(None, "rat", input=GIVEN)
    assert result["answer"]
    named = [warning for warning in result["warnings"] if "no source is named" in warning]
    assert [warning.partition(";")[0] for warning in named] == [
        "no source is named, so the evidence comes from the bundled procedures"
    ]
