"""Direct: the question is put to the model, and that is all."""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.cache.base import BaseCache
from langgraph.store.base import BaseStore

from stepcraft.contexts.baselines import DirectContext
from stepcraft.graphs.baselines._assemble import begun, linear_graph
from stepcraft.graphs.baselines._state import Input, Output, State
from stepcraft.graphs.compile import Checkpointer, Graph, Models, Persistence, given_models
from stepcraft.llm.resources import GraphResources
from stepcraft.nodes.baselines import answer as answering
from stepcraft.retrieval.searched import NoRetrieval

__all__ = ["DirectContext", "Input", "Output", "State", "build_direct", "graph"]


def build_direct(
    *,
    model: BaseChatModel | str | None = None,
    node_models: Models = None,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    cache: BaseCache[Any] | None = None,
) -> Graph:
    """The graph, compiled: one call. The arguments are those of `build_rat`.

    Raises:
        BadInput: what is given as a model is neither a chat model nor a name.
    """
    build = GraphResources("direct", DirectContext, given_models(model, node_models), NoRetrieval())
    node = answering.answer_question
    return linear_graph(begun(build, [node.node]), build, node, Persistence(checkpointer, store, cache))


graph = build_direct()
"""Direct with everything from the context, the environment and the defaults, for servers and Studio."""
