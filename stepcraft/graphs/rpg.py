"""Retrieve-plan-generate: an answer in segments, each planned, then written from selected sentences (RPG §3).

    outline:  begin → retrieve → outline → retrieve → segment (for each topic: select → answer) → gather → combine → trace
    step:     begin → retrieve → plan → (retrieve → select → answer → plan)* → combine → trace
    paper:    begin → retrieve ‖ plan → select → answer → (plan → select → answer)* → combine → trace

`outline` plans all topics of a long answer in one call and searches for all of them; their segments are written in
parallel, each from the sentences that fit it among all passages. `step` plans each topic after the last segment, as
questions of several hops need it. With `paper=True` there is one search, for the question, which runs in parallel with the
first plan, because the planner does not see what it finds.
"""

from collections.abc import Mapping, Sequence
from operator import add
from typing import Annotated, Any, Literal, NotRequired, get_args

from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langgraph.cache.base import BaseCache
from langgraph.channels import EphemeralValue
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Overwrite, Send
from typing_extensions import TypedDict

from stepcraft.contexts.rpg import RpgContext
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
    compile_step,
    ending,
    graph_resources,
)
from stepcraft.llm.budget import Budgeted, Usage, branches, calls_left
from stepcraft.llm.resources import GraphResources
from stepcraft.nodes.begin import BeginNode, checked_option
from stepcraft.nodes.retrieve import RetrieveNode, ranked
from stepcraft.nodes.rpg.answer import answer
from stepcraft.nodes.rpg.check import check
from stepcraft.nodes.rpg.combine import combine
from stepcraft.nodes.rpg.input_passages import Passage, given_passages
from stepcraft.nodes.rpg.outline import outline
from stepcraft.nodes.rpg.plan import plan, repeats
from stepcraft.nodes.rpg.segment import (
    SegmentOutput,
    SegmentState,
    describe_outlined,
    describe_start,
    finds_nothing,
    gather,
    note,
    publish_outlined,
)
from stepcraft.nodes.rpg.segment import describe as describe_gathered
from stepcraft.nodes.rpg.select import Reading as SelectReading
from stepcraft.nodes.rpg.select import SelectNode
from stepcraft.nodes.rpg.trace import describe as describe_traced
from stepcraft.nodes.rpg.trace import is_checked_next, trace
from stepcraft.progress import Said, quoted
from stepcraft.retrieval.target import RetrievalTarget
from stepcraft.schema import described, for_programs
from stepcraft.segments import Outlined, Segment, Selected, TracedSentence
from stepcraft.text.sections import COMPLETE, NO_INFO

__all__ = ["Input", "Output", "RpgContext", "State", "build_rpg", "graph"]

Kind = Literal["auto", "long", "short", "multihop"]

MODEL_NODES = (outline, plan, answer, combine, check)


@described
class Input(TypedDict):
    """A question, and how it is to be answered."""

    question: str
    """The question to answer."""
    kind: NotRequired[Kind]
    """A long answer of several segments, a short one, or a short one that takes several steps; `auto`, the default, lets
    the first plan decide."""
    passages: NotRequired[Annotated[list[str | Passage], for_programs]]
    """Passages to answer from, instead of a search."""


@described
class Output(TypedDict):
    """The answer and how it was written."""

    answer: str
    """The answer."""
    sentences: list[TracedSentence]
    """The sentences of the answer in order, each with the passages that it rests on."""
    plans: list[str]
    """The topics that were planned, in order."""
    segments: list[Segment]
    """The segment written for each plan, with the sentences that it was written from."""
    evidence: list[Evidence]
    """The passages that the answer cites in the order of first use: [1] is the first of them."""
    warnings: list[str]
    """Failed steps, reached limits, and whatever else a reader of the answer should know."""
    usage: Usage
    """Model calls and tokens, in total and by node."""


