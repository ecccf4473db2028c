"""Serve graphs and LangChain tools to clients of the Model Context Protocol."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph.state import CompiledStateGraph
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp_types import CallToolResult, TextContent, Tool
from pydantic import ValidationError

from stepcraft.errors import StepcraftError
from stepcraft.graphs.embed import as_tool
from stepcraft.secrets import without_secrets

ARGUMENTS = {"aag": ["resources"], "rat": ["draft"], "rpg": []}
"""The graphs that are served, with the arguments a client may pass besides the question."""


def build_mcp_server(
    graphs: Mapping[str, CompiledStateGraph[Any, Any, Any, Any]], tools: Sequence[BaseTool] = ()
) -> MCPServer[Any]:
    """Return a server that offers graphs as tools under their names, along with other tools.

    Run the returned server: `.run("stdio")`, or `.run("streamable-http", port=8000)`.
    """
    served = [
        as_tool(graph, name=name, arguments=ARGUMENTS.get(name, []))
        for name, graph in graphs.items()
    ]
    return _Server([*served, *tools])


class _Server(MCPServer[Any]):
    # MCPServer derives schemas from functions and prefixes errors; the tools here have schemas.
    def __init__(self, tools: Sequence[BaseTool]) -> None:
        super().__init__("stepcraft", log_level="WARNING")
        self._tools = {tool.name: tool for tool in tools}

    async def list_tools(self) -> list[Tool]:
        return [
            Tool(
                name=name,
                description=tool.description,
                input_schema=convert_to_openai_tool(tool)["function"]["parameters"],
            )
            for name, tool in self._tools.items()
        ]

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any],
        context: Context[Any, Any] | None = None,  # noqa: ARG002 - tools of LangChain take none
    ) -> CallToolResult:
        if (tool := self._tools.get(name)) is None:
            raise ToolError(f"there is no tool {name!r}; there are {', '.join(self._tools)}")
        call = {"type": "tool_call", "id": name, "name": name, "args": arguments}
        try:
            message = await tool.ainvoke(call)
        except ValidationError as error:
            problem = error.errors()[0]
            raise ToolError(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error
        except StepcraftError as error:
            raise ToolError(str(error)) from error
        except Exception as error:  # logged with its traceback
            sentence = str(error).partition("\n")[0] or type(error).__name__
            raise UnexpectedToolError(without_secrets(sentence)) from error
        content = TextContent(type="text", text=message.text)
        return CallToolResult(content=[content], is_error=message.status == "error")
