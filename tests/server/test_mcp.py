"""MCP as its official client and a model see it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from tests.server.test_graphs import GRAPHS, QUESTION, until
from tests.servers.openai_server import OpenAIServer

HEADERS = {"Accept": "application/json, text/event-stream"}


def ask(url: str, method: str, headers: dict[str, str] | None = None, **params: Any) -> httpx.Response:
    message = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}
    return httpx.post(f"{url}/mcp", json=message, headers={**HEADERS, **(headers or {})}, timeout=60)


def call(url: str, tool: str, **arguments: Any) -> Any:
    answer = ask(url, "tools/call", name=tool, arguments=arguments)
    assert (answer.status_code, answer.json()["id"]) == (200, 7)
    return answer.json()["result"]


async def test_the_official_client_lists_and_calls_tools(langgraph_server: str) -> None:
    async with (
        streamable_http_client(f"{langgraph_server}/mcp") as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert set(GRAPHS) <= set(tools)
        result: Any = await session.call_tool("rag", {"question": QUESTION})
        refused: Any = await session.call_tool("rag", {"question": " "})
    assert not result.is_error
    assert set(result.structured_content) == {"answer", "sources", "warnings", "usage"}
    assert json.loads(result.content[0].text) == result.structured_content
    assert refused.is_error
    assert refused.content[0].text == "the question is empty; say what is wanted"


@pytest.mark.parametrize("name", [name for name in GRAPHS if name != "chat"])
def test_a_model_is_shown_what_it_can_fill_in(langgraph_server: str, name: str) -> None:
    tools = ask(langgraph_server, "tools/list").json()["result"]["tools"]
    schema = next(tool for tool in tools if tool["name"] == name)["inputSchema"]
    assert schema["required"] == ["question"]
    assert set(schema["properties"]) <= {"question", "resources", "kind"}
    assert "$ref" not in json.dumps(schema)
    assert "$defs" not in schema


def test_a_result_names_its_sources(langgraph_server: str) -> None:
    result = call(langgraph_server, "aag", question=QUESTION)["structuredContent"]
    assert result["answer"].startswith("1. ")
    assert all(set(source) == {"title", "source", "id"} for source in result["sources"])
    assert all(source["title"] for source in result["sources"])
    assert result["sources"]
    assert result["usage"]["calls"] > 0
    assert "no language model wrote this" in result["warnings"][0]


def test_programs_may_still_give_passages_and_a_context(langgraph_server: str) -> None:
    passages = [{"id": "p", "title": "Keys", "text": "The key is kept under the mat.", "source": "house.md"}]
    given = {"question": "Where is the key kept?", "passages": passages}
    answer = ask(langgraph_server, "tools/call", name="rag", arguments=given, context={"k": 1})
    result = answer.json()["result"]["structuredContent"]
    assert result["sources"] == [{"title": "Keys", "source": "house.md", "id": "p"}]
    refused = ask(langgraph_server, "tools/call", name="rag", arguments=given, context={"k": 0}).json()[
        "result"
    ]
    assert refused["isError"]
    assert refused["content"][0]["text"] == "k=0 cannot be used: it should be greater than or equal to 1"


def test_an_error_is_a_sentence(langgraph_server: str) -> None:
    result = call(langgraph_server, "rag", question=QUESTION, kind="brief")
    assert result["isError"]
    assert "kind='brief' cannot be used: it should be one of long" in result["content"][0]["text"]


async def test_a_client_that_leaves_ends_its_run(langgraph_server: str, model_server: OpenAIServer) -> None:
    asked, left = len(model_server.requests), len(model_server.abandoned)
    params = {"name": "direct", "arguments": {"question": QUESTION}, "context": {"model": "openai:slow"}}
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    async with httpx.AsyncClient(base_url=langgraph_server, headers=HEADERS, timeout=60) as client:
        call = asyncio.create_task(client.post("/mcp", json=message))
        await until(lambda: len(model_server.requests) > asked)
        call.cancel()
        await asyncio.wait([call])
    await until(lambda: len(model_server.abandoned) > left)


def test_the_rest_of_the_protocol_is_the_servers(langgraph_server: str) -> None:
    unknown = ask(langgraph_server, "tools/call", name="nothing", arguments={}).json()
    assert unknown["error"]["message"] == "Unknown tool: nothing"
    assert ask(langgraph_server, "tools/call").json()["error"]["message"] == "Unknown tool: None"
    assert ask(langgraph_server, "ping").json()["result"] == {}
    url = f"{langgraph_server}/mcp"
    assert httpx.post(url, content=b"{", headers=HEADERS, timeout=30).status_code == 400
    assert httpx.post(url, json=[], headers=HEADERS, timeout=30).status_code == 400
    assert httpx.get(url, headers=HEADERS, timeout=30).status_code == 405


def test_browsers_may_read_the_replies(langgraph_server: str) -> None:
    origin = {"Origin": "https://app.example"}
    answer = ask(langgraph_server, "tools/call", origin, name="direct", arguments={"question": QUESTION})
    assert answer.headers["access-control-allow-origin"] == "*"
