"""The building blocks of every graph: nodes with a model, inline functions, persistence, compilation."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cached_property, partial, update_wrapper
from typing import Any, Protocol, TypedDict, get_type_hints
from weakref import WeakKeyDictionary

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import set_config_context
from langgraph.cache.base import BaseCache
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from stepcraft.contexts.base import Context, with_names
from stepcraft.errors import BadInput
from stepcraft.llm.cache import ReplyCache
from stepcraft.llm.node import ModelNode
from stepcraft.llm.resources import VERSION, GraphResources
from stepcraft.models.resolve import GivenModels, checked_model
from stepcraft.policy import Policy
from stepcraft.progress import Said, publish_answer, tell
from stepcraft.retrieval.target import RetrievalTarget

Models = Mapping[str, BaseChatModel | str] | None
Allow = Policy | str | Sequence[str] | None
"""What the contexts of a graph's runs may name: entries as in STEPCRAFT_ALLOW; None for those in STEPCRAFT_ALLOW."""
Checkpointer = BaseCheckpointSaver[Any] | bool | None
Builder = StateGraph[Any, Any, Any, Any]
Graph = CompiledStateGraph[Any, Any, Any, Any]

_resources: WeakKeyDictionary[Builder, GraphResources] = WeakKeyDictionary()
"""By the builder, which a graph shares with the copies that `with_config` makes of it."""


class Interrupts(TypedDict):
    """The nodes that a graph stops at, as `compile` takes them."""

    interrupt_before: list[str]
    interrupt_after: list[str]


@dataclass(frozen=True)
class Persistence:
    """Where a graph keeps the states of its threads, its store, and the replies of its models; where it stops."""

    checkpointer: Checkpointer = None
    store: BaseStore | None = None
    cache: BaseCache[Any] | None = None
    interrupt_before: Sequence[str] = ()
    """Nodes before which every run stops until it is resumed; those of subgraphs included."""
    interrupt_after: Sequence[str] = ()
    """Nodes after which every run stops."""

    def __post_init__(self) -> None:
        for option in ("interrupt_before", "interrupt_after"):
            if isinstance(named := getattr(self, option), str):
                raise BadInput(
                    f"{option}={named!r} cannot be used: it should be a list of nodes, [{named!r}]"
                )

    def interrupts(self, nodes: Collection[str]) -> Interrupts:
        """What concerns a graph, or a subgraph, with these nodes."""
        return {
            "interrupt_before": [name for name in self.interrupt_before if name in nodes],
            "interrupt_after": [name for name in self.interrupt_after if name in nodes],
        }

    @property
    def replies(self) -> ReplyCache | None:
        """The cache as the nodes read it; None without one."""
        return ReplyCache(self.cache) if self.cache else None


class InlineNode(Runnable[Any, Any]):
    """A function of the state as a router, or as a node that makes no calls, run in the thread of the graph.

    LangGraph runs a plain function in a thread of its own on an event loop, which takes longer than these functions
    do. As with a plain function, the annotation of the first parameter is the schema that a router reads.

    Args:
        function: Makes the update or the route.
        stream: Streams what there is to tell of the state and of what the function made.
    """

    def __init__(
        self, function: Callable[[Any], Any], stream: Callable[[Any, Any], None] | None = None
    ) -> None:
        update_wrapper(self, function)
        self.name = function.__name__
        self.function = function
        self.stream_result = stream

    def __call__(self, state: Any) -> Any:  # noqa: ANN401 - any state, any update or route
        """The function's result for a state, which is told."""
        result = self.function(state)
        if self.stream_result:
            self.stream_result(state, result)
        return result

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002, ANN401 - the signature of Runnable
        """The function's result for a state."""
        with set_config_context(config or {}) as context:
            return context.run(self, input)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002, ANN401 - the signature of Runnable
        """As `invoke`; the function waits for nothing."""
        return self.invoke(input, config)


class SubgraphNode(RunnableLambda[Any, Any]):
    """A subgraph as a node: it is announced, it runs, and what it made is told.

    A RunnableLambda, because LangGraph looks for a node's subgraph in the `deps` of one. Unlike a sequence it opens no run
    of its own in a trace.

    Args:
        name: The name of the node.
        subgraph: The subgraph.
        announce: Called with its input before it runs.
        told: Makes the update of the node from its output.
    """

    def __init__(
        self, name: str, subgraph: Graph, announce: Callable[[Any], None], told: Callable[[Any], Any]
    ) -> None:
        super().__init__(self.invoke, self.ainvoke, name=name)
        self.subgraph = subgraph
        self.announce = announce
        self.told = told

    @cached_property
    def deps(self) -> list[Runnable[Any, Any]]:
        """The subgraph."""
        return [self.subgraph]

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002, ANN401 - the signature of Runnable
        """The update of the subgraph."""
        self.announce(input)
        return self.told(self.subgraph.invoke(input, config))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:  # noqa: A002, ANN401 - the signature of Runnable
        """As `invoke`, on the running event loop."""
        self.announce(input)
        return self.told(await self.subgraph.ainvoke(input, config))


