"""Retrieve-plan-generate: an answer in segments, each planned, then written from selected sentences (RPG §3).

    begin → retrieve ‖ plan → select → answer → (plan → select → answer)* → combine

The search runs in parallel with the first plan, because the planner does not see the evidence; `select` follows both.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langgraph.cache.base import BaseCache
from langgraph.channels import EphemeralValue
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Send
from typing_extensions import TypedDict

from stepcraft.contexts.rpg import RpgContext
from stepcraft.evidence import Evidence
from stepcraft.graphs.compile import (
    Allow,
    Builder,
    InlineNode,
    Persistence,
    add_model_node,
    compile_graph,
    graph_resources,
)
from stepcraft.llm.budget import Budgeted, Usage, branches
from stepcraft.nodes.begin import BeginNode, checked_option
from stepcraft.nodes.retrieve import RetrieveNode, ranked
from stepcraft.nodes.rpg.answer import answer
from stepcraft.nodes.rpg.combine import combine
from stepcraft.nodes.rpg.input_passages import Passage, given_passages
from stepcraft.nodes.rpg.plan import plan, repeats
from stepcraft.nodes.rpg.select import Reading as SelectReading
from stepcraft.nodes.rpg.select import SelectNode
from stepcraft.retrieval.target import RetrievalTarget
from stepcraft.segments import Segment, Selected
from stepcraft.text.sections import COMPLETE, NO_INFO

__all__ = ["Input", "Output", "RpgContext", "State", "build_rpg", "graph"]

Kind = Literal["long", "short", "multihop"]

MODEL_NODES = (plan, answer, combine)


class Input(TypedDict):
    """A question, and how it is to be answered."""

    question: str
    """The question to answer."""
    kind: NotRequired[Kind]
    """An answer of several segments (the default), a short one, or a short one that takes several steps."""
    passages: NotRequired[list[str | Passage]]
    """Passages to answer from, instead of a search."""


class Output(TypedDict):
    """The answer and how it was written."""

    answer: str
    plans: list[str]
    """The topics of the segments, in order."""
    segments: list[Segment]
    """The segment written for each plan, with the sentences that it was written from."""
    evidence: list[Evidence]
    """The passages of those sentences in the order of first use: [1] is the first of them."""
    warnings: list[str]
    """Failed steps, reached limits, and whatever else a reader of the answer should know."""
    usage: Usage
    """Model calls and tokens, in total and by node."""


class State(Output, Budgeted):
    """The state of RPG. Until `combine` is done, `evidence` holds all passages that may be selected from."""

    question: str
    """The question to answer."""
    kind: NotRequired[Annotated[Any, EphemeralValue]]
    """The input as it was given; not kept for the thread's next run."""
    passages: NotRequired[Annotated[Any, EphemeralValue]]
    """The input as it was given; not kept for the thread's next run."""
    answer_style: Kind
    """The form of the answer, from the input's `kind`."""
    searched: bool
    """Whether the passages are there: found by the search, or given in the input."""
    plan: str
    """The topic of the current segment; "" until the first is planned."""
    signal: str
    """The planner's reply where it is a signal instead of a topic, else ""."""
    selected: list[Selected]
    """The sentences selected for the current segment."""


def _initial_state(given: Mapping[str, Any], _context: RpgContext) -> dict[str, Any]:
    passages = given.get("passages")
    evidence, warnings = ([], []) if passages is None else given_passages(passages)
    lists: dict[str, Any] = {name: [] for name in ("plans", "segments", "selected")}
    return {
        **lists,
        "answer": "",
        "plan": "",
        "signal": "",
        "answer_style": checked_option("kind", given.get("kind"), get_args(Kind)),
        "searched": passages is not None,
        "evidence": evidence,
        "warnings": warnings,
    }


def _searches(given: Mapping[str, Any], context: RpgContext) -> bool:
    return given.get("passages") is None and context.retrieve


def _lacks_evidence(state: State) -> bool:
    """Whether a search has still to be made; not where passages are there without one."""
    return RpgContext.current(state).retrieve and not state["searched"] and not state["evidence"]


def after_begin(state: State) -> list[Send | Literal["plan"]]:
    """To the first plan and, in parallel, to the search.

    The search is sent, so that `update_state` without `as_node` finds one last node and not two.
    """
    if not _lacks_evidence(state):
        return ["plan"]
    return [Send("retrieve", {"question": state["question"], **branches(state, None, 1)[0]}), "plan"]


def after_plan(state: State) -> Literal["select", "answer", "combine"]:
    """To the sentences for the plan; without evidence, and where none is needed, directly to the answer."""
    # The search may be running in parallel: only after `select` is the state complete.
    if _lacks_evidence(state):
        return "select"
    if state["signal"] == COMPLETE:
        return "combine"
    if state["signal"] != NO_INFO and RpgContext.current(state).retrieve:
        return "select"
    return _unless_repeated(state)


