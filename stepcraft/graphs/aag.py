"""Analogy-augmented generation: a procedure for a goal, by analogy with remembered procedures (AAG §3)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langgraph.cache.base import BaseCache
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import Overwrite, Send

from stepcraft.contexts.aag import AagContext
from stepcraft.contexts.base import Context
from stepcraft.errors import NoAnswer
from stepcraft.evidence import Evidence
from stepcraft.graphs._aag_state import Input, Output, State
from stepcraft.graphs.compile import Builder, Persistence, add, compile_graph, given_models
from stepcraft.graphs.inline import InlineNode
from stepcraft.llm.budget import branches, calls_left
from stepcraft.llm.resources import GraphResources
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.nodes.aag import answer as answering
from stepcraft.nodes.aag import critic as criticism
from stepcraft.nodes.aag import draft as drafting
from stepcraft.nodes.aag import edit as editing
from stepcraft.nodes.aag import revise as revision
from stepcraft.nodes.aag import to_query as querying
from stepcraft.nodes.begin import BeginNode, checked
from stepcraft.nodes.retrieve import RetrieveNode, ranked, wanted
from stepcraft.retrieval.build import MemoryTarget, RetrievalTarget, SourceTarget
from stepcraft.retrieval.searched import Composing, MemoryAndSource

__all__ = ["AagContext", "Input", "Output", "State", "build_aag", "graph"]

MODEL_NODES = {
    node.node: node
    for node in (
        drafting.draft,
        querying.to_query,
        answering.answer,
        revision.revise,
        criticism.critic,
        editing.edit,
    )
}


def to_look_up(state: State) -> list[str]:
    """The questions; before there are any, the goal with its resources (AAG §3.2)."""
    if state["queries"]:
        return state["queries"]
    return [wanted(state["question"], state["resources_text"])]


def keep_found(state: State, found: list[list[Evidence]], _failed: list[str]) -> dict[str, Any]:
    """What was found for the goal; then for each question, as its own or as common knowledge (NOAG)."""
    if not state["queries"]:
        return {"evidence": found[0]}
    kept: dict[str, Any] = {"found": found, "evidence": ranked(state["evidence"], *found)}
    if not AagContext.current().answers:
        asked = zip(state["queries"], found, strict=True)
        kept["questions"] = [answering.answered(query, "", evidence) for query, evidence in asked]
        kept["knowledge"] = ranked(*found)
    return kept


def after_retrieve(state: State) -> list[Send] | Literal["revise"]:
    """The draft beside the questions; then each question to its own branch, or all they found to the revision."""
    context = AagContext.current()
    left = calls_left(state, context)
    if not state["queries"]:
        nodes = ["draft", "to_query"] if context.questions else ["draft"]
        return [
            Send(node, {**state, **branch})
            for node, branch in zip(nodes, branches(state, left, len(nodes)), strict=True)
        ]
    if not context.answers:
        return "revise"
    asked = zip(state["queries"], state["found"], branches(state, left, len(state["queries"])), strict=True)
    return [Send("answer", {"query": query, "evidence": found, **branch}) for query, found, branch in asked]


def after_draft(state: State) -> list[Literal["critic", "__end__"]]:
    """Without questions (NOQG) to the critic; else on with the revision, which waits for the answers."""
    if AagContext.current().questions:
        return []
    if not state["steps"]:
        raise NoAnswer(f"no steps were written: {state['warnings'][-1]}")
    return [to_critic(state)]


def to_critic(_state: State) -> Literal["critic", "__end__"]:
    """To the critic, where there is one whose edits may be applied."""
    context = AagContext.current()
    return "critic" if context.critic and context.max_updates else "__end__"


def after_critic(state: State) -> Literal["edit", "__end__"]:
    """To the edits, where it asks for any."""
    return "edit" if state["edits"] else "__end__"


def after_edit(state: State) -> Literal["critic", "__end__"]:
    """Back to the critic, while further edits may be applied."""
    return "critic" if len(state["critiques"]) < AagContext.current().max_updates else "__end__"


def _fresh(given: Mapping[str, Any]) -> dict[str, Any]:
    lists = ("steps", "evidence", "critiques", "draft", "queries", "found", "knowledge", "edits")
    resources_text = checked("resources", given.get("resources") or "")
    return {
        "answer": "",
        "resources_text": resources_text,
        "questions": Overwrite([]),
        **{name: [] for name in lists},
    }


def build_aag(
    *,
    model: BaseChatModel | str | None = None,
    node_models: Mapping[str, BaseChatModel | str] | None = None,
    memory: ProcedureMemory | str | None = None,
    embeddings: Embeddings | str | None = None,
    retriever: BaseRetriever | str | Sequence[BaseRetriever | str] | None = None,
    checkpointer: BaseCheckpointSaver[Any] | bool | None = None,
    store: BaseStore | None = None,
    cache: BaseCache[Any] | None = None,
) -> CompiledStateGraph[State, AagContext, Input, Output]:
    """The AAG graph, compiled (AAG §3).

    What a run's context names goes before what is given here; this goes before the environment's
    `STEPCRAFT_MODEL`, `STEPCRAFT_MEMORY` and `STEPCRAFT_EMBEDDINGS`; without any of them the keyless model works
    with the bundled procedures.

    Args:
        model: The model of all nodes, as an object or a name for `init_chat_model`.
        node_models: Another model for some nodes, by the node's name.
        memory: The procedures, opened, or what `open_memory` opens.
        embeddings: How a memory that is named compares texts.
        retriever: Sources of passages, as `build_rat` takes them, for runs with `answer_from="memory+source"`.
        checkpointer: Keeps the state of each thread, so that a run that was killed goes on where it was.
        store: Injected into the nodes; the memory `store:` is kept in it.
        cache: Keeps the replies of model nodes: the same prompt to the same model is then asked once.

    Raises:
        BadInput: what is given as a model is neither a chat model nor a name.
    """
    searched = MemoryAndSource(MemoryTarget(memory, embeddings), SourceTarget(retriever))
    build = GraphResources("aag", AagContext, given_models(model, node_models), searched)
    kept = Persistence(checkpointer, store, cache)
    builder: Builder = StateGraph(State, AagContext, input_schema=Input, output_schema=Output)
    builder.add_node("begin", BeginNode(tuple(MODEL_NODES), _fresh, build))
    builder.add_node("retrieve", RetrieveNode(to_look_up, keep_found, build, _sources(searched)))
    for node in MODEL_NODES.values():
        add(builder, build, node, kept)
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "retrieve")
    builder.add_conditional_edges(
        "retrieve", InlineNode(after_retrieve), ["draft", "to_query", "answer", "revise"]
    )
    builder.add_edge("to_query", "retrieve")
    builder.add_conditional_edges("draft", InlineNode(after_draft), ["critic", END])
    builder.add_edge(["draft", "answer"], "revise")
    builder.add_conditional_edges("revise", InlineNode(to_critic), ["critic", END])
    builder.add_conditional_edges("critic", InlineNode(after_critic), ["edit", END])
    builder.add_conditional_edges("edit", InlineNode(after_edit), ["critic", END])
    return compile_graph(builder, build, kept)


def _sources(searched: MemoryAndSource) -> Callable[[State, Context], list[RetrievalTarget]]:
    """For the draft the memory, which may compose what it finds; for the answers the sources beside it, if wanted."""
    composing = Composing(searched.memory.memory, searched.memory.embeddings)

    def sources(state: State, context: Context) -> list[RetrievalTarget]:
        return searched.all_of(context) if state["queries"] else [composing]

    return sources


graph = build_aag()
"""AAG with everything from the context, the environment and the defaults, for servers and Studio."""
