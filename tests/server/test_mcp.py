"""Graphs and tools as a client of the Model Context Protocol sees them."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from langchain_core.tools import ToolException, tool
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from stepcraft import build_rat
from stepcraft.server.mcp import build_mcp_server
from tests.scripted import ScriptedModel
from tests.shelf import Shelf


def small_graph() -> Any:
    """RAT that checks one thought; a question with "crash" has no answer."""

    def reply(node: str, prompt: str) -> Any:
        if "crash" in prompt:
            return RuntimeError("no answer for sk-" + "a1" * 20 + "\nand a second line")
        return "Haldruvin built Oster." if node == "draft" else "NO CHANGE"

    return build_rat(model=ScriptedModel(reply), sources=Shelf())


@tool
def search_procedures(query: str, k: int = 3) -> str:
    """Search the memory."""
    if query == "gone":
        raise ToolException("the memory is gone; search later")
    return f"{k} procedures for {query}"


search_procedures.handle_tool_error = True


@tool
def count_procedures() -> str:
    """Count what is in the memory."""
    return "2"


def client() -> Client:
    return Client(build_mcp_server({"rat": small_graph()}, [search_procedures, count_procedures]))


async def test_tools_show_what_they_take() -> None:
    async with client() as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
    assert {name: sorted(tool.input_schema["properties"]) for name, tool in tools.items()} == {
        "rat": ["draft", "question"],
        "search_procedures": ["k", "query"],
        "count_procedures": [],
    }
    assert tools["rat"].input_schema["required"] == ["question"]
    assert all(tool.description for tool in tools.values())


REPLIES = [
    ("rat", {"question": "Who?"}, "Haldruvin built Oster."),
    ("rat", {"question": "Who?", "draft": "It was Oster."}, "It was Oster."),
    ("search_procedures", {"query": "tea"}, "3 procedures for tea"),
    ("count_procedures", {}, "2"),
]
ERRORS = [
    ("rat", {"question": " "}, "the question is empty"),
    ("rat", {}, "question"),
    ("rat", {"question": ["a"]}, "question"),
    ("search_procedures", {"query": "gone"}, "the memory is gone; search later"),
    ("aag", {}, "there is no tool 'aag'; there are rat, search_procedures, count_procedures"),
]


@pytest.mark.parametrize(
    ("name", "arguments", "text", "is_error"),
    [*((*row, False) for row in REPLIES), *((*row, True) for row in ERRORS)],
)
async def test_a_call(name: str, arguments: dict[str, Any], text: str, is_error: bool) -> None:
    async with client() as session:
        result: Any = await session.call_tool(name, arguments)
    assert result.content[0].text.startswith(text)
    assert bool(result.is_error) == is_error


async def test_a_crash_is_one_line_without_secrets() -> None:
    async with client() as session:
        result: Any = await session.call_tool("rat", {"question": "crash"})
    text = result.content[0].text
    assert result.is_error
    assert "no answer for" in text
    assert "a1a1" not in text
    assert "\n" not in text


async def test_stdio() -> None:
    command = f"from {__name__} import *; build_mcp_server({{'rat': small_graph()}}).run('stdio')"
    parameters = StdioServerParameters(command=sys.executable, args=["-c", command], cwd=".")
    async with Client(stdio_client(parameters)) as session:
        result: Any = await session.call_tool("rat", {"question": "Who?"})
    assert result.content[0].text.startswith("Haldruvin")