class State(Output, Budgeted):
    """The state of RPG. Until `trace` is done, `evidence` holds all passages that may be selected from."""

    question: str
    """The question to answer."""
    kind: NotRequired[Annotated[Any, EphemeralValue]]
    """The input as it was given; not kept for the thread's next run."""
    passages: NotRequired[Annotated[Any, EphemeralValue]]
    """The input as it was given; not kept for the thread's next run."""
    answer_style: Kind
    """The form of the answer, from the input's `kind`."""
    passages_given: bool
    """Whether the input has passages, so that nothing is searched."""
    searched: bool
    """Whether the passages are there: found by the search, or given in the input."""
    looked_up: list[str]
    """The plans that were searched for."""
    missing: list[str]
    """The plans for which nothing was found."""
    outline: list[str]
    """The topics of the segments that are written in parallel; empty where each is planned after the last."""
    outlined: Annotated[list[Outlined], add]
    """The segments that were written in parallel, until they are put in order."""
    raw_answer: str
    """The answer with the marks of the segments."""
    verdicts: dict[str, str] | None
    """The sentences that a check found not borne out, with what is written instead; None before it."""
    plan: str
    """The topic of the current segment; "" until the first is planned."""
    signal: str
    """The planner's reply where it is a signal instead of a topic, else ""."""
    selected: list[Selected]
    """The sentences selected for the current segment."""


def _initial_state(given: Mapping[str, Any], context: RpgContext) -> dict[str, Any]:
    passages = given.get("passages")
    evidence, warnings = ([], []) if passages is None else given_passages(passages)
    names = ("plans", "segments", "selected", "looked_up", "missing", "outline", "sentences")
    style = checked_option("kind", given.get("kind"), get_args(Kind))
    return {
        **{name: [] for name in names},
        "outlined": Overwrite([]),
        "answer": "",
        "raw_answer": "",
        "verdicts": None,
        "plan": "",
        "signal": "",
        "answer_style": "long" if style == "auto" and (context.paper or not context.plan) else style,
        "passages_given": passages is not None,
        "searched": passages is not None,
        "evidence": evidence,
        "warnings": warnings,
    }


def _searches(given: Mapping[str, Any], context: RpgContext) -> bool:
    return given.get("passages") is None and context.retrieve


def _lacks_evidence(state: State) -> bool:
    """Whether the search for the question has still to be made."""
    return RpgContext.current(state).retrieve and not _is_searched(state)


def _is_searched(state: State) -> bool:
    """Whether there was a search, or passages are there without one, as `update_state` may have put them."""
    return state["searched"] or bool(state["evidence"])


def _planner(state: State) -> Literal["outline", "plan"]:
    """Who plans first: all topics in one call where they are independent, or where the kind of answer is not known."""
    context = RpgContext.current(state)
    at_once = state["answer_style"] == "auto" or (state["answer_style"] == "long" and context.order != "step")
    return "outline" if at_once and context.plan and not context.paper else "plan"


def after_begin(state: State) -> list[Send | Literal["plan", "outline", "retrieve"]]:
    """To the search and then to the planner, which is shown the titles; in the paper's loop to both in parallel.

    The search is sent, so that `update_state` without `as_node` finds one last node and not two.
    """
    if not _lacks_evidence(state):
        return [_planner(state)]
    if not RpgContext.current(state).paper:
        return ["retrieve"]
    own = {name: state[name] for name in ("question", "evidence", "searched", "looked_up")}
    return [Send("retrieve", {**own, **branches(state, None, 1)[0]}), "plan"]


def to_look_up(state: State) -> list[str]:
    """The question first, then each plan that was not looked up yet."""
    context = RpgContext.current(state)
    if not context.retrieve:
        return []
    if not _is_searched(state):
        return [state["question"]]
    if context.search != "plan" or state["passages_given"]:
        return []
    plans = state["outline"] or [state["plan"]]
    return [plan for plan in plans if plan and plan not in state["looked_up"]]


def after_retrieve(state: State) -> list[Send | Literal["plan", "outline", "select"]]:
    """To the planner, to the sentences for its plan, or to the segments of an outline."""
    if state["outline"]:
        return [*_segments(state)]
    if RpgContext.current(state).paper or state["plan"] or state["signal"]:
        return ["select"]
    return [_planner(state)]


def after_outline(state: State) -> list[Send | Literal["retrieve", "select", "answer"]]:
    """To the search for its topics, then to a segment for each; a single plan goes on as in the loop."""
    if state["signal"]:
        return ["answer"]
    if to_look_up(state):
        return ["retrieve"]
    return [*_segments(state)] if state["outline"] else ["select"]


