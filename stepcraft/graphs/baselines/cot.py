"""Chain of thought: the model writes its thoughts and the answer in one call, zero-shot."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langgraph.cache.base import BaseCache
from langgraph.store.base import BaseStore

from stepcraft.contexts.base import Context
from stepcraft.contexts.baselines import CotContext
from stepcraft.graphs.baselines import _baseline
from stepcraft.graphs.baselines._baseline import (
    Input,
    builder_with_begin,
    initial_state_without_evidence,
    linear_graph,
)
from stepcraft.graphs.compile import Allow, Checkpointer, Graph, Models, Persistence, graph_resources
from stepcraft.nodes.baselines.answer import think
from stepcraft.retrieval.target import RetrievalTarget
from stepcraft.schema import described

__all__ = ["CotContext", "Input", "Output", "State", "build_cot", "graph"]


@described
class Output(_baseline.Output):
    """The answer and how it was written."""

    draft: str
    """The thoughts before the answer."""


class State(Output, _baseline.State):
    """The state of the chain-of-thought baseline."""


def _initial_state(given: Mapping[str, Any], context: Context) -> dict[str, Any]:
    return {**initial_state_without_evidence(given, context), "draft": ""}


def build_cot(
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
    """Build and compile the chain-of-thought baseline: one model call. The arguments are those of `build_rat`.

    Raises:
        BadInput: A model is neither a chat model nor a name.
    """
    target = RetrievalTarget("nothing")
    resources = graph_resources("cot", CotContext, target, model=model, node_models=node_models, allow=allow)
    builder = builder_with_begin(resources, [think.node], state=State, output=Output, initial=_initial_state)
    return linear_graph(
        builder, resources, think, Persistence(checkpointer, store, cache, interrupt_before, interrupt_after)
    )


graph = build_cot()
"""Chain of thought with everything from the context, the environment and the defaults, for servers and Studio."""
