"""What a client of MCP receives while it waits, from a server in small that replies as langgraph-api does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from stepcraft.server.mcp import McpTools


async def blanks_then(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in (b"\n", b"\n", *chunks):
        yield chunk


async def search(_: Request) -> Response:
    return JSONResponse([{"assistant_id": "1", "name": "my agent"}, {"assistant_id": "2", "name": "busy"}])


async def wait(request: Request) -> Response:
    if (await request.json())["assistant_id"] == "2":
        return JSONResponse({"detail": "ana has used up her tokens of today"}, 429)
    return StreamingResponse(blanks_then(b'{"messages": ', b'["hello"]}'), media_type="application/json")


SERVER = Starlette(
    routes=[
        Route("/assistants/search", search, methods=["POST"]),
        Route("/runs/wait", wait, methods=["POST"]),
    ],
    middleware=[Middleware(McpTools)],
)


async def call(tool: str) -> tuple[str, Any]:
    message = {"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": {"name": tool}}
    transport = httpx.ASGITransport(SERVER)
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
        answer = await client.post("/mcp", json=message)
    assert answer.status_code == 200
    assert answer.json()["id"] == "a"
    return answer.text, answer.json()["result"]


async def test_blanks_keep_the_connection_open() -> None:
    text, result = await call("my_agent")
    assert text.startswith("\n\n{")
    assert result["structuredContent"] == {"messages": ["hello"]}
    assert not result["isError"]


async def test_a_refused_run_is_an_error_in_the_servers_words() -> None:
    _, result = await call("busy")
    assert result == {
        "content": [{"type": "text", "text": "ana has used up her tokens of today"}],
        "isError": True,
    }


@pytest.mark.parametrize("size", [4_000_001, 9_000_000])
async def test_a_request_that_is_too_long_is_refused(size: int) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(SERVER), base_url="http://server") as client:
        assert (await client.post("/mcp", content=b" " * size)).status_code == 413
