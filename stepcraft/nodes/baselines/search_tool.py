"""The search that an agent may call: the graph's source as a tool."""

from typing import Any

from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.types import Command

from stepcraft.contexts.baselines import ReactContext
from stepcraft.evidence import Evidence
from stepcraft.llm.prompt import evidence_sections
from stepcraft.nodes.retrieve import RetrieveNode
from stepcraft.retrieval.build import GraphResources

NAME = "search"

_DESCRIPTION = "Search for passages. The query is short and specific, and names what it is about in full."
_NOTHING = "Nothing was found. Search in other words, or answer."
_FAILED = "The search failed: {}. Search in other words, or answer."
_ENOUGH = "No more searches are made. Answer now from what was found."


def search_tool(build: GraphResources) -> BaseTool:
    """The tool. A search that fails costs the call; the agent and the warnings are told."""
    node = RetrieveNode(lambda state: [state["query"]], _kept, build)

    def search(query: str, runtime: ToolRuntime[Any, Any]) -> Command[Any]:
        if _is_over(runtime, ReactContext.current(runtime.state)):
            return _told(runtime, _ENOUGH)
        return _of(runtime, node.invoke({**runtime.state, "query": query}, runtime.config))

    async def asearch(query: str, runtime: ToolRuntime[Any, Any]) -> Command[Any]:
        if _is_over(runtime, ReactContext.current(runtime.state)):
            return _told(runtime, _ENOUGH)
        return _of(runtime, await node.ainvoke({**runtime.state, "query": query}, runtime.config))

    return StructuredTool.from_function(search, asearch, name=NAME, description=_DESCRIPTION)


def searches_made(messages: list[AnyMessage]) -> int:
    """How many searches were answered."""
    return sum(isinstance(message, ToolMessage) for message in messages)


def _is_over(runtime: ToolRuntime[Any, Any], context: ReactContext) -> bool:
    """Whether this call comes after the last search that is allowed: several may be made in one turn."""
    messages: list[AnyMessage] = runtime.state["messages"]
    last = next(message for message in reversed(messages) if isinstance(message, AIMessage))
    place = [call["id"] for call in last.tool_calls].index(runtime.tool_call_id)
    return searches_made(messages) + place >= context.max_searches


def _kept(_state: object, found: list[list[Evidence]], failed: list[str]) -> dict[str, Any]:
    return {"evidence": found[0], "failed": failed}


def _of(runtime: ToolRuntime[Any, Any], update: dict[str, Any]) -> Command[Any]:
    failed, evidence = update.pop("failed"), update["evidence"]
    if failed:
        return _told(
            runtime, _FAILED.format(failed[0].rpartition("a search failed: ")[2]), failed=True, **update
        )
    return _told(runtime, "\n\n".join(evidence_sections(evidence)) or _NOTHING, **update)


def _told(runtime: ToolRuntime[Any, Any], text: str, *, failed: bool = False, **update: Any) -> Command[Any]:  # noqa: ANN401 - state
    message = ToolMessage(
        text, tool_call_id=runtime.tool_call_id or "", name=NAME, status="error" if failed else "success"
    )
    return Command(update={**update, "messages": [message]})
