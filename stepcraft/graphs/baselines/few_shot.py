"""Few-shot: procedures picked at random from the memory show the model what a good one looks like."""

from typing import Any

from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langgraph.cache.base import BaseCache
from langgraph.store.base import BaseStore

from stepcraft.contexts.baselines import FewShotContext
from stepcraft.graphs.baselines._assemble import begun, linear_graph
from stepcraft.graphs.baselines._state import Input, Output, State
from stepcraft.graphs.compile import Checkpointer, Graph, Models, Persistence, given_models
from stepcraft.llm.resources import GraphResources
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.nodes.baselines import answer as answering
from stepcraft.nodes.baselines.sample import SampleNode
from stepcraft.retrieval.build import MemoryTarget

__all__ = ["FewShotContext", "Input", "Output", "State", "build_few_shot", "graph"]


def build_few_shot(
    *,
    model: BaseChatModel | str | None = None,
    node_models: Models = None,
    memory: ProcedureMemory | str | None = None,
    embeddings: Embeddings | str | None = None,
    checkpointer: Checkpointer = None,
    store: BaseStore | None = None,
    cache: BaseCache[Any] | None = None,
) -> Graph:
    """The graph, compiled: one call. The arguments are those of `build_aag`.

    Raises:
        BadInput: what is given as a model is neither a chat model nor a name.
    """
    searched = MemoryTarget(memory, embeddings)
    build = GraphResources("few_shot", FewShotContext, given_models(model, node_models), searched)
    node, sample = answering.answer_question, SampleNode(searched.opened, FewShotContext)
    return linear_graph(
        begun(build, [node.node]), build, node, Persistence(checkpointer, store, cache), sample
    )


graph = build_few_shot()
"""Few-shot with everything from the context, the environment and the defaults, for servers and Studio."""
