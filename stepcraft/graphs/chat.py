"""The chat: a conversation in which a method answers each message (a façade with a `messages` key).

    begin → route → aag | rat | rpg | direct | cot | rag | few_shot | react

Each method is its own graph, run as a subgraph with the settings of the chat.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NotRequired, get_args

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage
from langchain_core.retrievers import BaseRetriever
from langgraph.cache.base import BaseCache
from langgraph.channels import EphemeralValue
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from pydantic import Field
from typing_extensions import TypedDict

from stepcraft.contexts.chat import ChatContext, MethodName
from stepcraft.errors import BadInput
from stepcraft.evidence import Evidence
from stepcraft.graphs.aag import build_aag
from stepcraft.graphs.baselines import build_cot, build_direct, build_few_shot, build_rag, build_react
from stepcraft.graphs.compile import (
    Allow,
    Builder,
    Graph,
    InlineNode,
    Persistence,
    add_model_node,
    add_node,
    compile_graph,
    graph_resources,
    node_names,
    resources_of,
)
from stepcraft.graphs.rat import build_rat
from stepcraft.graphs.registry import GRAPHS
from stepcraft.graphs.rpg import build_rpg
from stepcraft.llm.budget import Budgeted, Usage
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.nodes.begin import BeginNode
from stepcraft.nodes.chat.begin import ChatBeginNode
from stepcraft.nodes.chat.conversation import join_messages
from stepcraft.nodes.chat.method import Method, MethodNode, Reading
from stepcraft.nodes.chat.route import route
from stepcraft.retrieval.target import RetrievalTarget
from stepcraft.schema import FOR_PROGRAMS, described
from stepcraft.secrets import excerpt

__all__ = ["ChatContext", "Input", "Output", "State", "build_chat", "graph"]

Conversation = Annotated[
    list[AnyMessage],
    Field(
        description="The conversation; the last human message is the one to answer.",
        json_schema_extra={FOR_PROGRAMS: True},
    ),
    join_messages,
]


@described
class Input(TypedDict):
    """Messages that are added to a conversation, the last of them a person's; one of the two is needed."""

    messages: NotRequired[Conversation]
    question: NotRequired[str]
    """A message as plain text, for callers without messages; it is added after `messages`."""


@described
class Output(TypedDict):
    """The conversation with its answer, and how the answer was written."""

    messages: Conversation
    answer: str
    """The answer to the last message; the message itself has its sources underneath."""
    method: str
    """The graph that wrote the answer."""
    reason: str
    """Why this graph was chosen."""
    asked: str
    """What the graph was asked: the last message, as a question that stands on its own."""
    evidence: list[Evidence]
    """The passages or procedures that were found for the answer."""
    warnings: list[str]
    """Failed steps, reached limits, and whatever else a reader of the answer should know."""
    usage: Usage
    """Model calls and tokens of this answer, in total and by node."""


class State(Output, Budgeted):
    """The state of the chat."""

    question: NotRequired[Annotated[Any, EphemeralValue]]
    """The input as it was given; not kept for the thread's next message."""
    has_model: bool
    """Whether a language model chooses the method, and not a rule."""
    took_s: NotRequired[float]
    """Seconds until the method began, which are part of the deadline."""


METHODS: tuple[MethodName, ...] = get_args(MethodName)


def chosen_method(state: State) -> MethodName:
    """To the graph of the method.

    Raises:
        BadInput: `update_state` wrote the name of another one.
    """
    for method in METHODS:
        if method == state["method"]:
            return method
    raise BadInput(
        f"method={excerpt(state['method'])} cannot be used: it should be one of {', '.join(METHODS)}"
    )


