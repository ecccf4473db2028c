"""What is the same in the building of every graph."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.cache.base import BaseCache
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import CachePolicy

from stepcraft.llm.cache import ReplyCache
from stepcraft.llm.node import ModelNode
from stepcraft.llm.resources import VERSION, GraphResources
from stepcraft.models.resolve import GivenModels, checked_model

Models = Mapping[str, BaseChatModel | str] | None
Checkpointer = BaseCheckpointSaver[Any] | bool | None
Builder = StateGraph[Any, Any, Any, Any]
Graph = CompiledStateGraph[Any, Any, Any, Any]


@dataclass(frozen=True)
class Persistence:
    """Where a graph's states, memories and replies are kept."""

    checkpointer: Checkpointer = None
    store: BaseStore | None = None
    cache: BaseCache[Any] | None = None

    @property
    def replies(self) -> ReplyCache | None:
        """The cache, where there is one, without the replies of steps that failed."""
        return ReplyCache(self.cache) if self.cache else None


def given_models(model: BaseChatModel | str | None, node_models: Models) -> GivenModels:
    """The models as a graph is built with them.

    Raises:
        BadInput: one of them is neither a chat model nor a name.
    """
    own = {node: checked_model(named) for node, named in (node_models or {}).items()}
    return GivenModels(None if model is None else checked_model(model), own)


def add(builder: Builder, build: GraphResources, node: ModelNode, kept: Persistence) -> None:
    """Add a node with a model, whose replies are kept where there is a cache."""
    policy = CachePolicy(key_func=node.cache_key) if kept.cache else None
    builder.add_node(node.node, node.with_resources(build), cache_policy=policy)


def compile_graph(
    builder: Builder, build: GraphResources, kept: Persistence, *, supersteps: int | None = None
) -> Graph:
    """The graph, compiled, under its method's name; `supersteps` is the most that a run takes."""
    compiled = builder.compile(kept.checkpointer, cache=kept.replies, store=kept.store, name=build.method)
    metadata = {"stepcraft_method": build.method, "stepcraft_version": VERSION}
    config: RunnableConfig = {"metadata": metadata}
    if supersteps is not None:
        config["recursion_limit"] = supersteps
    return compiled.with_config(config)
