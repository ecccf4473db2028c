"""Chat models by name: which model a node uses, how it is built, and what identifies it in the keys of a cache."""

import asyncio
import hashlib
import json
import os
import re
import weakref
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel, SecretBytes, SecretStr

from stepcraft import access
from stepcraft.concurrency import OncePerKey
from stepcraft.contexts.base import Context
from stepcraft.errors import BadInput, ModelUnknown
from stepcraft.models.keyless.model import ExtractiveModel
from stepcraft.policy import Policy, Reference
from stepcraft.secrets import excerpt, without_secrets

EXTRACTIVE = "extractive"
"""The name of the keyless model, the default."""


@dataclass(frozen=True)
class GivenModels:
    """The models that a graph was built with; those that a run's context names come first."""

    model: BaseChatModel | str | None = None
    node_models: Mapping[str, BaseChatModel | str] = field(default_factory=dict)
    allow: Policy | None = None
    """What a run's context may name; None for the rules in STEPCRAFT_ALLOW."""

    def choice(self, node: str, context: Context) -> BaseChatModel | str:
        """The model of a node, as an object or a name.

        The first that is set: the context's model for the node, the context's model, the graph's model for the node,
        the graph's model, the environment variable STEPCRAFT_MODEL, the keyless model.

        Raises:
            BadInput: the context names a model that is not allowed.
        """
        own = self.node_models.get(node) or self.model or os.environ.get("STEPCRAFT_MODEL") or EXTRACTIVE
        named = context.node_models.get(node) or context.model
        if named and named != own:
            access.policy(self.allow).check("model", named, [Reference("model", named)])
        return named or own


def checked_model(model: object) -> BaseChatModel | str:
    """The argument, if it can be the model of a graph.

    Raises:
        BadInput: it is neither a chat model nor a name.
    """
    if isinstance(model, BaseChatModel | str):
        return model
    raise BadInput(f"a model is a chat model or its name, not {type(model).__name__}: {excerpt(model)}")


_models: OncePerKey[str, BaseChatModel] = OncePerKey()
_loop_models: "OncePerKey[tuple[str, asyncio.AbstractEventLoop], _LoopModel]" = OncePerKey(most=1_000)


def resolve_model(choice: BaseChatModel | str, seconds: float | None = None) -> BaseChatModel:
    """The chat model of a name, for blocking calls; a model object is returned as it is.

    Each name is built once in a process, without retries of its own, because the nodes repeat calls. Building one
    delays no other.

    Args:
        choice: A model, or its name.
        seconds: How long the model may take to be built, which goes on after that; None for no limit.

    Raises:
        ModelUnknown: the name is not known, its package is not installed, or its key is missing.
        TimeoutError: building it takes longer.
    """
    if isinstance(choice, BaseChatModel):
        return choice
    if (model := _models.peek(choice)) is not None:
        return model
    return _models.start(choice, lambda: _build(choice)).result(seconds)


async def aresolve_model(choice: BaseChatModel | str, seconds: float | None = None) -> BaseChatModel:
    """As `resolve_model`, for calls on the running event loop. A model is built in a thread.

    A model keeps a pool of connections, and a connection works only on the event loop that opened it. So every event
    loop has its own model of a name; its connections are closed when the loop shuts down.
    """
    if isinstance(choice, BaseChatModel):
        return choice
    if choice == EXTRACTIVE:
        return resolve_model(choice)  # it is built in no time, and has no connections
    key = choice, asyncio.get_running_loop()
    held = _loop_models.peek(key)
    if held is None:
        async with asyncio.timeout(seconds):
            held = await asyncio.wrap_future(_loop_models.start(key, lambda: _LoopModel(_build(choice))))
    if held.closer is None:
        held.closer = _close_with_loop(key, held.model)
        await anext(held.closer)
    return held.model


@dataclass
class _LoopModel:
    """A model that is used on one event loop, and what closes it."""

    model: BaseChatModel
    closer: AsyncGenerator[None] | None = None


