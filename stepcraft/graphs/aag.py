"""Analogy-augmented generation: a procedure for a goal, by analogy with procedures in memory (AAG §3).

    begin → retrieve → assess → draft → to_query → retrieve → answer (for each question) → revise → check_names
      → (critic → look_up → edit → check_names)* → (review → look_up → edit → check_names)* → remember

Where the model knows what the goal is about, it drafts from its own knowledge, and questions are asked for what it doubts
or leaves out; they are answered in parallel. Where it does not, questions are asked first, and the draft is written from
what is found for them and for the goal, without answers or a revision. With `examples=True` and `questions=True`, as in
the paper, the draft is written from the evidence at once, and questions are asked meanwhile. `retrieve` searches for the
goal first and for the questions after it, and its router sends the run to whatever the state lacks. So the state
alone says how the run goes on, also after `update_state`. `paper=True` leaves out `check_names` and `look_up`. `review` and
`remember` are passed through only where the settings ask for them: steps are final once a person has approved them as
they are, and after the first review the critic is not asked any more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal, NotRequired

from langchain_core.embeddings import Embeddings
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

from stepcraft.contexts.aag import AagContext
from stepcraft.contexts.base import Context, SearchSettings
from stepcraft.evidence import Evidence
from stepcraft.graphs.compile import (
    Allow,
    Builder,
    InlineNode,
    Persistence,
    add_model_node,
    add_node,
    compile_graph,
    ending,
    graph_resources,
)
from stepcraft.llm.budget import Budgeted, Usage, branches, calls_left
from stepcraft.llm.resources import GraphResources
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.nodes.aag.answer import Answered, answer, answered, merge_answers
from stepcraft.nodes.aag.assess import assess
from stepcraft.nodes.aag.critic import Critique, critic
from stepcraft.nodes.aag.draft import draft
from stepcraft.nodes.aag.edit import edit
from stepcraft.nodes.aag.names import CheckedName, NamesNode
from stepcraft.nodes.aag.remember import RememberNode
from stepcraft.nodes.aag.response import Review, approval
from stepcraft.nodes.aag.review import ReviewNode, ReviewRequest, check_can_pause
from stepcraft.nodes.aag.revise import revise
from stepcraft.nodes.aag.to_query import doubts_of, to_query
from stepcraft.nodes.begin import BeginNode, checked_text
from stepcraft.nodes.retrieve import RetrieveNode, ranked, wanted
from stepcraft.retrieval.target import RetrievalTarget
from stepcraft.schema import described
from stepcraft.text.names import mentions, names_in

__all__ = ["AagContext", "Input", "Output", "Review", "ReviewRequest", "State", "build_aag", "graph"]

MODEL_NODES = (assess, draft, to_query, answer, revise, critic, edit)


@described
class Input(TypedDict):
    """A goal, and the resources for it."""

    question: str
    """The goal: what is to be reached."""
    resources: NotRequired[str | list[str]]
    """The available resources, as a comma-separated text or a list."""


@described
class Output(TypedDict):
    """The procedure and how it was written."""

    answer: str
    """The steps as one numbered text."""
    steps: list[str]
    """The steps in order."""
    questions: Annotated[list[Answered], merge_answers]
    """The questions that were looked up, with their answers and the ids of the procedures that these rest on."""
    evidence: list[Evidence]
    """The procedures that were found, with their best scores."""
    critiques: list[Critique]
    """The edits that the critic, or a person in a review, asked for each time, and their outcome."""
    names: list[CheckedName]
    """The names in the code of the steps, and where else they stand; an unverified one may be invented."""
    reviews: list[Review]
    """What people said of the steps, with `review` or `remember`; the last one approved them."""
    remembered: str
    """The id of the procedure that the steps were remembered as, "" if they were not."""
    warnings: list[str]
    """Failed steps, reached limits, and whatever else a reader of the answer should know."""
    usage: Usage
    """Model calls and tokens, in total and by node."""


class State(Output, Budgeted):
    """The state of AAG."""

    question: str
    """The goal."""
    resources: NotRequired[Annotated[Any, EphemeralValue]]
    """The input as it was given; not kept for the thread's next run."""
    resources_text: str
    """The resources as one text, "" if none are named."""
    draft: list[str] | None
    """The steps of the draft, with doubts between [[ and ]]; None until it is written."""
    familiar: NotRequired[bool | None]
    """Whether the model knows what the goal is about; None while it has not been asked."""
    queries: list[str]
    """The questions that are looked up; empty until they are asked."""
    found: dict[str, list[Evidence]]
    """The evidence for each question that was looked up."""
    knowledge: list[Evidence]
    """Without answers (NOAG): the evidence for all questions."""
    goal_evidence: list[str]
    """The ids of the evidence that was found for the goal itself."""
    edits: list[str]
    """The edits that the critic, or a person in a review, asks for now."""
    told: list[str]
    """The unverified names that the critic has been told of."""