def build_chat(
    *,
    model: BaseChatModel | str | None = None,
    node_models: Mapping[str, BaseChatModel | str] | None = None,
    memory: ProcedureMemory | str | None = None,
    embeddings: Embeddings | str | None = None,
    retriever: BaseRetriever | str | Sequence[BaseRetriever | str] | None = None,
    fallback: str | None = None,
    allow: Allow = None,
    checkpointer: BaseCheckpointSaver[Any] | bool | None = None,
    store: BaseStore | None = None,
    cache: BaseCache[Any] | None = None,
    interrupt_before: Sequence[str] = (),
    interrupt_after: Sequence[str] = (),
) -> CompiledStateGraph[State, ChatContext, Input, Output]:
    """Build and compile the chat. Its methods are built with the same arguments.

    Args:
        model: The model of all nodes, as an object or a name for `init_chat_model`.
        node_models: Another model for some nodes, by the name of the node: `route`, or nodes of the methods.
        memory: The procedural memory, or a URL for `open_memory`.
        embeddings: The embeddings for a memory that is named by a URL, as an object or a name.
        retriever: The sources of evidence: a LangChain retriever, a spec for `open_source`, or several of them.
        fallback: The source of RAT and RPG where none is named, with a warning; None refuses such messages.
        allow: What the contexts of runs may name beside the defaults, as entries of STEPCRAFT_ALLOW (see `Policy`); None
            for those in STEPCRAFT_ALLOW.
        checkpointer: Keeps the conversations, so that one goes on with its thread, and an interrupted answer can be
            resumed.
        store: The store of the nodes; the memory `store:` is kept in it.
        cache: Keeps the replies of model nodes, so that the same prompt is sent to the same model once.
        interrupt_before: Nodes before which every run stops until it is resumed, which takes a checkpointer: those of the
            chat, which are `begin`, `route` and the methods, and other nodes of the methods.
        interrupt_after: Nodes after which every run stops.

    Raises:
        BadInput: A model is neither a chat model nor a name, an entry of `allow` is not understood, or a run is to stop
            at a node that there is not.
    """
    persistence = Persistence(checkpointer, store, cache, interrupt_before, interrupt_after)
    common: dict[str, Any] = {"model": model, "allow": allow, "cache": cache}
    searched: dict[str, Any] = {"memory": memory, "retriever": retriever}
    sources: dict[str, Any] = {"retriever": retriever, "fallback": fallback}
    builds: dict[MethodName, tuple[Callable[..., Any], dict[str, Any]]] = {
        "aag": (build_aag, {**searched, "embeddings": embeddings}),
        "rat": (build_rat, sources),
        "rpg": (build_rpg, sources),
        "direct": (build_direct, {}),
        "cot": (build_cot, {}),
        "rag": (build_rag, searched),
        "few_shot": (build_few_shot, {"memory": memory, "embeddings": embeddings}),
        "react": (build_react, searched),
    }
    methods: dict[str, Method] = {
        name: _method(name, build, {**common, **own}, node_models or {}, persistence)
        for name, (build, own) in builds.items()
    }
    resources = graph_resources(
        "chat", ChatContext, RetrievalTarget("nothing"), model=model, node_models=node_models, allow=allow
    )
    builder: Builder = StateGraph(State, resources.context, input_schema=Input, output_schema=Output)
    add_node(builder, ChatBeginNode(methods, resources))
    add_model_node(builder, resources, route, persistence)
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "route")
    builder.add_conditional_edges("route", InlineNode(chosen_method), list(METHODS))
    for name, method in methods.items():
        add_node(builder, MethodNode(method, resources), Reading)
        builder.add_edge(name, END)
    return compile_graph(builder, resources, persistence, recursion_limit=10_000)


def _method(
    name: str,
    build: Callable[..., Graph],
    arguments: Mapping[str, Any],
    node_models: Mapping[str, BaseChatModel | str],
    persistence: Persistence,
) -> Method:
    """A method, built with those of the models and stops that are for nodes of its own."""
    graph = build(**arguments)
    begin = graph.builder.nodes["begin"].runnable
    if not isinstance(begin, BeginNode):
        raise TypeError(f"the first node of {name} is no BeginNode, so its nodes with a model are not known")
    own = {node: model for node, model in node_models.items() if node in begin.model_nodes}
    stops = persistence.interrupts(set(node_names(graph)) - {"begin", "route", *METHODS})
    if own or any(stops.values()):
        graph = build(**arguments, **stops, node_models=own)
    return Method(name, f"{GRAPHS[name].sentence}.", graph, resources_of(graph), begin.model_nodes)


graph = build_chat(fallback="memory")
"""The chat with everything from the context, the environment and the defaults, for servers and Studio.

Where no source is named, RAT and RPG search the bundled procedures and say so in a warning.
"""
