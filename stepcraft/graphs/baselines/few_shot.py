"""Few-shot: the model is shown random procedures of the memory as examples."""

from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langgraph.cache.base import BaseCache
from langgraph.store.base import BaseStore

from stepcraft.contexts.baselines import FewShotContext
from stepcraft.graphs.baselines._baseline import (
    Input,
    Output,
    State,
    builder_with_begin,
    linear_graph,
)
from stepcraft.graphs.compile import Allow, Checkpointer, Graph, Models, Persistence, graph_resources
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.nodes.baselines.answer import answer
from stepcraft.nodes.baselines.sample import SampleNode
from stepcraft.retrieval.target import RetrievalTarget

__all__ = ["FewShotContext", "Input", "Output", "State", "build_few_shot", "graph"]


def build_few_shot(
    *,
    model: BaseChatModel | str | None = None,
    node_models: Models = None,
    memory: ProcedureMemory | str | None = None,
    embeddings: Embeddings | str | None = None,
    allow: Allow = None,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    cache: BaseCache[Any] | None = None,
) -> Graph:
    """Build and compile the few-shot baseline: one model call. The arguments are those of `build_aag`.

    Raises:
        BadInput: A model is neither a chat model nor a name.
    """
    target = RetrievalTarget("memory", memory, embeddings)
    resources = graph_resources(
        "few_shot", FewShotContext, target, model=model, node_models=node_models, allow=allow
    )
    builder, persistence = (
        builder_with_begin(resources, [answer.node]),
        Persistence(checkpointer, store, cache),
    )
    return linear_graph(builder, resources, answer, persistence, SampleNode(resources))


graph = build_few_shot()
"""Few-shot with everything from the context, the environment and the defaults, for servers and Studio."""
