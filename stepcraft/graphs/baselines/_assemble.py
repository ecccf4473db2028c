"""How a baseline becomes a compiled graph."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from langgraph.cache.base import BaseCache
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import CachePolicy

from stepcraft.graphs.baselines._state import Input, Output, State, fresh_alone
from stepcraft.models.resolve import GivenModels, checked_model
from stepcraft.nodes._build import VERSION, Build
from stepcraft.nodes._cache import GoodReplies
from stepcraft.nodes._model_node import ModelNode
from stepcraft.nodes.begin import BeginNode

Models = Mapping[str, BaseChatModel | str] | None
Checkpointer = BaseCheckpointSaver[Any] | bool | None
Graph = CompiledStateGraph[Any, Any, Any, Any]


@dataclass(frozen=True)
class Kept:
    """Where a graph's states, memories and replies are kept."""

    checkpointer: Checkpointer = None
    store: BaseStore | None = None
    cache: BaseCache[Any] | None = None


def given_models(model: BaseChatModel | str | None, node_models: Models) -> GivenModels:
    """The models as a graph is built with them.

    Raises:
        BadInput: one of them is neither a chat model nor a name.
    """
    own = {node: checked_model(named) for node, named in (node_models or {}).items()}
    return GivenModels(None if model is None else checked_model(model), own)


def begun(
    build: Build,
    asks: Sequence[str],
    *,
    state: type[Any] = State,
    output: type[Any] = Output,
    starts: Callable[[Any], dict[str, Any]] = fresh_alone,
    searches: Callable[[Any], bool] = lambda _given: True,
) -> StateGraph[Any, Any, Any, Any]:
    """The graph of a baseline with the node in which it begins; `asks` names the nodes with a model."""
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(
        state, build.context, input_schema=Input, output_schema=output
    )
    builder.add_node("begin", BeginNode(asks, starts, build, searches))
    builder.add_edge(START, "begin")
    return builder


def add(builder: StateGraph[Any, Any, Any, Any], node: ModelNode, kept: Kept) -> None:
    """Add a node with a model, whose replies are kept where there is a cache."""
    builder.add_node(
        node.node, node, cache_policy=CachePolicy(key_func=node.cache_key) if kept.cache else None
    )


def in_line(
    builder: StateGraph[Any, Any, Any, Any],
    build: Build,
    node: ModelNode,
    kept: Kept,
    *before: Runnable[Any, Any],
) -> Graph:
    """The whole graph: the beginning, the nodes before the answer, the answer."""
    for runnable in before:
        builder.add_node(str(runnable.name), runnable)
    add(builder, node.within(build), kept)
    for one, other in pairwise(["begin", *(str(runnable.name) for runnable in before), node.node, END]):
        builder.add_edge(one, other)
    return finished(builder, build, kept)


def finished(builder: StateGraph[Any, Any, Any, Any], build: Build, kept: Kept) -> Graph:
    """The graph, compiled."""
    cache = GoodReplies(kept.cache) if kept.cache else None
    compiled = builder.compile(kept.checkpointer, cache=cache, store=kept.store, name=build.method)
    return compiled.with_config(metadata={"stepcraft_method": build.method, "stepcraft_version": VERSION})