def _initial_state(
    resources: GraphResources, given: Mapping[str, Any], context: AagContext
) -> dict[str, Any]:
    if context.pauses:
        check_can_pause()
    if context.remember:
        resources.policy.check_remember()
    lists = (
        "steps",
        "evidence",
        "critiques",
        "queries",
        "knowledge",
        "edits",
        "names",
        "told",
        "goal_evidence",
        "reviews",
    )
    return {
        **{name: [] for name in lists},
        "answer": "",
        "remembered": "",
        "draft": None,
        "familiar": None,
        "found": {},
        "questions": Overwrite([]),
        "resources_text": checked_text("resources", given.get("resources") or ""),
    }


def _to_look_up(state: State) -> list[str]:
    """The goal with its resources before anything is written; later the questions not looked up yet (AAG §3.2)."""
    if state["queries"]:
        return [query for query in dict.fromkeys(state["queries"]) if query not in state["found"]]
    return [] if state["draft"] is not None else [wanted(state["question"], state["resources_text"])]


def _search_settings(state: State, context: Context) -> SearchSettings:
    """The memory for the draft, which may compose procedures; for the questions also the sources, if a run has any."""
    settings = context.search_settings()
    return replace(settings, compose=False) if state["queries"] else replace(settings, both=False)


def _memory_alone(_state: State, context: Context) -> SearchSettings:
    return replace(context.search_settings(), compose=False, both=False)


def _keep_found(state: State, found: list[list[Evidence]], _failed: list[str]) -> dict[str, Any]:
    """The evidence for the goal, or by question. What belongs to questions that are no longer asked is dropped."""
    if not state["queries"]:
        ids = [passage["id"] for passage in found[0]] if found else []
        return {"evidence": found[0], "goal_evidence": ids} if found else {}
    known = {**state["found"], **dict(zip(_to_look_up(state), found, strict=True))}
    by_query = {query: known[query] for query in state["queries"]}
    update: dict[str, Any] = {"found": by_query, "evidence": ranked(state["evidence"], *found)}
    if not _answers(state):
        update["questions"] = [answered(query, "", evidence) for query, evidence in by_query.items()]
        update["knowledge"] = ranked(*by_query.values())
    if any(asked["question"] not in by_query for asked in state["questions"]):
        kept = [asked for asked in state["questions"] if asked["question"] in by_query]
        update["questions"] = Overwrite(merge_answers(kept, update.get("questions", [])))
    return update


def _answers(state: State) -> bool:
    """Whether the questions are answered: by default those about a draft; one that is still to be written takes the procedures."""
    answers = AagContext.current(state).answers
    return state.get("familiar") is not False if answers == "auto" else answers


def _edits_to_look_up(state: State) -> list[str]:
    """The edits with a name that stands neither in the steps nor in what the edit is applied with."""
    known = [
        state["question"],
        state["resources_text"],
        *state["steps"],
        *(asked["answer"] for asked in state["questions"]),
        *(f"{passage['title']}\n{passage['text']}" for passage in state["evidence"]),
    ]
    return [
        edit
        for edit in state["edits"]
        if any(not any(mentions(text, name) for text in known) for name in names_in([edit]))
    ]


def _keep_found_for_edits(state: State, found: list[list[Evidence]], _failed: list[str]) -> dict[str, Any]:
    """The evidence, which the edits are shown as knowledge."""
    return {"knowledge": ranked(state["knowledge"], *found), "evidence": ranked(state["evidence"], *found)}


