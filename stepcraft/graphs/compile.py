"""The building blocks of every graph: nodes with a model, inline functions, persistence, compilation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import update_wrapper
from typing import Any, get_type_hints
from weakref import WeakKeyDictionary

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import set_config_context
from langgraph.cache.base import BaseCache
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from stepcraft.contexts.base import Context, with_names
from stepcraft.llm.cache import ReplyCache
from stepcraft.llm.node import ModelNode
from stepcraft.llm.resources import VERSION, GraphResources
from stepcraft.models.resolve import GivenModels, checked_model
from stepcraft.policy import Policy
from stepcraft.retrieval.target import RetrievalTarget

Models = Mapping[str, BaseChatModel | str] | None
Allow = Policy | str | Sequence[str] | None
"""What the contexts of a graph's runs may name: entries as in STEPCRAFT_ALLOW; None for those in STEPCRAFT_ALLOW."""
Checkpointer = BaseCheckpointSaver[Any] | bool | None
Builder = StateGraph[Any, Any, Any, Any]
Graph = CompiledStateGraph[Any, Any, Any, Any]

_resources: WeakKeyDictionary[Builder, GraphResources] = WeakKeyDictionary()
"""By the builder, which a graph shares with the copies that `with_config` makes of it."""


@dataclass(frozen=True)
class Persistence:
    """Where a graph keeps the states of its threads, its store, and the replies of its models."""

    checkpointer: Checkpointer = None
    store: BaseStore | None = None
    cache: BaseCache[Any] | None = None

    @property
    def replies(self) -> ReplyCache | None:
        """The cache as the nodes read it; None without one."""
        return ReplyCache(self.cache) if self.cache else None


class InlineNode(Runnable[Any, Any]):
    """A function of the state as a router, or as a node that makes no calls, run in the thread of the graph.

    LangGraph runs a plain function in a thread of its own on an event loop, which takes longer than these functions
    do. As with a plain function, the annotation of the first parameter is the schema that a router reads.
    """

    def __init__(self, function: Callable[[Any], Any]) -> None:
        update_wrapper(self, function)
        self.name = function.__name__
        self.function = function

    def __call__(self, state: Any) -> Any:  # noqa: ANN401 - any state, any update or route
        """The function's result for a state."""
        return self.function(state)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002, ANN401 - the signature of Runnable
        """The function's result for a state."""
        with set_config_context(config or {}) as context:
            return context.run(self.function, input)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002, ANN401 - the signature of Runnable
        """As `invoke`; the function waits for nothing."""
        return self.invoke(input, config)


def graph_resources(
    method: str,
    context: type[Context],
    target: RetrievalTarget,
    *,
    model: BaseChatModel | str | None,
    node_models: Models,
    allow: Allow,
    reranker: object = None,
) -> GraphResources:
    """What a graph is built with.

    Args:
        method: The name of the graph.
        context: The class of its settings.
        target: What it searches.
        model: The model of all nodes.
        node_models: Another model for some nodes.
        allow: What the contexts of its runs may name; None for the rules in STEPCRAFT_ALLOW.
        reranker: What scores sentences.

    Raises:
        BadInput: A model is neither a chat model nor a name, or an entry of `allow` is not understood.
    """
    policy = None if allow is None else Policy.of(allow)
    context = with_names(context, Policy.of(allow).names)
    by_node = {node: checked_model(named) for node, named in (node_models or {}).items()}
    models = GivenModels(None if model is None else checked_model(model), by_node, policy)
    return GraphResources(method, context, models, replace(target, allow=policy), reranker, policy)


def add_model_node(
    builder: Builder, resources: GraphResources, node: ModelNode, persistence: Persistence
) -> None:
    """Add a node that asks a model. Its input schema is the annotation of the state in its `ask` function."""
    runnable = node.with_resources(resources, persistence.replies)
    builder.add_node(node.node, runnable, input_schema=get_type_hints(node.ask)["state"])


def with_output_alone(subgraph: Graph) -> Runnable[Any, Any]:
    """A subgraph as a node that writes the keys of its output schema.

    Where a run is streamed as events, LangGraph streams the subgraph, too, and takes all of its state for its output:
    two of them in one superstep would then write what they only read.
    """
    kept = frozenset(subgraph.output_channels)

    def output(state: Any) -> dict[str, Any]:  # noqa: ANN401 - the state of the subgraph
        return {key: value for key, value in state.items() if key in kept}

    return subgraph | InlineNode(output)


def compile_graph(
    builder: Builder, resources: GraphResources, persistence: Persistence, *, recursion_limit: int = 100
) -> Graph:
    """Compile a graph under the name of its method.

    The recursion limit is the graph's own, because the default of LangGraph depends on its version and on the
    environment.
    """
    _resources[builder] = resources
    compiled = builder.compile(persistence.checkpointer, store=persistence.store, name=resources.method)
    metadata = {"stepcraft_method": resources.method, "stepcraft_version": VERSION}
    return compiled.with_config(RunnableConfig(metadata=metadata, recursion_limit=recursion_limit))


def resources_of(graph: Graph) -> GraphResources:
    """What a graph of this package was built with: its context, its models, what it searches.

    Raises:
        KeyError: The graph was not compiled by `compile_graph`.
    """
    return _resources[graph.builder]
