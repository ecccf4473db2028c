"""Chat models by name, each built once in a process, and once more for every event loop."""

import asyncio
import os
import weakref
from collections.abc import AsyncGenerator
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel

from stepcraft.concurrency import OncePerKey, in_thread
from stepcraft.errors import ModelUnknown
from stepcraft.models.keyless.model import ExtractiveModel
from stepcraft.secrets import without_secrets

EXTRACTIVE = "extractive"
"""The name of the keyless model, the default."""

_models: OncePerKey[str, BaseChatModel] = OncePerKey()
_Futures: TypeAlias = dict[str | int, Future[BaseChatModel]]
"""The models of an event loop by their names, copies of model objects by the ids of those."""
_loop_models: dict[asyncio.AbstractEventLoop, tuple[_Futures, AsyncGenerator[None]]] = {}


def resolve_model(choice: BaseChatModel | str) -> BaseChatModel:
    """Return the chat model of a name, for blocking calls; a model object is returned as it is.

    Raises:
        ModelUnknown: The name is not known, its package is not installed, or its key is missing.
    """
    if isinstance(choice, BaseChatModel):
        return choice
    return _models.get(choice, partial(_build, choice))


async def aresolve_model(choice: BaseChatModel | str) -> BaseChatModel:
    """As `resolve_model`, for calls on the running event loop. A model is built in a thread.

    A connection works only on the event loop that opened it, so every loop has its own model of a
    name, and its own copy of an OpenAI model whose connections all loops would share. They are
    closed when the loop shuts down.
    """
    if isinstance(choice, BaseChatModel) and not _shares_connections(choice):
        return choice
    loop = asyncio.get_running_loop()
    if loop not in _loop_models:
        _loop_models[loop] = {}, _close_with(loop)
        await anext(_loop_models[loop][1])
    futures, _ = _loop_models[loop]
    key = choice if isinstance(choice, str) else id(choice)
    future = futures.get(key)
    if future is None or (future.done() and future.exception()):
        future = futures[key] = in_thread(partial(_build, choice))
        if not isinstance(choice, str):
            weakref.finalize(choice, futures.pop, key, None)
    return await asyncio.wrap_future(future)


def _shares_connections(model: BaseChatModel) -> bool:
    """Tell whether a model is one of OpenAI's without an async client that its owner made."""
    fields: Any = model
    return bool(getattr(model, "root_async_client", None)) and not (
        fields.http_async_client and not fields.openai_proxy
    )


async def _close_with(loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None]:
    """Close a loop's models when it shuts down its generators, as `asyncio.run` does."""
    try:
        yield
    finally:
        futures, _ = _loop_models.pop(loop)
        for future in futures.values():
            is_built = future.done() and not future.exception()
            client = getattr(future.result(), "root_async_client", None) if is_built else None
            if client is not None:
                await client.close()


def _build(choice: BaseChatModel | str) -> BaseChatModel:
    """Return the model of a name, or a copy of a model object with connections of its own."""
    if isinstance(choice, BaseChatModel):
        return _reconnected(choice)
    if choice == EXTRACTIVE:
        return ExtractiveModel()
    from langchain.chat_models import init_chat_model  # noqa: PLC0415 - slow to import

    try:
        options = _openai_options() if choice.startswith("openai:") else {}
        model: BaseChatModel = init_chat_model(choice, **options)
    except Exception as error:
        reason = without_secrets(str(error)).partition("\n")[0].rstrip(".")
        raise ModelUnknown(
            f"the model {choice!r} cannot be used: {reason}; name it as provider:model, "
            "such as openai:gpt-5-mini, and install the package and set the key of its provider"
        ) from error
    return model


def _openai_options() -> dict[str, Any]:
    """Return the options of a model with connections of its own.

    LangChain's own are shared by all event loops, and closed with the first of them. A model that
    has one client of its own takes no proxy from the environment for the other.
    """
    from openai import DefaultAsyncHttpxClient, DefaultHttpxClient  # noqa: PLC0415 - slow to import

    proxy = os.environ.get("OPENAI_PROXY") or None
    return {
        "stream_usage": True,
        "http_client": DefaultHttpxClient(proxy=proxy),
        "http_async_client": DefaultAsyncHttpxClient(proxy=proxy),
        "openai_proxy": "",  # LangChain takes a proxy or clients
    }


def _reconnected(model: BaseChatModel) -> BaseChatModel:
    from openai import DefaultAsyncHttpxClient  # noqa: PLC0415 - slow to import

    fields: Any = model
    http_client = DefaultAsyncHttpxClient(proxy=fields.openai_proxy or None)
    client = fields.root_async_client.with_options(http_client=http_client)
    clients = {"root_async_client": client, "async_client": client.chat.completions}
    return model.model_copy(update=clients)


def model_name(model: BaseChatModel | str) -> str:
    """Return the name of a model in messages and traces: its own, else that of its class."""
    if isinstance(model, str):
        return model
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    return name if isinstance(name, str) else type(model).__name__