def after_retrieve(
    state: State,
) -> list[Send] | Literal["assess", "retrieve", "draft", "revise"]:
    """The draft, with `questions=True` beside the questions; then the answers in parallel; then the revision.

    With `examples="auto"`, first whether the model knows what the goal is about; if not, the draft comes last.
    """
    context = AagContext.current(state)
    no_draft, familiar = state["draft"] is None, state.get("familiar")
    left = calls_left(state, context)
    unassessed = no_draft and familiar is None and context.examples == "auto"
    if unassessed and state["evidence"] and (left is None or left > 1):
        return "assess"
    draft_last = no_draft and familiar is False
    asks = context.questions is True or (draft_last and context.questions)
    missing = ["draft"] if no_draft and not draft_last else []
    if asks and not state["queries"]:
        missing.append("to_query")
    if missing:
        goal = {name: state.get(name) for name in ("question", "resources_text", "evidence", "familiar")}
        shares = branches(state, left, len(missing))
        return [Send(node, {**goal, **share}) for node, share in zip(missing, shares, strict=True)]
    if any(query not in state["found"] for query in state["queries"]):
        return "retrieve"
    done = {asked["question"] for asked in state["questions"]}
    open_queries = [query for query in state["found"] if query not in done]
    if not (context.questions and open_queries and _answers(state)):
        return "draft" if draft_last else "revise"
    shares = branches(state, left, len(open_queries))
    return [
        Send("answer", {"query": query, "evidence": state["found"][query], **share})
        for query, share in zip(open_queries, shares, strict=True)
    ]


def after_draft(state: State) -> Literal["to_query", "retrieve", "revise"]:
    """To the questions for its doubts, or the search for those that were asked beside it; else to the revision.

    Where there is no draft, or sources are named for the answers, questions are asked in any case.
    """
    context = AagContext.current(state)
    if context.questions == "auto" and not state["queries"]:
        always = not state["draft"] or context.answer_from == "memory+source"
        return "to_query" if always or doubts_of(state, context) else "revise"
    return "retrieve" if context.questions else "revise"


def after_answer(state: State) -> Literal["retrieve", "revise"]:
    """To the revision; without a draft, where `update_state` wrote an answer early, to what is missing."""
    return "retrieve" if state["draft"] is None else "revise"


def after_steps(state: State) -> Literal["check_names", "critic", "review", "remember", "__end__"]:
    """To the names in the steps, or straight to the critic."""
    return "check_names" if AagContext.current(state).names else after_names(state)


def after_names(state: State) -> Literal["critic", "review", "remember", "__end__"]:
    """To the critic, if there is one, while further edits may be applied and no person has reviewed the steps."""
    context = AagContext.current(state)
    asks = context.critic and len(state["critiques"]) < context.max_updates and not state.get("reviews")
    return "critic" if asks else _when_written(state, context)


def after_critic(state: State) -> Literal["look_up", "edit", "review", "remember", "__end__"]:
    """To the edits, if the critic asks for any; by way of the memory where they name what was not found yet."""
    context = AagContext.current(state)
    if not state["edits"]:
        return _when_written(state, context)
    return "look_up" if context.critic_evidence and _edits_to_look_up(state) else "edit"


def after_review(state: State) -> Literal["look_up", "edit", "review", "remember", "__end__"]:
    """To the edit that a rejection asks for; else the run ends as it is set to."""
    return after_critic(state)


def _when_written(state: State, context: AagContext) -> Literal["review", "remember", "__end__"]:
    """Where a run goes that nothing is left to be written in: only steps that are approved as they are, are final."""
    if not context.pauses:
        return "__end__"
    if approval(state) is None:
        return "review"
    return "remember" if context.remember else "__end__"


def after_remember(_state: State) -> Literal["__end__"]:
    """The end."""
    return "__end__"


