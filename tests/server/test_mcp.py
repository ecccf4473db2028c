"""Graphs and tools as a client of the Model Context Protocol sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.tools import ToolException, tool

from stepcraft import build_rat
from tests.scripted import ScriptedModel
from tests.shelf import Shelf

if TYPE_CHECKING:
    from mcp import Client


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


def client() -> Client:
    # They take a second, for which other tests need not wait.
    from mcp import Client  # noqa: PLC0415

    from stepcraft.server.mcp import build_mcp_server  # noqa: PLC0415

    return Client(build_mcp_server({"rat": small_graph()}, [search_procedures]))


async def test_tools_show_what_they_take() -> None:
    async with client() as session:
        tools = {tool.name: tool for tool in (await session.list_tools()).tools}
    assert {name: sorted(tool.input_schema["properties"]) for name, tool in tools.items()} == {
        "rat": ["draft", "question"],
        "search_procedures": ["k", "query"],
    }
    assert tools["rat"].input_schema["required"] == ["question"]
    assert all(tool.description for tool in tools.values())


@pytest.mark.parametrize(
    ("name", "arguments", "text", "is_error"),
    [
        ("rat", {"question": "Who?"}, "Haldruvin built Oster.", False),
        ("rat", {"question": "Who?", "draft": "It was Oster."}, "It was Oster.", False),
        ("search_procedures", {"query": "tea"}, "3 procedures for tea", False),
        ("rat", {"question": " "}, "the question is empty", True),
        ("rat", {}, "question", True),
        ("search_procedures", {"query": "gone"}, "the memory is gone; search later", True),
        ("aag", {}, "there is no tool 'aag'; there are rat, search_procedures", True),
    ],
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
