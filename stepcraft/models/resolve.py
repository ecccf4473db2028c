"""From what names a model to the model."""

import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel

from stepcraft.contexts.base import Context
from stepcraft.errors import BadInput, ModelUnknown, without_secrets
from stepcraft.models.keyless.model import ExtractiveModel

EXTRACTIVE = "extractive"
"""The name of the keyless model, the default."""

_built: dict[str, BaseChatModel] = {}
_building = threading.Lock()


@dataclass(frozen=True)
class GivenModels:
    """The models that a graph was built with. What the context names goes before them."""

    model: BaseChatModel | str | None = None
    node_models: Mapping[str, BaseChatModel | str] = field(default_factory=dict)

    def choice(self, node: str, context: Context) -> BaseChatModel | str:
        """The model of a node, as an object or a name: context, then given, then environment, then default."""
        return (
            context.node_models.get(node)
            or context.model
            or self.node_models.get(node)
            or self.model
            or os.environ.get("STEPCRAFT_MODEL")
            or EXTRACTIVE
        )


def checked_model(model: object) -> BaseChatModel | str:
    """A model as a graph's builder takes it.

    Raises:
        BadInput: it is neither a chat model nor a name.
    """
    if isinstance(model, BaseChatModel | str):
        return model
    raise BadInput(f"a model is a chat model or its name, not {type(model).__name__}: {model!r:.80}")


def resolve_model(choice: BaseChatModel | str) -> BaseChatModel:
    """A model from its name; each name is built once in a process. An object is its own model.

    A model built from a name makes no retries of its own: the nodes retry.

    Raises:
        ModelUnknown: no model goes by this name, its package is not installed, or its key is missing.
    """
    if isinstance(choice, BaseChatModel):
        return choice
    with _building:
        if choice not in _built:
            _built[choice] = ExtractiveModel() if choice == EXTRACTIVE else _build(choice)
        return _built[choice]


def is_built(choice: BaseChatModel | str) -> bool:
    """Whether `resolve_model` answers without building anything, so that an event loop may call it."""
    return isinstance(choice, BaseChatModel) or choice in _built


def model_name(model: BaseChatModel) -> str:
    """What a model is called in messages and traces."""
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    return name if isinstance(name, str) else type(model).__name__


def _build(name: str) -> BaseChatModel:
    from langchain.chat_models import init_chat_model  # noqa: PLC0415 - slow, and needless for the keyless model

    options: dict[str, Any] = {"max_retries": 0}
    if name.startswith("openai:"):
        options["stream_usage"] = True
    try:
        model: BaseChatModel = init_chat_model(name, **options)
    except ImportError as error:
        raise ModelUnknown(f"the model {name!r} needs a package that is not installed: {error}") from error
    except Exception as error:
        reason = without_secrets(str(error)).splitlines()[0]
        raise ModelUnknown(
            f"the model {name!r} cannot be used: {reason} "
            'Name it as "provider:model", for example "openai:gpt-5-mini", and set the key of its provider.'
        ) from error
    return model
