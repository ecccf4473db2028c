"""The baselines on the real LangGraph server, as a client of the SDK sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

GIVEN = {"question": "How does a LangGraph agent keep what it learned with a Store?", "kind": "short"}
BASELINES = ["direct", "cot", "rag", "few_shot", "react"]


@pytest.fixture
def client(langgraph_server: str) -> Iterator[SyncLangGraphClient]:
    with get_sync_client(url=langgraph_server) as opened:
        yield opened


@pytest.mark.parametrize("name", BASELINES)
def test_a_run(client: SyncLangGraphClient, name: str) -> None:
    context = {"k": 2, "seed": 3, "retriever": "memory", "nobody_knows": "this"}
    result: Any = client.runs.wait(None, name, input=GIVEN, context=context)
    assert set(result) - {"draft"} == {"answer", "evidence", "warnings", "usage"}
    assert result["answer"]
    assert len(result["evidence"]) == (0 if name in {"direct", "cot"} else 2)
    assert "no language model wrote this" in result["warnings"][0]
    assert result["usage"]["calls"] == 1


@pytest.mark.parametrize("name", BASELINES)
def test_schemas(client: SyncLangGraphClient, name: str) -> None:
    assistant = client.assistants.search(graph_id=name)[0]["assistant_id"]
    schemas: Any = client.assistants.get_schemas(assistant)
    assert schemas["input_schema"]["required"] == ["question"]
    assert {"answer", "evidence", "warnings", "usage"} <= set(schemas["output_schema"]["properties"])
    prompt = schemas["context_schema"]["properties"]["answer_instructions"]
    assert (prompt["langgraph_nodes"], prompt["langgraph_type"]) == (["answer"], "prompt")


def test_a_thread_keeps_the_state(client: SyncLangGraphClient) -> None:
    thread = client.threads.create()["thread_id"]
    result: Any = client.runs.wait(thread, "react", input=GIVEN)
    kept: Any = client.threads.get_state(thread)
    assert kept["next"] == []
    assert kept["values"]["answer"] == result["answer"]


@pytest.mark.parametrize("name", BASELINES)
def test_bad_input_is_an_error_with_our_sentence(client: SyncLangGraphClient, name: str) -> None:
    result: Any = client.runs.wait(None, name, input={**GIVEN, "kind": "brief"}, raise_error=False)
    assert "kind='brief' cannot be used: it should be one of long" in result["__error__"]["message"]