def build_aag(
    *,
    model: BaseChatModel | str | None = None,
    node_models: Mapping[str, BaseChatModel | str] | None = None,
    memory: ProcedureMemory | str | None = None,
    embeddings: Embeddings | str | None = None,
    retriever: BaseRetriever | str | Sequence[BaseRetriever | str] | None = None,
    allow: Allow = None,
    checkpointer: BaseCheckpointSaver[Any] | bool | None = None,
    store: BaseStore | None = None,
    cache: BaseCache[Any] | None = None,
    interrupt_before: Sequence[str] = (),
    interrupt_after: Sequence[str] = (),
) -> CompiledStateGraph[State, AagContext, Input, Output]:
    """Build and compile the AAG graph (AAG §3).

    The context of a run takes precedence over the arguments, and these over the environment variables
    `STEPCRAFT_MODEL`, `STEPCRAFT_MEMORY` and `STEPCRAFT_EMBEDDINGS`. Without any of them, the keyless extractive model
    works with the bundled procedures.

    Args:
        model: The model of all nodes, as an object or a name for `init_chat_model`.
        node_models: Another model for some nodes, by the name of the node.
        memory: The procedural memory, or a URL for `open_memory`.
        embeddings: The embeddings for a memory that is named by a URL, as an object or a name.
        retriever: Sources of passages for runs with `answer_from="memory+source"`, as `build_rat` takes them.
        allow: What the contexts of runs may name beside the defaults, as entries of STEPCRAFT_ALLOW (see `Policy`); None
            for those in STEPCRAFT_ALLOW.
        checkpointer: Keeps the state of each thread, so that an interrupted run can be resumed.
        store: The store of the nodes; the memory `store:` is kept in it.
        cache: Keeps the replies of model nodes, so that the same prompt is sent to the same model once.
        interrupt_before: Nodes before which every run stops until it is resumed, which takes a checkpointer.
        interrupt_after: Nodes after which every run stops.

    Raises:
        BadInput: A model is neither a chat model nor a name, or an entry of `allow` is not understood.
    """
    target = RetrievalTarget("memory", memory, embeddings, retriever)
    resources = graph_resources("aag", AagContext, target, model=model, node_models=node_models, allow=allow)
    persistence = Persistence(checkpointer, store, cache, interrupt_before, interrupt_after)
    builder: Builder = StateGraph(State, resources.context, input_schema=Input, output_schema=Output)
    add_node(
        builder, BeginNode([node.node for node in MODEL_NODES], partial(_initial_state, resources), resources)
    )
    retrieve = RetrieveNode(
        _to_look_up,
        _keep_found,
        resources,
        _search_settings,
        description="Search for the goal first, and for the questions once they are asked.",
        noun="procedure",
    )
    look_up = RetrieveNode(
        _edits_to_look_up,
        _keep_found_for_edits,
        resources,
        _memory_alone,
        name="look_up",
        description="Search for what the edits name and nothing has shown yet.",
        noun="procedure",
    )
    add_node(builder, retrieve)
    add_node(builder, look_up)
    builder.add_edge("look_up", "edit")
    for node in MODEL_NODES:
        add_model_node(builder, resources, node, persistence)
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "retrieve")
    after = InlineNode(after_retrieve)
    for place in ("retrieve", "assess"):
        ways = ["assess", "draft", "to_query", "retrieve", "answer", "revise"]
        builder.add_conditional_edges(place, after, ways)
    builder.add_edge("to_query", "retrieve")
    builder.add_conditional_edges("draft", InlineNode(after_draft), ["to_query", "retrieve", "revise"])
    builder.add_conditional_edges("answer", InlineNode(after_answer), ["retrieve", "revise"])
    names = NamesNode(resources)
    add_node(builder, names)
    add_node(builder, ReviewNode(resources, names))
    add_node(builder, RememberNode(resources, names))
    ends = ["review", "remember", END]
    for writer in ("revise", "edit"):
        builder.add_conditional_edges(
            writer, ending(after_steps, resources), ["check_names", "critic", *ends]
        )
    builder.add_conditional_edges("check_names", ending(after_names, resources), ["critic", *ends])
    builder.add_conditional_edges("critic", ending(after_critic, resources), ["look_up", "edit", *ends])
    builder.add_conditional_edges("review", ending(after_review, resources), ["look_up", "edit", *ends])
    builder.add_conditional_edges("remember", ending(after_remember, resources), [END])
    return compile_graph(builder, resources, persistence)


graph = build_aag()
"""AAG with everything from the context, the environment and the defaults, for servers and Studio."""
