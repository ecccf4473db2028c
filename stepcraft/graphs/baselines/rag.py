"""RAG: the model is shown the passages of one search for the question (k = 1 and 5 are the papers' RAG-1 and RAG-5)."""

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langgraph.cache.base import BaseCache
from langgraph.store.base import BaseStore

from stepcraft.contexts.baselines import RagContext
from stepcraft.graphs.baselines._baseline import (
    Input,
    Output,
    State,
    builder_with_begin,
    initial_state,
    keep_found,
    linear_graph,
    searches,
    to_look_up,
)
from stepcraft.graphs.compile import Allow, Checkpointer, Graph, Models, Persistence, graph_resources
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.nodes.baselines.answer import answer
from stepcraft.nodes.retrieve import RetrieveNode
from stepcraft.retrieval.target import RetrievalTarget

__all__ = ["Input", "Output", "RagContext", "State", "build_rag", "graph"]


def build_rag(
    *,
    model: BaseChatModel | str | None = None,
    node_models: Models = None,
    retriever: BaseRetriever | str | Sequence[BaseRetriever | str] | None = None,
    memory: ProcedureMemory | str | None = None,
    allow: Allow = None,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    cache: BaseCache[Any] | None = None,
    interrupt_before: Sequence[str] = (),
    interrupt_after: Sequence[str] = (),
) -> Graph:
    """Build and compile the RAG baseline: one search, one model call.

    The arguments are those of `build_rat` and `build_aag`.

    Raises:
        BadInput: A model is neither a chat model nor a name.
    """
    target = RetrievalTarget("sources or memory", memory, retriever=retriever)
    resources = graph_resources("rag", RagContext, target, model=model, node_models=node_models, allow=allow)
    builder = builder_with_begin(resources, [answer.node], initial=initial_state, searches=searches)
    retrieve = RetrieveNode(to_look_up, keep_found, resources)
    return linear_graph(
        builder,
        resources,
        answer,
        Persistence(checkpointer, store, cache, interrupt_before, interrupt_after),
        retrieve,
    )


graph = build_rag()
"""RAG with everything from the context, the environment and the defaults, for servers and Studio."""
