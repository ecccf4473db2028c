"""Check what a run was given before any work is done, and begin a thread's next run afresh."""

import asyncio
import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.types import Overwrite

from stepcraft.contexts.base import Context
from stepcraft.errors import BadInput
from stepcraft.llm.budget import no_usage
from stepcraft.llm.resources import GraphResources
from stepcraft.models.keyless.model import ExtractiveModel
from stepcraft.models.resolve import model_identity, resolve_model
from stepcraft.text.clean import clean, normalised

MAX_CHARACTERS = 50_000
"""The longest question, and the longest list of resources."""

KEYLESS = (
    "no language model wrote this: the keyless extractive model recombines sentences of the evidence; "
    'name a model with model="openai:gpt-5-mini", --model or STEPCRAFT_MODEL'
)


class BeginNode(Runnable[Any, dict[str, Any]]):
    """Checks the input, the models and what is searched; empties what an earlier run on the thread left."""

    def __init__(
        self,
        asks: Sequence[str],
        fresh: Callable[[Any], dict[str, Any]],
        build: GraphResources,
        searches: Callable[[Any], bool] = lambda _input: True,
    ) -> None:
        self.name = "begin"
        self.asks = asks
        self.fresh = fresh
        self.searches = searches
        self.build = build

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401, ARG002 - the signature of Runnable
        """The cleaned input and an otherwise empty state.

        Raises:
            BadInput: the question, the resources, a model or the memory cannot be used.
        """
        context = self.build.context.current()
        question = checked("question", input.get("question"))
        if not question:
            raise BadInput("the question is empty; say what is wanted")
        fresh = self.fresh(input)
        searched = self.build.searched.warnings(context) if self.searches(input) else []
        warnings = [*self._models(context), *searched, *fresh.pop("warnings", [])]
        return {
            **fresh,
            "question": question,
            "warnings": Overwrite(warnings),
            "usage": Overwrite(no_usage()),
            "settings": self._settings(context),
            "started": time.monotonic(),
        }

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """As `invoke`; models and memories are opened off the event loop."""
        return await asyncio.to_thread(self.invoke, input, config)

    def _settings(self, context: Context) -> str:
        choices = [self.build.models.choice(node, context) for node in self.asks]
        models = [model_identity(choice) for choice in choices]
        return hashlib.sha256(json.dumps([models, asdict(context)], sort_keys=True).encode()).hexdigest()

    def _models(self, context: Context) -> list[str]:
        named = {**self.build.models.node_models, **context.node_models}
        if strangers := sorted(set(named) - set(self.asks)):
            raise BadInput(
                f"node_models names {strangers[0]!r}; the nodes with a model are {', '.join(self.asks)}"
            )
        models = [resolve_model(self.build.models.choice(node, context)) for node in self.asks]
        return [KEYLESS] if any(isinstance(model, ExtractiveModel) for model in models) else []


def checked(name: str, value: object) -> str:
    """The text, cleaned; a list of texts is joined by commas.

    Raises:
        BadInput: it is not a text, or too long.
    """
    if (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(isinstance(item, str) for item in value)
    ):
        value = ", ".join(value)
    if not isinstance(value, str):
        raise BadInput(f"{name} must be a text, not {type(value).__name__}: {value!r:.80}")
    if len(value) > MAX_CHARACTERS:
        raise BadInput(
            f"{name} has {len(value):,} characters; at most {MAX_CHARACTERS:,} are taken, so shorten it"
        )
    return clean(value).strip() if normalised(value) else ""
