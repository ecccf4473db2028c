"""ReAct: an agent that may search, and search again, before it answers (LangChain's `create_agent`)."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.retrievers import BaseRetriever
from langgraph.cache.base import BaseCache
from langgraph.graph import END
from langgraph.store.base import BaseStore

from stepcraft.contexts.base import Context
from stepcraft.contexts.baselines import ReactContext
from stepcraft.errors import UnreadableReply
from stepcraft.graphs.baselines import _baseline
from stepcraft.graphs.baselines._baseline import (
    Input,
    Output,
    builder_with_begin,
    initial_state,
    keep_found,
    searches,
    to_look_up,
)
from stepcraft.graphs.compile import (
    Checkpointer,
    Graph,
    InlineNode,
    Models,
    Persistence,
    add_model_node,
    compile_graph,
    given_models,
)
from stepcraft.llm.prompt import asked_sections
from stepcraft.llm.reply import Refused, reply_text
from stepcraft.llm.reply_text import text_of
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.models.keyless.model import ExtractiveModel
from stepcraft.models.resolve import resolve_model
from stepcraft.nodes.baselines import agent as agency
from stepcraft.nodes.baselines.answer import answer
from stepcraft.nodes.baselines.search_tool import search_tool
from stepcraft.nodes.retrieve import RetrieveNode
from stepcraft.retrieval.build import GraphResources, MemoryTarget, SourceTarget
from stepcraft.retrieval.searched import SourceOrMemory

__all__ = ["Input", "Output", "ReactContext", "State", "build_react", "graph"]

NO_TOOLS = "the model takes no tools, so nothing was searched more than once: this is what rag gives"


class State(_baseline.State):
    """All that the nodes hand to each other."""

    messages: list[AnyMessage]
    """What the agent was asked, searched, found and replied."""


def _initial_state(given: Mapping[str, Any], context: Context) -> dict[str, Any]:
    start = initial_state(given, context)
    asked = "\n\n".join(filter(None, asked_sections("question", given["question"], start["resources_text"])))
    return {**start, "messages": [HumanMessage(asked)]}


def conclude(state: State) -> dict[str, Any]:
    """The agent's last word as the answer; "" where there is none that can be used."""
    last = state["messages"][-1]
    if not isinstance(last, AIMessage):
        return {"warnings": [] if state["passages_given"] else [NO_TOOLS]}
    try:
        return {"answer": text_of(reply_text(last))}
    except Refused as refused:
        return {"warnings": [f"agent: the model declined: {refused!s:.200}"]}
    except UnreadableReply:
        return {"warnings": ["agent: it gave no answer, so one is written from what was found"]}


def after_conclude(state: State) -> Literal["answer", "retrieve", "__end__"]:
    """To the end; without an answer to one from what was found, or from what one search finds."""
    if state["answer"]:
        return "__end__"
    return "answer" if state["evidence"] or state["passages_given"] else "retrieve"


def build_react(
    *,
    model: BaseChatModel | str | None = None,
    node_models: Models = None,
    retriever: BaseRetriever | str | Sequence[BaseRetriever | str] | None = None,
    memory: ProcedureMemory | str | None = None,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    cache: BaseCache[Any] | None = None,
) -> Graph:
    """The graph, compiled. The arguments are those of `build_rat` and `build_aag`.

    A model that takes no tools answers from one search, as in rag; so does one that comes to no answer of its own.

    Raises:
        BadInput: what is given as a model is neither a chat model nor a name.
    """
    searched = SourceOrMemory(SourceTarget(retriever), MemoryTarget(memory))
    build = GraphResources("react", ReactContext, given_models(model, node_models), searched)
    kept = Persistence(checkpointer, store, cache)

    def after_begin(state: State) -> Literal["agent", "conclude"]:
        model = resolve_model(build.models.choice(agency.NODE, ReactContext.current(state)))
        return "agent" if _takes_tools(model) and not state["passages_given"] else "conclude"

    builder = builder_with_begin(
        build, [agency.NODE, answer.node], state=State, initial=_initial_state, searches=searches
    )
    builder.add_node(agency.NODE, _agent(build))
    builder.add_node("conclude", InlineNode(conclude))
    builder.add_node("retrieve", RetrieveNode(to_look_up, keep_found, build))
    add_model_node(builder, build, answer, kept)
    builder.add_conditional_edges("begin", InlineNode(after_begin), ["agent", "conclude"])
    builder.add_edge("agent", "conclude")
    builder.add_conditional_edges("conclude", InlineNode(after_conclude), ["answer", "retrieve", END])
    builder.add_edge("retrieve", "answer")
    builder.add_edge("answer", END)
    return compile_graph(builder, build, kept, recursion_limit=_SUPERSTEPS)


def _agent(build: GraphResources) -> Graph:
    """The agent; each of its turns chooses the model of the run, so the one here is never asked."""
    tools, turns = [search_tool(build)], agency.Turns(build)
    return create_agent(
        ExtractiveModel(), tools, middleware=[turns], context_schema=ReactContext, name=agency.NODE
    )


def _takes_tools(model: BaseChatModel) -> bool:
    return type(model).bind_tools is not BaseChatModel.bind_tools


_SUPERSTEPS = 1_000
"""The most searches are fifty, each with a turn; LangGraph's own limit was 25 in its older versions."""

graph = build_react()
"""ReAct with everything from the context, the environment and the defaults, for servers and Studio."""