def after_select(state: State) -> Literal["retrieve", "plan", "answer", "combine"]:
    """To the answer, or to the end if the plan repeats an earlier one and no new sentence was selected for it.

    After `update_state` replaced the search or the plan, the other of the two is made first.
    """
    if not state["plan"] and not state["signal"]:
        return "plan"
    if state["signal"] == COMPLETE:
        return "combine"
    if state["signal"] == NO_INFO:
        return "answer"
    if _lacks_evidence(state) and not state["selected"]:
        return "retrieve"
    known = {
        (one["passage"], one["position"]) for segment in state["segments"] for one in segment["sentences"]
    }
    if any((one["passage"], one["position"]) not in known for one in state["selected"]):
        return "answer"
    return _unless_repeated(state)


def _unless_repeated(state: State) -> Literal["answer", "combine"]:
    return "combine" if state["segments"] and repeats(state["plan"], state["plans"]) else "answer"


def after_answer(state: State) -> Literal["plan", "combine"]:
    """To the next plan, up to the limit of cycles."""
    limit = 1 if state["answer_style"] == "short" else RpgContext.current(state).max_cycles
    return "combine" if state["signal"] == NO_INFO or len(state["plans"]) >= limit else "plan"


def build_rpg(
    *,
    model: BaseChatModel | str | None = None,
    node_models: Mapping[str, BaseChatModel | str] | None = None,
    retriever: BaseRetriever | str | Sequence[BaseRetriever | str] | None = None,
    fallback: str | None = None,
    reranker: object = None,
    allow: Allow = None,
    checkpointer: BaseCheckpointSaver[Any] | bool | None = None,
    store: BaseStore | None = None,
    cache: BaseCache[Any] | None = None,
) -> CompiledStateGraph[State, RpgContext, Input, Output]:
    """Build and compile the RPG graph (RPG §3).

    The context of a run takes precedence over the arguments, and these over the environment variables
    `STEPCRAFT_MODEL` and `STEPCRAFT_SOURCE`. Without a model, the keyless extractive model is used. A source is
    required, unless there is a fallback or the input of the run has passages.

    Args:
        model: The model of all nodes, as an object or a name for `init_chat_model`.
        node_models: Another model for some nodes, by the name of the node.
        retriever: The sources of evidence: a LangChain retriever, a spec for `open_source`, or several of them.
        fallback: The source of runs for which none is named, each with a warning; None refuses such runs.
        reranker: What scores sentences against a plan: a LangChain cross-encoder or document compressor, or the name
            of a reranker.
        allow: What the contexts of runs may name beside the defaults, as entries of STEPCRAFT_ALLOW (see `Policy`); None
            for those in STEPCRAFT_ALLOW.
        checkpointer: Keeps the state of each thread, so that an interrupted run can be resumed.
        store: The store of the nodes; the memory `store:` is kept in it.
        cache: Keeps the replies of model nodes, so that the same prompt is sent to the same model once.

    Raises:
        BadInput: A model is neither a chat model nor a name, or the reranker cannot be used.
    """
    target = RetrievalTarget("sources", retriever=retriever, fallback=fallback)
    resources = graph_resources(
        "rpg", RpgContext, target, model=model, node_models=node_models, allow=allow, reranker=reranker
    )
    persistence = Persistence(checkpointer, store, cache)
    select = SelectNode(resources)

    def prepare(state: Mapping[str, Any], context: RpgContext) -> None:
        select.check(context)
        if context.retrieve:
            select.prepare(state["evidence"], context)

    def keep_found(state: State, found: list[list[Evidence]], _failed: list[str]) -> dict[str, Any]:
        evidence = ranked(*found)
        select.prepare(evidence, RpgContext.current(state))
        return {"evidence": evidence, "searched": True}

    names = [node.node for node in MODEL_NODES]
    begin = BeginNode(
        names,
        _initial_state,
        resources,
        searches=_searches,
        prepare=prepare,
        late_update={"searched": True},  # a search that waits for its source would leave no time to write
    )
    builder: Builder = StateGraph(State, resources.context, input_schema=Input, output_schema=Output)
    builder.add_node("begin", begin)
    builder.add_node("retrieve", RetrieveNode(lambda state: [state["question"]], keep_found, resources))
    builder.add_node("select", select, input_schema=SelectReading)
    for node in MODEL_NODES:
        add_model_node(builder, resources, node, persistence)
    builder.add_edge(START, "begin")
    builder.add_conditional_edges("begin", InlineNode(after_begin), ["retrieve", "plan"])
    builder.add_edge("retrieve", "select")
    builder.add_conditional_edges("plan", InlineNode(after_plan), ["select", "answer", "combine"])
    ends = ["retrieve", "plan", "answer", "combine"]
    builder.add_conditional_edges("select", InlineNode(after_select), ends)
    builder.add_conditional_edges("answer", InlineNode(after_answer), ["plan", "combine"])
    builder.add_edge("combine", END)
    return compile_graph(builder, resources, persistence)


graph = build_rpg(fallback="memory")
"""RPG with everything from the context, the environment and the defaults, for servers and Studio.

Where no source is named it searches the bundled procedures and says so in a warning.
"""
