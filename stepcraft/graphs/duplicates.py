"""The comparison of two procedures: whether they are for the same task, and the one in place of both."""

from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.cache.base import BaseCache
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict

from stepcraft.contexts.duplicates import DuplicatesContext
from stepcraft.errors import BadInput
from stepcraft.graphs.compile import (
    Builder,
    Persistence,
    add_model_node,
    add_node,
    compile_graph,
    graph_resources,
)
from stepcraft.llm.budget import Budgeted, Usage
from stepcraft.memory.procedure import Procedure
from stepcraft.nodes.begin import BeginNode
from stepcraft.nodes.duplicates.compare import Content, compare
from stepcraft.retrieval.target import RetrievalTarget
from stepcraft.schema import described

__all__ = ["Content", "DuplicatesContext", "Input", "Output", "State", "build_duplicates"]


@described
class Input(TypedDict):
    """Two procedures."""

    first: Content
    """The one."""
    second: Content
    """The other."""


@described
class Output(TypedDict):
    """The verdict, and the procedure in place of both."""

    same: bool | None
    """Whether both are for the same task; None where no model could say."""
    why: str
    """What the one has that the other lacks; "" if nothing is named."""
    merged: Content | None
    """The procedure in place of both; None where they differ, contradict each other, or no merging is asked for."""
    left_out: list[str]
    """Names, options and numbers of their steps that the merged procedure does not have."""
    warnings: list[str]
    """Failed steps, reached limits, and whatever else a reader of the verdict should know."""
    usage: Usage
    """Model calls and tokens, in total and by node."""


class State(Output, Budgeted):
    """The state of the comparison."""

    first: Content
    second: Content


def _initial_state(given: Mapping[str, Any], _context: DuplicatesContext) -> dict[str, Any]:
    """Both procedures, cleaned, and no verdict."""
    return {
        **{name: _content(name, given.get(name)) for name in ("first", "second")},
        "same": None,
        "why": "",
        "merged": None,
        "left_out": [],
    }


def _content(name: str, given: object) -> Content:
    if not isinstance(given, Mapping):
        raise BadInput(f"{name} must be a procedure with output, input and steps, not {type(given).__name__}")
    try:
        procedure = Procedure.from_dict({key: given[key] for key in Content.__annotations__ if key in given})
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from None
    return Content(output=procedure.output, input=procedure.input, steps=list(procedure.steps))


def build_duplicates(
    *,
    model: BaseChatModel | str | None = None,
    node_models: Mapping[str, BaseChatModel | str] | None = None,
    cache: BaseCache[Any] | None = None,
) -> CompiledStateGraph[State, DuplicatesContext, Input, Output]:
    """Build and compile the graph that compares two procedures.

    Without a model, and without one in `STEPCRAFT_MODEL`, procedures are for the same task where their outputs are equal.

    Args:
        model: The model, as an object or a name for `init_chat_model`.
        node_models: Another model for the node "compare".
        cache: Keeps verdicts, so that the same two procedures are shown to the same model once.

    Raises:
        BadInput: A model is neither a chat model nor a name.
    """
    resources = graph_resources(
        "duplicates",
        DuplicatesContext,
        RetrievalTarget("nothing"),
        model=model,
        node_models=node_models,
        allow=None,
    )
    persistence = Persistence(cache=cache)
    builder: Builder = StateGraph(State, resources.context, input_schema=Input, output_schema=Output)
    add_node(
        builder,
        BeginNode(
            [compare.node],
            _initial_state,
            resources,
            searches=lambda _given, _context: False,
            asks=False,
        ),
    )
    add_model_node(builder, resources, compare, persistence)
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "compare")
    builder.add_edge("compare", END)
    return compile_graph(builder, resources, persistence)
