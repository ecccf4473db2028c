"""Direct: the model is asked the question, without evidence."""

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.cache.base import BaseCache
from langgraph.store.base import BaseStore

from stepcraft.contexts.baselines import DirectContext
from stepcraft.graphs.baselines._baseline import (
    Input,
    Output,
    State,
    builder_with_begin,
    linear_graph,
)
from stepcraft.graphs.compile import Allow, Checkpointer, Graph, Models, Persistence, graph_resources
from stepcraft.nodes.baselines.answer import answer
from stepcraft.retrieval.target import RetrievalTarget

__all__ = ["DirectContext", "Input", "Output", "State", "build_direct", "graph"]


def build_direct(
    *,
    model: BaseChatModel | str | None = None,
    node_models: Models = None,
    allow: Allow = None,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    cache: BaseCache[Any] | None = None,
    interrupt_before: Sequence[str] = (),
    interrupt_after: Sequence[str] = (),
) -> Graph:
    """Build and compile the direct baseline: one model call. The arguments are those of `build_rat`.

    Raises:
        BadInput: A model is neither a chat model nor a name.
    """
    target = RetrievalTarget("nothing")
    resources = graph_resources(
        "direct", DirectContext, target, model=model, node_models=node_models, allow=allow
    )
    builder = builder_with_begin(resources, [answer.node])
    return linear_graph(
        builder, resources, answer, Persistence(checkpointer, store, cache, interrupt_before, interrupt_after)
    )


graph = build_direct()
"""Direct with everything from the context, the environment and the defaults, for servers and Studio."""
