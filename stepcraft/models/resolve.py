"""Chat models by name, each built once in a process, and once more for every event loop."""

import asyncio
from collections.abc import AsyncGenerator
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable

from stepcraft.concurrency import OncePerKey, in_thread
from stepcraft.errors import ModelUnknown
from stepcraft.models.keyless.model import ExtractiveModel
from stepcraft.secrets import without_secrets

ChatModel: TypeAlias = Runnable[LanguageModelInput, AIMessage]
"""A chat model, also one with retries, with fallbacks, or with configurable fields."""

EXTRACTIVE = "extractive"
"""The name of the keyless model, the default."""

_models: OncePerKey[str, BaseChatModel] = OncePerKey()
_Futures: TypeAlias = dict[str, Future[BaseChatModel]]
_loop_models: dict[asyncio.AbstractEventLoop, tuple[_Futures, AsyncGenerator[None]]] = {}


def resolve_model(choice: ChatModel | str) -> ChatModel:
    """Return the chat model of a name, for blocking calls; a model object is returned as it is.

    Raises:
        ModelUnknown: The name is not known, its package is not installed, or its key is missing.
    """
    if not isinstance(choice, str):
        return choice
    return _models.get(choice, partial(_build, choice))


async def aresolve_model(choice: ChatModel | str) -> ChatModel:
    """As `resolve_model`, for calls on the running event loop. A model is built in a thread.

    A connection works only on the event loop that opened it, so every loop has its own model of a
    name; its connections are closed when the loop shuts down.
    """
    if not isinstance(choice, str):
        return choice
    loop = asyncio.get_running_loop()
    if loop not in _loop_models:
        _loop_models[loop] = {}, _close_with(loop)
        await anext(_loop_models[loop][1])
    futures, _ = _loop_models[loop]
    future = futures.get(choice)
    if future is None or (future.done() and future.exception()):
        future = futures[choice] = in_thread(partial(_build, choice))
    return await asyncio.wrap_future(future)


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


def _build(name: str) -> BaseChatModel:
    if name == EXTRACTIVE:
        return ExtractiveModel()
    from langchain.chat_models import init_chat_model  # noqa: PLC0415 - slow to import

    options: dict[str, Any] = {}
    if name.startswith("openai:"):
        from openai import DefaultAsyncHttpxClient  # noqa: PLC0415 - slow to import

        # LangChain's own client is shared by all event loops, and closed with the first of them.
        options = {"stream_usage": True, "http_async_client": DefaultAsyncHttpxClient()}
    try:
        model: BaseChatModel = init_chat_model(name, **options)
    except Exception as error:
        reason = without_secrets(str(error)).partition("\n")[0].rstrip(".")
        raise ModelUnknown(
            f"the model {name!r} cannot be used: {reason}; name it as provider:model, "
            "such as openai:gpt-5-mini, and install the package and set the key of its provider"
        ) from error
    return model


def model_name(model: ChatModel | str) -> str:
    """Return the name of a model in messages and traces: its own, else that of its class."""
    if isinstance(model, str):
        return model
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    return name if isinstance(name, str) else type(model).__name__
