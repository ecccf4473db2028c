"""ReAct: an agent that searches as often as it needs before it answers, on LangChain's `create_agent`."""

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
    Allow,
    Checkpointer,
    Graph,
    InlineNode,
    Models,
    Persistence,
    add_inline_node,
    add_model_node,
    add_node,
    add_subgraph,
    compile_graph,
    ending,
    graph_resources,
)
from stepcraft.llm.prompt import asked_sections
from stepcraft.llm.reply import Refused, reply_text, text_of
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.models.keyless.model import ExtractiveModel
from stepcraft.models.resolve import resolve_model
from stepcraft.nodes.baselines.agent import NODE, BudgetedModelMiddleware, describe, search_tool
from stepcraft.nodes.baselines.answer import answer
from stepcraft.nodes.retrieve import RetrieveNode
from stepcraft.progress import Said
from stepcraft.retrieval.target import RetrievalTarget
from stepcraft.secrets import without_secrets

__all__ = ["Input", "Output", "ReactContext", "State", "build_react", "graph"]

NO_TOOLS = "the model takes no tools, so nothing was searched more than once: this is what rag gives"

MAX_SUPERSTEPS = 1_000
"""The recursion limit: fifty searches with a turn each exceed the 25 of older versions of LangGraph."""


class State(_baseline.State):
    """The state of a run: that of every baseline, and the agent's messages."""

    messages: list[AnyMessage]
    """The conversation of the agent: the question, its searches, what they found, its replies."""


def _initial_state(given: Mapping[str, Any], context: Context) -> dict[str, Any]:
    start = initial_state(given, context)
    asked = "\n\n".join(filter(None, asked_sections("question", given["question"], start["resources_text"])))
    return {**start, "messages": [HumanMessage(asked)]}


def conclude(state: State) -> dict[str, Any]:
    """Take the agent's last message as the answer; without a usable one the answer stays empty."""
    last = state["messages"][-1]
    if not isinstance(last, AIMessage):
        return {"warnings": [] if state["passages_given"] else [NO_TOOLS]}
    try:
        return {"answer": text_of(reply_text(last))}
    except Refused as refused:
        return {"warnings": [f"agent: the model declined: {without_secrets(str(refused)):.200}"]}
    except UnreadableReply:
        return {"warnings": ["agent: it gave no answer, so one is written from what was found"]}


def _concluded(_state: State, update: Mapping[str, Any]) -> Said:
    if update.get("answer"):
        return Said("The answer is that of the agent.")
    return Said("There is no answer of an agent yet, so one is written from what is found.")


def after_conclude(state: State) -> Literal["answer", "retrieve", "__end__"]:
    """End with the agent's answer; else write one from the evidence, or from one search where there is none."""
    if state["answer"]:
        return "__end__"
    return "answer" if state["evidence"] or state["passages_given"] else "retrieve"


def build_react(
    *,
    model: BaseChatModel | str | None = None,
    node_models: Models = None,
    retriever: BaseRetriever | str | Sequence[BaseRetriever | str] | None = None,
    memory: ProcedureMemory | str | None = None,
    allow: Allow = None,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    cache: BaseCache[Any] | None = None,
) -> Graph:
    """The compiled graph. The arguments are those of `build_rat` and `build_aag`.

    Where the model takes no tools, or the agent ends without an answer, the answer is written from one search, as in
    rag. The cache holds the reply of that node, `answer`; the agent's own turns are not cached.

    Raises:
        BadInput: what is given as a model is neither a chat model nor a name.
    """
    searched = RetrievalTarget("sources or memory", memory, retriever=retriever)
    resources = graph_resources(
        "react", ReactContext, searched, model=model, node_models=node_models, allow=allow
    )
    kept = Persistence(checkpointer, store, cache)

    def after_begin(state: State) -> Literal["agent", "conclude"]:
        """Run the agent where the model takes tools and no passages were given."""
        model = resolve_model(resources.models.choice(NODE, ReactContext.current(state)))
        takes_tools = type(model).bind_tools is not BaseChatModel.bind_tools
        return "agent" if takes_tools and not state["passages_given"] else "conclude"

    agent = create_agent(
        ExtractiveModel(),  # replaced in every turn by the model of the run
        [search_tool(resources)],
        middleware=[BudgetedModelMiddleware(resources)],
        context_schema=ReactContext,
        name=NODE,
    )
    builder = builder_with_begin(
        resources, [NODE, answer.node], state=State, initial=_initial_state, searches=searches
    )
    add_subgraph(
        builder,
        resources,
        NODE,
        agent,
        starts=lambda _state: Said("The agent reads the question."),
        describe=describe,
        description="Search as often as the model needs, and answer.",
    )
    add_inline_node(builder, resources, conclude, "Take the answer of the agent, if it gave one.", _concluded)
    add_node(builder, RetrieveNode(to_look_up, keep_found, resources))
    add_model_node(builder, resources, answer, kept)
    builder.add_conditional_edges("begin", InlineNode(after_begin), [NODE, "conclude"])
    builder.add_edge(NODE, "conclude")
    builder.add_conditional_edges("conclude", ending(after_conclude, resources), ["answer", "retrieve", END])
    builder.add_edge("retrieve", "answer")
    builder.add_edge("answer", END)
    return compile_graph(builder, resources, kept, recursion_limit=MAX_SUPERSTEPS)


graph = build_react()
"""ReAct with everything from the context, the environment and the defaults, for servers and Studio."""
