"""Retrieval-augmented thoughts: a draft whose every thought is checked against evidence, causally (RAT §3)."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

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
from stepcraft.graphs._rat_state import Input, Output, State
from stepcraft.graphs.compile import Builder, Graph, Persistence, add, compile_graph, given_models
from stepcraft.graphs.inline import InlineNode
from stepcraft.llm.budget import branches, calls_left
from stepcraft.llm.resources import GraphResources
from stepcraft.nodes.begin import BeginNode
from stepcraft.nodes.rat.accept import accept, affordable, gathers, no_more
from stepcraft.nodes.rat.draft import draft_thoughts
from stepcraft.nodes.rat.finish import finish
from stepcraft.nodes.rat.revise import revise_thought
from stepcraft.nodes.rat.split import split
from stepcraft.nodes.rat.step import Result, Step, keep_found, note, to_look_up
from stepcraft.nodes.rat.to_query import query_thought
from stepcraft.nodes.retrieve import RetrieveNode
from stepcraft.retrieval.build import SourceTarget

__all__ = ["Input", "Output", "RatContext", "State", "build_rat", "graph"]

MODEL_NODES = {node.node: node for node in (draft_thoughts, split, query_thought, revise_thought, finish)}


class StepResults(TypedDict):
    """What a step hands back to the loop."""

    results: list[Result]


def next_steps(state: State) -> list[Send] | Literal["accept", "finish"]:
    """The next window of steps side by side; to the finish when all thoughts are done (RAT §3.2)."""
    if state["done"] == len(state["thoughts"]):
        return "finish"
    context = RatContext.current()
    if no_more(state, context):
        return "accept"
    if state["found"] is not None:
        jobs = [_of_all(state)]
    else:
        places = range(state["done"], len(state["thoughts"]))
        width = len(places) if gathers(state, context) else state["width"]
        jobs = [_step(state, place, context) for place in places[: min(width, affordable(state, context))]]
    left = calls_left(state, context)
    for_steps = None if left is None else left - (context.finish != "thoughts")
    shared = branches(state, for_steps, len(jobs))
    return [Send("step", {**job, **branch}) for job, branch in zip(jobs, shared, strict=True)]


def _step(state: State, place: int, context: RatContext) -> dict[str, Any]:
    """One thought, on the text as it is if no step before it in the window changes anything."""
    thoughts, whole = state["thoughts"], gathers(state, context)
    text = state["draft"] if whole else state["text"] + "".join(thoughts[state["done"] : place + 1])
    rest = "".join(thoughts[place + 1 :]) if context.show_rest and not whole else ""
    before = thoughts[place] if context.revise_scope == "thought" else text
    return {
        **_empty(state),
        "number": place,
        "text": text,
        "thought": thoughts[place],
        "rest": rest,
        "before": before,
        "after": before,
        "revises": not whole,
    }


def _of_all(state: State) -> dict[str, Any]:
    """The whole draft, with what was found for all its thoughts."""
    draft, found = state["draft"], state["found"] or []
    return {
        **_empty(state),
        "query": state["query"],
        "evidence": found,
        "text": draft,
        "thought": draft,
        "before": draft,
        "after": draft,
        "skipped": "" if found else "nothing was found for any thought",
    }


def _empty(state: State) -> dict[str, Any]:
    return {
        "number": 0,
        "question": state["question"],
        "rest": "",
        "query": "",
        "evidence": [],
        "skipped": "",
        "revises": True,
        "warnings": [],
        "results": [],
    }


def _fresh(_given: object) -> dict[str, Any]:
    lists = ("revisions", "evidence", "thoughts")
    start = {"answer": "", "draft": "", "text": "", "done": 0, "retrievals": 0, "query": "", "found": None}
    window = RatContext.current().window
    width = 1 if window == "auto" else window
    return {**start, **{name: [] for name in lists}, "results": Overwrite([]), "width": width}


def _accept(state: State) -> dict[str, Any]:
    return accept(state, RatContext.current())


def build_rat(
    *,
    model: BaseChatModel | str | None = None,
    node_models: Mapping[str, BaseChatModel | str] | None = None,
    retriever: BaseRetriever | str | Sequence[BaseRetriever | str] | None = None,
    checkpointer: BaseCheckpointSaver[Any] | bool | None = None,
    store: BaseStore | None = None,
    cache: BaseCache[Any] | None = None,
) -> CompiledStateGraph[State, RatContext, Input, Output]:
    """The RAT graph, compiled (RAT §3).

    What a run's context names goes before what is given here; this goes before the environment's
    `STEPCRAFT_MODEL` and `STEPCRAFT_SOURCE`. Without a model the keyless one works; a source there must be.

    Args:
        model: The model of all nodes, as an object or a name for `init_chat_model`.
        node_models: Another model for some nodes, by the node's name.
        retriever: Where evidence comes from: a LangChain retriever, what `open_source` opens, or several of them.
        checkpointer: Keeps the state of each thread, so that a run that was killed goes on where it was.
        store: Injected into the nodes; the memory `store:` is kept in it.
        cache: Keeps the replies of model nodes: the same prompt to the same model is then asked once.

    Raises:
        BadInput: what is given as a model is neither a chat model nor a name.
    """
    build = GraphResources("rat", RatContext, given_models(model, node_models), SourceTarget(retriever))
    kept = Persistence(checkpointer, store, cache)
    builder: Builder = StateGraph(State, RatContext, input_schema=Input, output_schema=Output)
    builder.add_node("begin", BeginNode(tuple(MODEL_NODES), _fresh, build))
    for node in (draft_thoughts, split, finish):
        add(builder, build, node, kept)
    builder.add_node("step", _steps(build, kept))
    builder.add_node("accept", InlineNode(_accept))
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "draft")
    builder.add_edge("draft", "split")
    for settled in ("split", "accept"):
        builder.add_conditional_edges(settled, InlineNode(next_steps), ["step", "accept", "finish"])
    builder.add_edge("step", "accept")
    builder.add_edge("finish", END)
    return compile_graph(builder, build, kept, supersteps=_SUPERSTEPS)


def _steps(build: GraphResources, kept: Persistence) -> Graph:
    """One step: to_query, retrieve, revise (RAT §3.2)."""
    builder: Builder = StateGraph(Step, RatContext, output_schema=StepResults)
    add(builder, build, query_thought, kept)
    builder.add_node("retrieve", RetrieveNode(to_look_up, keep_found, build))
    add(builder, build, revise_thought, kept)
    builder.add_node("note", InlineNode(note))
    builder.add_edge(START, "to_query")
    builder.add_edge("to_query", "retrieve")
    builder.add_edge("retrieve", "revise")
    builder.add_edge("revise", "note")
    builder.add_edge("note", END)
    return builder.compile(cache=kept.replies, name="step")


_SUPERSTEPS = 10_000
"""The loop ends with the draft's thoughts; LangGraph's own limit was 25 in its older versions."""

graph = build_rat()
"""RAT with everything from the context, the environment and the defaults, for servers and Studio."""
