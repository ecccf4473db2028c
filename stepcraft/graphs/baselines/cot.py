"""Chain of thought: the model thinks the question through in writing and answers it, in one call, zero-shot."""

from collections.abc import Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.cache.base import BaseCache
from langgraph.store.base import BaseStore

from stepcraft.contexts.baselines import CotContext
from stepcraft.graphs.baselines import _state
from stepcraft.graphs.baselines._assemble import begun, linear_graph
from stepcraft.graphs.baselines._state import Input
from stepcraft.graphs.compile import Checkpointer, Graph, Models, Persistence, given_models
from stepcraft.llm.resources import GraphResources
from stepcraft.nodes.baselines import think as thinking
from stepcraft.retrieval.searched import NoRetrieval

__all__ = ["CotContext", "Input", "Output", "State", "build_cot", "graph"]


class Output(_state.Output):
    """The answer and how it came about."""

    draft: str
    """What was thought before the answer."""


class State(Output, _state.State):
    """All that the nodes hand to each other."""


def _fresh(given: Mapping[str, Any]) -> dict[str, Any]:
    return {**_state.fresh_alone(given), "draft": ""}


def build_cot(
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
    build = GraphResources("cot", CotContext, given_models(model, node_models), NoRetrieval())
    builder = begun(build, [thinking.think.node], state=State, output=Output, starts=_fresh)
    return linear_graph(builder, build, thinking.think, Persistence(checkpointer, store, cache))


graph = build_cot()
"""Chain of thought with everything from the context, the environment and the defaults, for servers and Studio."""