class DescribedNode(Protocol):
    """A node with a name and one line on what it does."""

    @property
    def name(self) -> str | None:
        """Its name in the graph."""
        ...

    @property
    def description(self) -> str:
        """What it does, in one line."""
        ...


def add_node(builder: Builder, node: DescribedNode, input_schema: type[Any] | None = None) -> None:
    """Add a node under its own name. Studio and drawings show its description."""
    runnable: Any = node
    builder.add_node(
        str(node.name), runnable, input_schema=input_schema, metadata={"description": node.description}
    )


def add_inline_node(
    builder: Builder,
    resources: GraphResources,
    function: Callable[[Any], Any],
    description: str,
    describe: Callable[[Any, Any], Said] | None = None,
) -> None:
    """Add a function that makes no calls as a node; what it made is told where `describe` says it."""
    name = function.__name__
    stream = partial(_tell_made, resources.method, name, describe) if describe else None
    builder.add_node(name, InlineNode(function, stream), metadata={"description": description})


def _tell_made(
    graph: str,
    node: str,
    describe: Callable[[Any, Any], Said],
    state: Any,  # noqa: ANN401 - the graph's own
    update: Any,  # noqa: ANN401 - the graph's own
) -> None:
    tell(graph, node, "finished", lambda: describe(state, update))


def add_subgraph(
    builder: Builder,
    resources: GraphResources,
    name: str,
    subgraph: Graph,
    *,
    starts: Callable[[Any], Said],
    describe: Callable[[Any], Said],
    description: str,
    publish: Callable[[str, Any], None] | None = None,
) -> None:
    """Add a subgraph as a node. What its own nodes stream reaches only those who ask for the streams of subgraphs.

    The node writes the keys of the subgraph's output schema. Where a run is streamed as events, LangGraph streams the
    subgraph, too, and takes all of its state for its output: two of them in one superstep would then write what they
    only read.

    Args:
        builder: The builder of the graph.
        resources: What the graph is built with.
        name: The name of the node.
        subgraph: The subgraph.
        starts: What it is about to do, from its input.
        describe: What it did, from its update.
        description: What it does, in one line.
        publish: Streams what else its update holds; it is given the name of the graph and the update.
    """
    kept = frozenset(subgraph.output_channels)

    def announce(given: Any) -> None:  # noqa: ANN401 - the graph's own
        tell(resources.method, name, "started", lambda: starts(given))

    def told(output: Any) -> Any:  # noqa: ANN401 - the graph's own
        update = {key: value for key, value in output.items() if key in kept}
        tell(resources.method, name, "finished", lambda: describe(update))
        if publish:
            publish(resources.method, update)
        return update

    node = SubgraphNode(name, subgraph, announce, told)
    builder.add_node(name, node, metadata={"description": description})


def ending(router: Callable[[Any], Any], resources: GraphResources) -> InlineNode:
    """A router that streams the answer where it ends the run."""

    def stream(state: Any, route: Any) -> None:  # noqa: ANN401 - the graph's own
        if route == END:
            publish_answer(resources.method, state)

    return InlineNode(router, stream)


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
    add_node(builder, node.with_resources(resources, persistence.replies), get_type_hints(node.ask)["state"])


def compile_graph(
    builder: Builder, resources: GraphResources, persistence: Persistence, *, recursion_limit: int = 100
) -> Graph:
    """Compile a graph under the name of its method.

    The recursion limit is the graph's own, because the default of LangGraph depends on its version and on the
    environment.

    Raises:
        BadInput: A run is to stop at a node that there is not.
    """
    _resources[builder] = resources
    compiled = builder.compile(
        persistence.checkpointer,
        store=persistence.store,
        name=resources.method,
        **persistence.interrupts(builder.nodes),
    )
    nodes = node_names(compiled)
    for name in (*persistence.interrupt_before, *persistence.interrupt_after):
        check_name(name, nodes, f"{resources.method} has no node {name!r} to stop at")
    metadata = {"stepcraft_method": resources.method, "stepcraft_version": VERSION}
    return compiled.with_config(RunnableConfig(metadata=metadata, recursion_limit=recursion_limit))


def node_names(graph: Graph) -> list[str]:
    """The names of the nodes of a graph and of its subgraphs, each once."""
    inner = [one for _, one in graph.get_subgraphs(recurse=True) if isinstance(one, CompiledStateGraph)]
    return list(dict.fromkeys(node for one in (graph, *inner) for node in one.builder.nodes))


def compile_step(builder: Builder, name: str, persistence: Persistence) -> Graph:
    """Compile the subgraph of a step, which stops at those of its nodes that `persistence` names."""
    return builder.compile(name=name, **persistence.interrupts(builder.nodes))


def check_name(name: str, known: Collection[str], sentence: str) -> None:
    """Raise BadInput with a sentence and the nearest name, where a name is not known."""
    if name not in known:
        near = get_close_matches(name, known, 1, 0.5)
        raise BadInput(
            f"{sentence}; " + (f"did you mean {near[0]!r}?" if near else f"there is {', '.join(known)}")
        )


def resources_of(graph: Graph) -> GraphResources:
    """What a graph of this package was built with: its context, its models, what it searches.

    Raises:
        KeyError: The graph was not compiled by `compile_graph`.
    """
    return _resources[graph.builder]
