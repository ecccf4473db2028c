"""Chat models by name, each built once in a process, and once more for every event loop."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel

from stepcraft.concurrency import OncePerKey
from stepcraft.errors import ModelUnknown
from stepcraft.models.keyless.model import ExtractiveModel
from stepcraft.secrets import without_secrets

EXTRACTIVE = "extractive"
"""The name of the keyless model, the default."""

_models: OncePerKey[str, BaseChatModel] = OncePerKey()
_loop_models: "OncePerKey[tuple[str, asyncio.AbstractEventLoop], _LoopModel]" = OncePerKey(
    most=1_000
)


def resolve_model(choice: BaseChatModel | str) -> BaseChatModel:
    """Return the chat model of a name, for blocking calls; a model object is returned as it is.

    Raises:
        ModelUnknown: The name is not known, its package is not installed, or its key is missing.
    """
    return (
        choice if isinstance(choice, BaseChatModel) else _models.get(choice, lambda: _build(choice))
    )


async def aresolve_model(choice: BaseChatModel | str) -> BaseChatModel:
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
        held = await asyncio.wrap_future(
            _loop_models.start(key, lambda: _LoopModel(_build(choice)))
        )
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

    options: dict[str, Any] = {}
    if name.startswith("openai:"):
        from openai import DefaultAsyncHttpxClient  # noqa: PLC0415 - as above

        # LangChain's own client is shared by all event loops, and closed with the first of them.
        options = {"stream_usage": True, "http_async_client": DefaultAsyncHttpxClient()}
    try:
        model: BaseChatModel = init_chat_model(name, **options)
    except ImportError as error:
        raise ModelUnknown(
            f"the model {name!r} needs a package that is not installed: {error}"
        ) from error
    except Exception as error:
        reason = without_secrets(str(error)).splitlines()[0]
        raise ModelUnknown(
            f"the model {name!r} cannot be used: {reason} "
            'Name it as "provider:model", for example "openai:gpt-5-mini", and set the key of its provider.'
        ) from error
    return model


def model_name(model: BaseChatModel) -> str:
    """Return the name of a model in messages and traces: its `model_name` or `model`, else its class."""
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    return name if isinstance(name, str) else type(model).__name__
