"""An agent with the tools of a memory in the server's store, for the test that serves it."""

from __future__ import annotations

from langchain.agents import create_agent
from langchain_core.messages import AIMessage

from stepcraft import memory_tools
from tests.scripted import Reply, ToolModel

RYE = {"goal": "bake a rye bread", "needs": "rye flour", "steps": ["Mix.", "Let it rise.", "Bake."]}


def call(name: str, **arguments: object) -> AIMessage:
    """A turn of a model that calls a tool."""
    return AIMessage("", tool_calls=[{"name": name, "args": arguments, "id": name, "type": "tool_call"}])


def _next(_node: str, prompt: str) -> Reply:
    if "Procedures from the memory" in prompt or "no procedure that fits" in prompt:
        return "Done."
    if "The procedure is" in prompt:
        return call("search_procedures", query="a bread of rye")
    return call("save_procedure", **RYE)


agent = create_agent(ToolModel(_next), memory_tools("store:remembering"))