def _segments(state: State) -> list[Send]:
    """A segment for each topic in parallel, each with its share of the model calls."""
    topics = state["outline"]
    left = calls_left(state, RpgContext.current(state))
    shares = branches(state, None if left is None else max(0, left - 1), len(topics))
    shared = {name: state[name] for name in ("question", "answer_style", "evidence")}
    own: dict[str, Any] = {"segments": [], "plans": [], "signal": "", "topics": topics}
    return [
        Send("segment", {**shared, **own, "plan": topic, "place": place, **share})
        for place, (topic, share) in enumerate(zip(topics, shares, strict=True))
    ]


def after_plan(state: State) -> Literal["retrieve", "select", "answer", "combine"]:
    """To the search or the sentences for the plan; without evidence, and where none is needed, to the answer."""
    # The search may be running in parallel: only after `select` is the state complete.
    if _lacks_evidence(state):
        return "select"
    if state["signal"] == COMPLETE:
        return "combine"
    if state["signal"] != NO_INFO and RpgContext.current(state).retrieve:
        return "retrieve" if to_look_up(state) else "select"
    return _unless_repeated(state)


def after_select(state: State) -> Literal["retrieve", "plan", "answer", "combine", "pass_over"]:
    """To the answer, or to the end if the plan repeats an earlier one and no new sentence was selected for it.

    A plan that finds nothing is passed over. After `update_state` replaced the search or the plan, the other of the two is
    made first.
    """
    if not state["plan"] and not state["signal"]:
        return "plan"
    if state["signal"] == COMPLETE:
        return "combine"
    if state["signal"] == NO_INFO:
        return "answer"
    if _lacks_evidence(state) and not state["selected"]:
        return "retrieve"
    if finds_nothing(state):
        return "combine" if repeats(state["plan"], state["plans"]) and state["segments"] else "pass_over"
    known = {
        (one["passage"], one["position"]) for segment in state["segments"] for one in segment["sentences"]
    }
    new = any((one["passage"], one["position"]) not in known for one in state["selected"])
    return "answer" if new else _unless_repeated(state)


def pass_over(state: State) -> dict[str, Any]:
    """Note that nothing was found for a plan; the planner is told."""
    plan, missing = state["plan"], [*state["missing"], state["plan"]]
    given_up = len(missing) >= _cycles(state) and not state["segments"]
    return {
        "plans": [*state["plans"], plan],
        "missing": missing,
        "plan": "",
        "signal": NO_INFO if given_up else "",
        "warnings": [f"nothing was found on: {plan}"],
    }


def _passed_over(state: State, _update: Mapping[str, Any]) -> Said:
    return Said(f"Nothing was found on {quoted(state['plan'])}.", {"topic": state["plan"], "found": 0})


def _unless_repeated(state: State) -> Literal["answer", "combine"]:
    return "combine" if state["segments"] and repeats(state["plan"], state["plans"]) else "answer"


def after_cycle(state: State) -> Literal["plan", "combine"]:
    """To the next plan, up to the limit of cycles."""
    if state["signal"] == NO_INFO:
        return "combine"
    made = len(state["plans"]) - len(state["missing"])
    return "plan" if made < _cycles(state) and len(state["missing"]) < _cycles(state) else "combine"


def after_pass_over(state: State) -> Literal["plan", "answer", "combine"]:
    """To the next plan; where nothing was found at all, to an answer without evidence."""
    return "answer" if state["signal"] == NO_INFO else after_cycle(state)


def _cycles(state: State) -> int:
    """The limit on the segments."""
    return 1 if state["answer_style"] == "short" else RpgContext.current(state).max_cycles


def after_select_for_segment(state: SegmentState) -> Literal["answer", "note"]:
    """To the answer, where anything was found."""
    return "note" if finds_nothing(state) else "answer"


def after_gather(state: State) -> Literal["answer", "combine"]:
    """To the combination; where nothing was found on any topic, to an answer without evidence."""
    return "combine" if state["segments"] else "answer"


