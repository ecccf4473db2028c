"""How a baseline becomes a compiled graph."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from langchain_core.runnables import Runnable
from langgraph.graph import END, START, StateGraph

from stepcraft.graphs.baselines._state import Input, Output, State, fresh_alone
from stepcraft.graphs.compile import Builder, Graph, Persistence, add, compile_graph
from stepcraft.llm.node import ModelNode
from stepcraft.llm.resources import GraphResources
from stepcraft.nodes.begin import BeginNode


def begun(
    build: GraphResources,
    asks: Sequence[str],
    *,
    state: type[Any] = State,
    output: type[Any] = Output,
    starts: Callable[[Any], dict[str, Any]] = fresh_alone,
    searches: Callable[[Any], bool] = lambda _given: True,
) -> Builder:
    """The graph of a baseline with the node in which it begins; `asks` names the nodes with a model."""
    builder: Builder = StateGraph(state, build.context, input_schema=Input, output_schema=output)
    builder.add_node("begin", BeginNode(asks, starts, build, searches))
    builder.add_edge(START, "begin")
    return builder


def linear_graph(
    builder: Builder, build: GraphResources, node: ModelNode, kept: Persistence, *before: Runnable[Any, Any]
) -> Graph:
    """The whole graph: the beginning, the nodes before the answer, the answer."""
    for runnable in before:
        builder.add_node(str(runnable.name), runnable)
    add(builder, build, node, kept)
    for one, other in pairwise(["begin", *(str(runnable.name) for runnable in before), node.node, END]):
        builder.add_edge(one, other)
    return compile_graph(builder, build, kept)
