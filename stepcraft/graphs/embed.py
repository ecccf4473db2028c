"""Use a graph as an agent's tool.

A graph needs no adapter to be a node in a parent graph: call it in a function, or share state keys.
"""

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, get_type_hints

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.graph.state import CompiledStateGraph
from pydantic import Field, ValidationError, create_model

from stepcraft.contexts.base import Settings
from stepcraft.errors import BadInput, StepcraftError
from stepcraft.graphs.chat import with_lists
from stepcraft.graphs.registry import graph_info, graph_names
from stepcraft.secrets import excerpt

Graph = CompiledStateGraph[Any, Any, Any, Any]

MAX_SOURCES = 20
"""The maximum number of uncited sources listed in the content of a tool's reply."""
MAX_STEPS = 10_000
"""The recursion limit of a graph in an agent, in place of the agent's own: our graphs end by
themselves.
"""


def as_tool(
    graph: Graph,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    arguments: Sequence[str] = (),
    context: Settings | Mapping[str, Any] | None = None,
) -> BaseTool:
    """Return a graph as a tool for `create_agent` and any other program that supports tools.

    The model reads the answer with its sources (numbered if they are cited), the statements not
    found in them, and anything left unchecked because of a failure; the artifact of the reply is
    the complete output. An error becomes a reply with `status="error"`; interrupts pass through to
    the agent.

    Args:
        graph: A compiled graph from this package.
        name: The tool's name; defaults to that of the graph.
        description: The tool's description for the model; defaults to what the graph does.
        arguments: The keys of the graph's input, besides `question`, that the model may fill in.
        context: The settings for all runs. A mapping is validated immediately.

    Raises:
        BadInput: The graph is not from this package, an argument does not exist, the context has
            the wrong type, or the name has characters that model providers refuse.
    """
    context_type: Any = getattr(graph, "context_schema", None)
    if not (isinstance(context_type, type) and issubclass(context_type, Settings)):
        raise BadInput(
            f"{excerpt(graph)} is no graph of this package: pass what build_aag, build_rat … return"
        )
    if isinstance(context, Mapping):
        context = context_type(**context)
    if context is not None and not isinstance(context, context_type):
        raise BadInput(
            f"the context is a {type(context).__name__}; "
            f"{graph.name} takes {context_type.__name__}, or a mapping"
        )
    tool_name = name or str(graph.name)
    if not re.fullmatch(r"[\w-]{1,64}", tool_name, re.ASCII):
        raise BadInput(
            f"{excerpt(tool_name)} is no name of a tool, which has letters, digits, _ and - alone"
        )
    shown = graph.get_input_jsonschema().get("properties", {})
    question: Any = (str, Field(description="The question, or the goal."))
    optional = _optional_fields(graph, arguments, shown)

    def run(config: RunnableConfig, **values: Any) -> tuple[str, dict[str, Any]]:
        with tool_errors():
            own = config | {"recursion_limit": MAX_STEPS}
            return _reply(graph.invoke(_filled(values), own, context=context))

    async def arun(config: RunnableConfig, **values: Any) -> tuple[str, dict[str, Any]]:
        with tool_errors():
            own = config | {"recursion_limit": MAX_STEPS}
            return _reply(await graph.ainvoke(_filled(values), own, context=context))

    return StructuredTool.from_function(
        run,
        arun,
        name=tool_name,
        description=description or _description(graph, arguments),
        args_schema=create_model(tool_name, question=question, **optional),
        infer_schema=False,
        response_format="content_and_artifact",
        handle_tool_error=True,
        handle_validation_error=argument_sentence,
    )


def _optional_fields(
    graph: Graph, arguments: Sequence[str], shown: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of the tool's optional arguments, with the descriptions in `shown`."""
    hints: dict[str, Any] = get_type_hints(graph.builder.input_schema)
    if "resources" in hints and not arguments:
        hints["resources"], arguments = str, ["resources"]
    fields: dict[str, Any] = {}
    for key in (each for each in arguments if each != "question"):
        if key not in hints:
            raise BadInput(
                f"{graph.name} takes no argument {excerpt(key)}; it takes {', '.join(hints)}"
            )
        fields[key] = (hints[key] | None, Field(None, description=shown[key].get("description")))
    return fields


def _description(graph: Graph, arguments: Sequence[str]) -> str:
    kind = (graph.config or {}).get("metadata", {}).get("stepcraft_graph", graph.name)
    sentence = graph_info(kind).sentence if kind in graph_names() else "Answers a question"
    of_draft = " It also checks a draft of the answer." if "draft" in arguments else ""
    return (
        f"{sentence}.{of_draft} It sees nothing of this conversation: "
        "the question has to say all that it needs."
    )


def _filled(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _reply(result: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the content for the model and the artifact for the program."""
    if "method" in result:  # the message of a chat says all of it
        return result["messages"][-1].text, dict(result)
    return with_lists(result, result["warnings"], MAX_SOURCES), dict(result)


@contextmanager
def tool_errors() -> Generator[None]:
    """Convert a package error to a ToolException, which becomes a tool reply with `status="error"`.

    Raises:
        ToolException: A package error was raised.
    """
    try:
        yield
    except StepcraftError as error:
        raise ToolException(str(error)) from error


def argument_sentence(error: Any) -> str:
    """Return a sentence about what is wrong with the arguments of a call."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc'][:1]))} cannot be used: {first['msg']}"
