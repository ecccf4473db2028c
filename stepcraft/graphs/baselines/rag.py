"""RAG: what a search for the question finds is shown to the model (with k = 1 and 5 the papers' RAG-1 and RAG-5)."""

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langgraph.cache.base import BaseCache
from langgraph.store.base import BaseStore

from stepcraft.contexts.baselines import RagContext
from stepcraft.graphs.baselines._assemble import begun, linear_graph
from stepcraft.graphs.baselines._state import (
    Input,
    Output,
    State,
    fresh,
    keep_found,
    searches,
    to_look_up,
)
from stepcraft.graphs.compile import Checkpointer, Graph, Models, Persistence, given_models
from stepcraft.llm.resources import GraphResources
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.nodes.baselines import answer as answering
from stepcraft.nodes.retrieve import RetrieveNode
from stepcraft.retrieval.build import MemoryTarget, SourceTarget
from stepcraft.retrieval.searched import SourceOrMemory

__all__ = ["Input", "Output", "RagContext", "State", "build_rag", "graph"]


def build_rag(
    *,
    model: BaseChatModel | str | None = None,
    node_models: Models = None,
    retriever: BaseRetriever | str | Sequence[BaseRetriever | str] | None = None,
    memory: ProcedureMemory | str | None = None,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    cache: BaseCache[Any] | None = None,
) -> Graph:
    """The graph, compiled: one search, one call. The arguments are those of `build_rat` and `build_aag`.

    Raises:
        BadInput: what is given as a model is neither a chat model nor a name.
    """
    searched = SourceOrMemory(SourceTarget(retriever), MemoryTarget(memory))
    build = GraphResources("rag", RagContext, given_models(model, node_models), searched)
    node, retrieve = answering.answer_question, RetrieveNode(to_look_up, keep_found, build)
    builder = begun(build, [node.node], starts=fresh, searches=searches)
    return linear_graph(builder, build, node, Persistence(checkpointer, store, cache), retrieve)


graph = build_rag()
"""RAG with everything from the context, the environment and the defaults, for servers and Studio."""