async def _close_with_loop(
    key: tuple[str, asyncio.AbstractEventLoop], model: BaseChatModel
) -> AsyncGenerator[None]:
    """Release the model when the loop shuts down its asynchronous generators, as `asyncio.run` does at its end."""
    try:
        yield
    finally:
        _loop_models.pop(key)
        if (client := getattr(model, "root_async_client", None)) is not None:
            await client.close()


def _build(name: str) -> BaseChatModel:
    if name == EXTRACTIVE:
        return ExtractiveModel()
    from langchain.chat_models import init_chat_model  # noqa: PLC0415 - slow, and needless for the keyless model

    options: dict[str, Any] = {"max_retries": 0}
    try:
        if name.startswith("openai:"):
            from stepcraft.models.http import openai_clients  # noqa: PLC0415 - loads the client

            options |= {"stream_usage": True, **openai_clients()}
        model: BaseChatModel = init_chat_model(name, **options)
    except ImportError as error:
        raise ModelUnknown(f"the model {name!r} needs a package that is not installed: {error}") from error
    except Exception as error:
        reason = without_secrets(str(error)).splitlines()[0]
        raise ModelUnknown(
            f"the model {name!r} cannot be used: {reason} "
            'Name it as "provider:model", for example "openai:gpt-5-mini", and set the key of its provider.'
        ) from error
    if ":" not in name and type(model).__name__ == "ChatOpenAI":  # the provider is known only now
        return _build(f"openai:{name}")
    return model


def model_name(model: BaseChatModel) -> str:
    """The name of a model in messages and traces: its `model_name` or `model`, else its class."""
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    return name if isinstance(name, str) else type(model).__name__


def model_identity(choice: BaseChatModel | str) -> str:
    """What tells the replies of this model from those of any other, for the keys of a cache; holds no secrets.

    A name is identified by itself and the address that its model was built with. A model object is identified by its
    class and its fields (model, base URL, temperature, …), in any process. A class that LangChain cannot serialise
    and that has no `_identifying_params` may keep what matters out of sight; its objects are identified one by one, so
    that a cache that outlives the process is not used for them again.

    Never blocks: a name that is not built yet gets a value that no other run has.
    """
    model = choice if isinstance(choice, BaseChatModel) else _models.peek(choice)
    if model is None:
        return uuid4().hex
    client = getattr(model, "root_async_client", None) or getattr(model, "root_client", None)
    address = str(getattr(client, "base_url", ""))
    if isinstance(choice, str):
        described: list[Any] = [choice, address]
    else:
        declared = dict(model._identifying_params)  # pyright: ignore[reportPrivateUsage] - LangChain's hook for exactly this
        token = "" if declared or model.is_lc_serializable() else _token(model)
        described = [_plain(model), _plain(declared), address, token]
    text = without_secrets(json.dumps(described, sort_keys=True))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


_SECRET = re.compile("key|token|secret|passw|auth|cookie", re.IGNORECASE)


def _plain(value: object) -> Any:  # noqa: ANN401 - JSON
    """A value of a model's fields as JSON, the same in every process, without values that are named as secrets."""
    if isinstance(value, SecretStr | SecretBytes):
        return None
    if isinstance(value, str | bool | int | float | None):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, BaseModel):
        fields = type(value).model_fields
        value = {
            "": _path(type(value)),
            **{name: getattr(value, name) for name in fields if not fields[name].exclude},
            **(value.model_extra or {}),
        }
    if isinstance(value, Mapping):
        return {
            str(name): None if isinstance(item, str) and _SECRET.search(str(name)) else _plain(item)
            for name, item in value.items()
        }
    return [_path(type(value)), _token(value)]


def _path(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


_tokens: dict[int, str] = {}


def _token(value: object) -> str:
    """A random token of this object, the same as long as it lives."""
    if (token := _tokens.get(id(value))) is not None:
        return token
    try:
        weakref.finalize(value, _tokens.pop, id(value), None).atexit = False
    except TypeError:  # it cannot be referenced weakly, so it could not be told from its successor
        return uuid4().hex
    return _tokens.setdefault(id(value), uuid4().hex)
