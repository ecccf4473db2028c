"""Direct: the question is put to the model, and that is all."""

from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.cache.base import BaseCache
from langgraph.store.base import BaseStore

from stepcraft.contexts.baselines import DirectContext
from stepcraft.graphs.baselines._assemble import begun, in_line
from stepcraft.graphs.baselines._state import Input, Output, State
from stepcraft.graphs.compile import Checkpointer, Graph, Kept, Models, given_models
from stepcraft.nodes.baselines import answer as answering
from stepcraft.retrieval.build import Build
from stepcraft.retrieval.searched import Nothing

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
    build = Build("direct", DirectContext, given_models(model, node_models), Nothing())
    node = answering.answer_question
    return in_line(begun(build, [node.node]), build, node, Kept(checkpointer, store, cache))


graph = build_direct()
"""Direct with everything from the context, the environment and the defaults, for servers and Studio."""
