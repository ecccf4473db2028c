"""How the graphs of this package begin a run, and how their model nodes take turns."""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.types import Overwrite

from stepcraft.errors import BadInput
from stepcraft.llm.node import BoundNode, ModelNode, State, Update
from stepcraft.llm.resources import Resources
from stepcraft.llm.usage import no_usage
from stepcraft.models.keyless.model import ExtractiveModel
from stepcraft.models.resolve import resolve_model
from stepcraft.nodes.begin import KEYLESS


def run_keys(resources: Resources[Any], model_nodes: Sequence[str]) -> dict[str, Any]:
    """Return the keys of `RunState` that a run starts with, after a look at its models.

    Raises:
        BadInput: The settings name a node or a model that does not exist.
    """
    settings = resources.settings()
    node_models = {**(resources.node_models or {}), **settings.node_models}
    if unknown := sorted(set(node_models) - set(model_nodes)):
        raise BadInput(
            f"node_models names {unknown[0]!r}; the nodes with a model are {', '.join(model_nodes)}"
        )
    models = [resolve_model(resources.choice(node, settings)) for node in model_nodes]
    keyless = any(isinstance(model, ExtractiveModel) for model in models)
    return {
        "run": uuid4().hex,
        "settings": settings.model_dump(mode="json", exclude_unset=True),
        "warnings": Overwrite([KEYLESS] if keyless else []),
        "usage": Overwrite(no_usage()),
    }


class NodeInTurn(BoundNode):
    """A model node that waits for its turn where a semaphore limits the calls of many runs.

    Args:
        node: The node.
        resources: What the graph is built with.
        turns: The semaphore; None for no limit. Blocking calls do not wait.
    """

    def __init__(
        self, node: ModelNode, resources: Resources[Any], turns: asyncio.Semaphore | None
    ) -> None:
        super().__init__(node, resources)
        self.turns = turns

    async def ainvoke(self, input: State, config: RunnableConfig | None = None, **_: Any) -> Update:  # noqa: A002, ANN401 - as Runnable
        """Run the node when it is its turn."""
        async with self.turns or nullcontext():
            return await super().ainvoke(input, config)
