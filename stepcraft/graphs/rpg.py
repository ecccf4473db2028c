"""Retrieve-plan-generate: an answer in segments, each planned, then written from sentences selected for it (RPG §3)."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langgraph.cache.base import BaseCache
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore

from stepcraft.contexts.rpg import RpgContext
from stepcraft.errors import BadInput
from stepcraft.evidence import Evidence
from stepcraft.graphs._rpg_state import Input, Kind, Output, State
from stepcraft.graphs.compile import Builder, Persistence, add, compile_graph, given_models
from stepcraft.graphs.inline import InlineNode
from stepcraft.llm.resources import GraphResources
from stepcraft.nodes.begin import BeginNode
from stepcraft.nodes.retrieve import RetrieveNode, ranked
from stepcraft.nodes.rpg.answer import answer_segment
from stepcraft.nodes.rpg.combine import combine
from stepcraft.nodes.rpg.input_passages import given_passages
from stepcraft.nodes.rpg.plan import plan, repeats
from stepcraft.nodes.rpg.select import SelectNode
from stepcraft.retrieval.build import SourceTarget
from stepcraft.text.sections import COMPLETE, NO_INFO

__all__ = ["Input", "Output", "RpgContext", "State", "build_rpg", "graph"]

MODEL_NODES = {node.node: node for node in (plan, answer_segment, combine)}


def _fresh(select: SelectNode, given: Mapping[str, Any]) -> dict[str, Any]:
    context = RpgContext.current()
    select.check(context)
    kind, passages = given.get("kind") or "long", given.get("passages")
    if kind not in get_args(Kind):
        raise BadInput(f"kind={kind!r:.80} cannot be used: it should be one of {', '.join(get_args(Kind))}")
    evidence, warnings = ([], []) if passages is None else given_passages(passages)
    if context.retrieve:
        select.prepare(evidence, context)
    lists: dict[str, Any] = {name: [] for name in ("plans", "segments", "selected")}
    return {
        **lists,
        "answer": "",
        "plan": "",
        "signal": "",
        "task": kind,
        "given": passages is not None,
        "evidence": evidence,
        "warnings": warnings,
    }


def _searches(given: Mapping[str, Any]) -> bool:
    return given.get("passages") is None and RpgContext.current().retrieve


def after_begin(state: State) -> list[Literal["retrieve", "plan"]]:
    """To the first plan and, beside it, to the search: the planner does not see what is found."""
    return ["plan"] if state["given"] or not RpgContext.current().retrieve else ["retrieve", "plan"]


def after_plan(state: State) -> Literal["select", "answer", "combine"]:
    """To the sentences for the plan; without a search, and where no facts are needed, to the answer at once."""
    if state["signal"] == COMPLETE:
        return "combine"
    if state["signal"] != NO_INFO and RpgContext.current().retrieve:
        return "select"
    return _unless_repeated(state)


def after_select(state: State) -> Literal["answer", "combine"]:
    """To the answer, unless the plan was made before and nothing was selected that was not used for it."""
    known = {
        (one["passage"], one["position"]) for segment in state["segments"] for one in segment["sentences"]
    }
    if any((one["passage"], one["position"]) not in known for one in state["selected"]):
        return "answer"
    return _unless_repeated(state)


def _unless_repeated(state: State) -> Literal["answer", "combine"]:
    return "combine" if state["segments"] and repeats(state["plan"], state["plans"]) else "answer"


def after_answer(state: State) -> Literal["plan", "combine"]:
    """To the next plan, up to the most cycles."""
    most = 1 if state["task"] == "short" else RpgContext.current().max_cycles
    return "combine" if state["signal"] == NO_INFO or len(state["plans"]) >= most else "plan"


def _queries(state: State) -> list[str]:
    return [state["question"]]


def _keep(
    select: SelectNode, _state: State, found: list[list[Evidence]], _failed: list[str]
) -> dict[str, Any]:
    evidence = ranked(*found)
    select.prepare(evidence, RpgContext.current())
    return {"evidence": evidence}


def build_rpg(
    *,
    model: BaseChatModel | str | None = None,
    node_models: Mapping[str, BaseChatModel | str] | None = None,
    retriever: BaseRetriever | str | Sequence[BaseRetriever | str] | None = None,
    reranker: object = None,
    checkpointer: BaseCheckpointSaver[Any] | bool | None = None,
    store: BaseStore | None = None,
    cache: BaseCache[Any] | None = None,
) -> CompiledStateGraph[State, RpgContext, Input, Output]:
    """The RPG graph, compiled (RPG §3).

    What a run's context names goes before what is given here; this goes before the environment's
    `STEPCRAFT_MODEL` and `STEPCRAFT_SOURCE`. Without a model the keyless one works; a source there must be, unless
    a run is given its passages.

    Args:
        model: The model of all nodes, as an object or a name for `init_chat_model`.
        node_models: Another model for some nodes, by the node's name.
        retriever: Where evidence comes from: a LangChain retriever, what `open_source` opens, or several of them.
        reranker: What scores sentences against a plan: a LangChain cross-encoder or document compressor, or the name
            of one.
        checkpointer: Keeps the state of each thread, so that a run that was killed goes on where it was.
        store: Injected into the nodes; the memory `store:` is kept in it.
        cache: Keeps the replies of model nodes: the same prompt to the same model is then asked once.

    Raises:
        BadInput: what is given as a model is neither a chat model nor a name, or the reranker cannot be used.
    """
    models, searched = given_models(model, node_models), SourceTarget(retriever)
    build, kept = (
        GraphResources("rpg", RpgContext, models, searched, reranker),
        Persistence(checkpointer, store, cache),
    )
    select = SelectNode(build)
    builder: Builder = StateGraph(State, RpgContext, input_schema=Input, output_schema=Output)
    builder.add_node("begin", BeginNode(tuple(MODEL_NODES), partial(_fresh, select), build, _searches))
    builder.add_node("retrieve", RetrieveNode(_queries, partial(_keep, select), build))
    builder.add_node("select", select)
    for node in MODEL_NODES.values():
        add(builder, build, node, kept)
    builder.add_edge(START, "begin")
    builder.add_conditional_edges("begin", InlineNode(after_begin), ["retrieve", "plan"])
    builder.add_conditional_edges("plan", InlineNode(after_plan), ["select", "answer", "combine"])
    builder.add_conditional_edges("select", InlineNode(after_select), ["answer", "combine"])
    builder.add_conditional_edges("answer", InlineNode(after_answer), ["plan", "combine"])
    builder.add_edge("combine", END)
    return compile_graph(builder, build, kept, supersteps=_SUPERSTEPS)


_SUPERSTEPS = 100
"""More than ten cycles take; LangGraph's own limit was 25 in its older versions."""

graph = build_rpg()
"""RPG with everything from the context, the environment and the defaults, for servers and Studio."""
