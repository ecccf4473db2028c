"""Retrieval-augmented thoughts: a draft whose thoughts are checked against evidence in causal order (RAT §3).

    begin → draft → split → step (for each thought of a window) → accept → (step … | finish)

A step is a subgraph, to_query → retrieve → revise, which runs once for each thought of the window.
"""

import operator
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langgraph.cache.base import BaseCache
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Overwrite, Send
from typing_extensions import TypedDict

from stepcraft.contexts.rat import RatContext
from stepcraft.evidence import Evidence
from stepcraft.graphs.compile import (
    Allow,
    Builder,
    Graph,
    InlineNode,
    Persistence,
    add_inline_node,
    add_model_node,
    add_node,
    add_subgraph,
    compile_graph,
    graph_resources,
)
from stepcraft.llm.budget import Budgeted, Usage
from stepcraft.llm.resources import GraphResources
from stepcraft.nodes.begin import BeginNode
from stepcraft.nodes.rat.accept import (
    Result,
    Revision,
    Step,
    about_step,
    accept,
    describe,
    describe_start,
    describe_step,
    keep_found,
    next_window,
    note,
    to_look_up,
    unchecked,
    why_stopped,
)
from stepcraft.nodes.rat.draft import draft
from stepcraft.nodes.rat.finish import finish
from stepcraft.nodes.rat.revise import revise
from stepcraft.nodes.rat.split import split
from stepcraft.nodes.rat.to_query import to_query
from stepcraft.nodes.retrieve import RetrieveNode
from stepcraft.retrieval.target import RetrievalTarget
from stepcraft.schema import described

__all__ = ["Input", "Output", "RatContext", "State", "build_rat", "graph"]

MODEL_NODES = (draft, split, to_query, revise, finish)


@described
class Input(TypedDict):
    """A question."""

    question: str
    """The question to answer."""


@described
class Output(TypedDict):
    """The answer and how it was written."""

    answer: str
    """The answer."""
    draft: str
    """The draft, before any search."""
    revisions: list[Revision]
    """The outcome for each thought."""
    evidence: list[Evidence]
    """The passages that were found, with their best scores."""
    warnings: list[str]
    """Failed steps, reached limits, and whatever else a reader of the answer should know."""
    usage: Usage
    """Model calls and tokens, in total and by node."""


class State(Output, Budgeted):
    """The state of RAT."""

    question: str
    """The question to answer."""
    thoughts: list[str]
    """The draft, split into the thoughts that are checked one by one."""
    text: str
    """The first `done` thoughts, revised."""
    done: int
    """Number of thoughts that are settled."""
    width: int
    """Number of steps in the next window."""
    retrievals: int
    """Number of searches that accepted steps made."""
    query: str
    """With `causal=False`: the queries of all thoughts."""
    found: list[Evidence] | None
    """With `causal=False`: the evidence for all thoughts; None until it is there."""
    results: Annotated[list[Result], operator.add]
    """The results of the steps of the current window."""


class StepOutput(TypedDict):
    """What a step returns to the loop."""

    results: list[Result]


def _initial_state(_given: object, context: RatContext) -> dict[str, Any]:
    width = 1 if context.window == "auto" else context.window
    start = {"answer": "", "draft": "", "retrievals": 0, "width": width}
    return {**unchecked([]), **start, "results": Overwrite([])}


def next_steps(state: State) -> list[Send] | Literal["accept", "finish"]:
    """The next window of steps in parallel; to the finish when all thoughts are settled (RAT §3.2)."""
    if state["done"] >= len(state["thoughts"]):
        return "finish"
    context = RatContext.current(state)
    return "accept" if why_stopped(state, context) else next_window(state, context)


def build_rat(
    *,
    model: BaseChatModel | str | None = None,
    node_models: Mapping[str, BaseChatModel | str] | None = None,
    retriever: BaseRetriever | str | Sequence[BaseRetriever | str] | None = None,
    fallback: str | None = None,
    allow: Allow = None,
    checkpointer: BaseCheckpointSaver[Any] | bool | None = None,
    store: BaseStore | None = None,
    cache: BaseCache[Any] | None = None,
) -> CompiledStateGraph[State, RatContext, Input, Output]:
    """Build and compile the RAT graph (RAT §3).

    The context of a run takes precedence over the arguments, and these over the environment variables
    `STEPCRAFT_MODEL` and `STEPCRAFT_SOURCE`. Without a model, the keyless extractive model is used. A source is
    required, unless there is a fallback.

    Args:
        model: The model of all nodes, as an object or a name for `init_chat_model`.
        node_models: Another model for some nodes, by the name of the node.
        retriever: The sources of evidence: a LangChain retriever, a spec for `open_source`, or several of them.
        fallback: The source of runs for which none is named, each with a warning; None refuses such runs.
        allow: What the contexts of runs may name beside the defaults, as entries of STEPCRAFT_ALLOW (see `Policy`); None
            for those in STEPCRAFT_ALLOW.
        checkpointer: Keeps the state of each thread, so that an interrupted run can be resumed.
        store: The store of the nodes; the memory `store:` is kept in it.
        cache: Keeps the replies of model nodes, so that the same prompt is sent to the same model once.

    Raises:
        BadInput: A model is neither a chat model nor a name, or an entry of `allow` is not understood.
    """
    target = RetrievalTarget("sources", retriever=retriever, fallback=fallback)
    resources = graph_resources("rat", RatContext, target, model=model, node_models=node_models, allow=allow)
    persistence = Persistence(checkpointer, store, cache)
    builder: Builder = StateGraph(State, resources.context, input_schema=Input, output_schema=Output)
    add_node(builder, BeginNode([node.node for node in MODEL_NODES], _initial_state, resources))
    for node in (draft, split, finish):
        add_model_node(builder, resources, node, persistence)
    add_subgraph(
        builder,
        resources,
        "step",
        _step_graph(resources, persistence),
        starts=describe_start,
        describe=describe_step,
        description="Look one thought up, and correct the text with what is found.",
    )
    add_inline_node(
        builder,
        resources,
        accept,
        "Take the results up to the first correction; the steps after it are repeated.",
        describe,
    )
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "draft")
    builder.add_edge("draft", "split")
    for settled in ("split", "accept"):
        builder.add_conditional_edges(settled, InlineNode(next_steps), ["step", "accept", "finish"])
    builder.add_edge("step", "accept")
    builder.add_edge("finish", END)
    return compile_graph(builder, resources, persistence, recursion_limit=10_000)


def _step_graph(resources: GraphResources, persistence: Persistence) -> Graph:
    """The subgraph of one step (RAT §3.2)."""
    builder: Builder = StateGraph(Step, resources.context, output_schema=StepOutput)
    add_model_node(builder, resources, to_query, persistence)
    look_up = "Search for evidence for the thought."
    add_node(builder, RetrieveNode(to_look_up, keep_found, resources, description=look_up, about=about_step))
    add_model_node(builder, resources, revise, persistence)
    add_inline_node(builder, resources, note, "Note the result of the step.")
    builder.add_edge(START, "to_query")
    builder.add_edge("to_query", "retrieve")
    builder.add_edge("retrieve", "revise")
    builder.add_edge("revise", "note")
    builder.add_edge("note", END)
    return builder.compile(name="step")


graph = build_rat(fallback="memory")
"""RAT with everything from the context, the environment and the defaults, for servers and Studio.

Where no source is named it searches the bundled procedures and says so in a warning.
"""
