"""Direct: the question is put to the model, and that is all."""

from dataclasses import dataclass
from typing import Annotated, Any

from langchain_core.language_models import BaseChatModel
from langgraph.cache.base import BaseCache
from langgraph.store.base import BaseStore

from stepcraft.contexts.base import Context, prompt_of
from stepcraft.graphs.baselines._assemble import begun, in_line
from stepcraft.graphs.baselines._state import Input, Output, State
from stepcraft.graphs.compile import Checkpointer, Graph, Kept, Models, given_models
from stepcraft.nodes.baselines import answer as answering
from stepcraft.retrieval.build import Build
from stepcraft.retrieval.searched import Nothing

__all__ = ["DirectContext", "Input", "Output", "State", "build_direct", "graph"]


@dataclass(frozen=True)
class DirectContext(Context):
    """What a caller may set for one run.

    Raises:
        BadInput: a value is out of its bounds or of another type.
    """

    answer_instructions: Annotated[str, prompt_of("answer")] = answering.DIRECT


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