def after_trace(state: State) -> Literal["check", "__end__"]:
    """To the check of the sentences, if there is one."""
    return "check" if is_checked_next(state, RpgContext.current(state)) else "__end__"


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
    interrupt_before: Sequence[str] = (),
    interrupt_after: Sequence[str] = (),
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
        interrupt_before: Nodes before which every run stops until it is resumed, which takes a checkpointer; those of
            a segment, such as select, included.
        interrupt_after: Nodes after which every run stops.

    Raises:
        BadInput: A model is neither a chat model nor a name, or the reranker cannot be used.
    """
    target = RetrievalTarget("sources", retriever=retriever, fallback=fallback)
    resources = graph_resources(
        "rpg", RpgContext, target, model=model, node_models=node_models, allow=allow, reranker=reranker
    )
    persistence = Persistence(checkpointer, store, cache, interrupt_before, interrupt_after)
    select = SelectNode(resources)

    def prepare(state: Mapping[str, Any], context: RpgContext) -> None:
        select.check(context)
        if context.retrieve:
            select.prepare(state["evidence"], context)

    def keep_found(state: State, found: list[list[Evidence]], _failed: list[str]) -> dict[str, Any]:
        looked_up = to_look_up(state) if _is_searched(state) else []
        evidence = ranked(state["evidence"] if looked_up else [], *found)
        select.prepare(evidence, RpgContext.current(state))
        return {"evidence": evidence, "searched": True, "looked_up": [*state["looked_up"], *looked_up]}

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
    add_node(builder, begin)
    searched = "Search for the question first, and for the topics once they are planned."
    add_node(builder, RetrieveNode(to_look_up, keep_found, resources, description=searched))
    add_node(builder, select, SelectReading)
    for node in MODEL_NODES:
        add_model_node(builder, resources, node, persistence)
    add_subgraph(
        builder,
        resources,
        "segment",
        _segment_graph(resources, persistence, select),
        starts=describe_start,
        describe=describe_outlined,
        description="Select sentences for one topic, and write a segment from them.",
        publish=publish_outlined,
    )
    together = "Put the segments in the order of their topics."
    add_inline_node(builder, resources, gather, together, describe_gathered)
    add_inline_node(builder, resources, pass_over, "Note that nothing was found on a topic.", _passed_over)
    rests_on = "Say what each sentence of the answer rests on, and number the evidence."
    add_inline_node(builder, resources, trace, rests_on, describe_traced)
    builder.add_edge(START, "begin")
    builder.add_conditional_edges("begin", InlineNode(after_begin), ["retrieve", "plan", "outline"])
    builder.add_conditional_edges(
        "retrieve", InlineNode(after_retrieve), ["plan", "outline", "select", "segment"]
    )
    ends = ["segment", "retrieve", "select", "answer"]
    builder.add_conditional_edges("outline", InlineNode(after_outline), ends)
    builder.add_edge("segment", "gather")
    builder.add_conditional_edges("gather", InlineNode(after_gather), ["answer", "combine"])
    builder.add_conditional_edges("plan", InlineNode(after_plan), ["retrieve", "select", "answer", "combine"])
    ends = ["retrieve", "plan", "answer", "combine", "pass_over"]
    builder.add_conditional_edges("select", InlineNode(after_select), ends)
    builder.add_conditional_edges("answer", InlineNode(after_cycle), ["plan", "combine"])
    ends = ["plan", "answer", "combine"]
    builder.add_conditional_edges("pass_over", InlineNode(after_pass_over), ends)
    builder.add_edge("combine", "trace")
    builder.add_conditional_edges("trace", ending(after_trace, resources), ["check", END])
    builder.add_edge("check", "trace")
    return compile_graph(builder, resources, persistence)


def _segment_graph(resources: GraphResources, persistence: Persistence, select: SelectNode) -> Graph:
    """The subgraph of one segment of an outline."""
    builder: Builder = StateGraph(SegmentState, resources.context, output_schema=SegmentOutput)
    add_node(builder, select, SelectReading)
    add_model_node(builder, resources, answer, persistence)
    add_inline_node(builder, resources, note, "Note the segment.")
    builder.add_edge(START, "select")
    builder.add_conditional_edges("select", InlineNode(after_select_for_segment), ["answer", "note"])
    builder.add_edge("answer", "note")
    builder.add_edge("note", END)
    return compile_step(builder, "segment", persistence)


graph = build_rpg(fallback="memory")
"""RPG with everything from the context, the environment and the defaults, for servers and Studio.

Where no source is named it searches the bundled procedures and says so in a warning.
"""
