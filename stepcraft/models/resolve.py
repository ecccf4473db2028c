"""Resolve chat models by name; each is built once for synchronous calls and once per event loop."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langchain_core.runnables.base import (
    RunnableBindingBase,
    RunnableSequence,
    RunnableSerializable,
)
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.runnables.fallbacks import RunnableWithFallbacks
from pydantic import ValidationError

from stepcraft.concurrency import OncePerKey, to_thread
from stepcraft.errors import ModelUnknown
from stepcraft.models.keyless.model import ExtractiveModel
from stepcraft.secrets import without_secrets

ChatModel: TypeAlias = Runnable[LanguageModelInput, AIMessage]
"""A chat model, including one with retries, fallbacks, or configurable fields."""

EXTRACTIVE = "extractive"
"""The name of the keyless model, the default."""

_models: OncePerKey[str, BaseChatModel] = OncePerKey()
_loop_models: dict[asyncio.AbstractEventLoop, "_LoopModels"] = {}


def resolve_model(choice: ChatModel | str) -> ChatModel:
    """Return a chat model by name, for synchronous calls; model objects are returned as is.

    Raises:
        ModelUnknown: The name is unknown, its package is not installed, or its key is missing.
    """
    if not isinstance(choice, str):
        return choice
    return _models.get(choice, partial(_build, choice))


async def aresolve_model(choice: ChatModel | str) -> ChatModel:
    """Resolve a model for calls on the running event loop, building it in a thread.

    A connection works only on the event loop that opened it, so each loop has its own instance of a
    named model. The models of OpenAI and Anthropic, whose connections LangChain shares among all
    loops, are copied with connections of their own, which are closed when the loop shuts down.
    """
    if isinstance(choice, str):
        loop = await _models_of_this_loop()
        future = loop.models.start(choice, lambda: loop.connected(_build(choice)))
        return await asyncio.wrap_future(future)
    if not isinstance(choice, BaseChatModel):
        model: ChatModel = await _with_models_of_this_loop(choice)
        return model
    if not _shares_connections(choice):
        return choice
    loop = await _models_of_this_loop()
    return await to_thread(loop.connected, choice)


async def _with_models_of_this_loop(runnable: Any) -> Any:  # noqa: ANN401 - any runnable
    """Return a runnable such as a fallback or a retry with its models resolved for this loop."""
    if not isinstance(runnable, RunnableSerializable):
        return runnable
    changed: dict[str, Any] = {}
    for name in type(runnable).model_fields:
        part = getattr(runnable, name)
        parts = part if isinstance(part, list) else [part]
        if parts and all(isinstance(each, Runnable) for each in parts):
            resolved = [await aresolve_model(each) for each in parts]
            changed[name] = resolved if isinstance(part, list) else resolved[0]
    return runnable.model_copy(update=changed)


def _is_anthropic(model: BaseChatModel) -> bool:
    make_client = getattr(getattr(type(model), "_async_client", None), "func", None)
    return str(getattr(make_client, "__module__", "")).startswith("langchain_anthropic.")


def _shares_connections(model: BaseChatModel) -> bool:
    """Return whether a model is from Anthropic or OpenAI, unless its owner set an async client."""
    if not getattr(model, "root_async_client", None):
        return _is_anthropic(model)
    openai_model: Any = model
    # LangChain sets a client if there is a proxy.
    return bool(openai_model.openai_proxy or not openai_model.http_async_client)


class _LoopModels:
    """The models and connections of an event loop."""

    def __init__(self) -> None:
        self.models: OncePerKey[str, BaseChatModel] = OncePerKey()
        self.clients: OncePerKey[tuple[str, str], Any] = OncePerKey()
        """The HTTP clients by package and proxy; "" stands for the proxy from the environment."""
        self.opened: list[Any] = []
        self.closing: AsyncGenerator[None] | None = None

    def connected(self, model: BaseChatModel) -> BaseChatModel:
        """Return a model that shares no connection with other loops."""
        if not _shares_connections(model):
            return model
        shared: Any = model
        package = "anthropic" if _is_anthropic(model) else "openai"
        key = package, getattr(model, f"{package}_proxy") or ""
        http_client = self.clients.get(key, partial(self._connect, *key))
        if package == "anthropic":
            client = shared._async_client.with_options(http_client=http_client)
            return model.model_copy(update={"_async_client": client})
        client = shared.root_async_client.with_options(http_client=http_client)
        clients = {"root_async_client": client, "async_client": client.chat.completions}
        return model.model_copy(update=clients)

    def _connect(self, package: str, proxy: str) -> Any:  # noqa: ANN401 - a class of the package
        client = import_module(package).DefaultAsyncHttpxClient(proxy=proxy or None)
        self.opened.append(client)
        return client

    async def close_with(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[None]:
        """Close the connections when the loop shuts down its generators, as `asyncio.run` does."""
        try:
            yield
        finally:
            _loop_models.pop(loop, None)
            for client in self.opened:
                await client.aclose()


async def _models_of_this_loop() -> _LoopModels:
    running = asyncio.get_running_loop()
    if running not in _loop_models:
        for each in list(_loop_models):
            if each.is_closed():  # without shutting down its generators
                _loop_models.pop(each, None)
        loop = _loop_models[running] = _LoopModels()
        loop.closing = loop.close_with(running)
        await anext(loop.closing)
    return _loop_models[running]


def _build(name: str) -> BaseChatModel:
    if name == EXTRACTIVE:
        return ExtractiveModel()
    from langchain.chat_models import init_chat_model  # noqa: PLC0415 - slow to import

    options: dict[str, Any] = {"stream_usage": True} if name.startswith("openai:") else {}
    try:
        model: BaseChatModel = init_chat_model(name, **options)
    except Exception as error:
        text = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        reason = without_secrets(text).partition("\n")[0].rstrip(".")
        raise ModelUnknown(
            f"the model {name!r} cannot be used: {reason}; name it as provider:model, "
            "such as openai:gpt-5-mini, and install the package and set the key of its provider"
        ) from error
    return model


def models_in(model: object) -> Iterator[Any]:
    """Yield each model inside options, retries, fallbacks, alternatives or a sequence."""
    match model:
        case RunnableBindingBase():
            yield from models_in(model.bound)
        case RunnableWithFallbacks():
            for each in model.runnables:
                yield from models_in(each)
        case DynamicRunnable():
            yield from models_in(model.default)
        case RunnableSequence():
            for step in model.steps:
                yield from (each for each in models_in(step) if isinstance(each, BaseChatModel))
        case _:
            yield model


def unbound(model: object) -> Any:  # noqa: ANN401 - any runnable
    """Return the first model inside options, retries, fallbacks, alternatives or a sequence."""
    return next(models_in(model), model)


def with_options(model: ChatModel, options_of: Callable[[ChatModel], dict[str, Any]]) -> ChatModel:
    """Return a model with options bound to it, or to each model inside it.

    Args:
        model: The model.
        options_of: Returns the options of a model.
    """
    match model:
        case RunnableWithFallbacks():
            first, *others = [with_options(each, options_of) for each in model.runnables]
            return model.model_copy(update={"runnable": first, "fallbacks": others})
        case RunnableSequence():
            steps = [
                with_options(each, options_of) if isinstance(unbound(each), BaseChatModel) else each
                for each in model.steps
            ]
            return RunnableSequence(*steps, name=model.name)
        case RunnableBindingBase() if any(models_in(model)):
            kept = {**model.kwargs}
            for name in options_of(model):
                kept.pop(name, None)
            update = {"bound": with_options(model.bound, options_of), "kwargs": kept}
            return model.model_copy(update=update)
        case _:
            options = options_of(model)
            return model.bind(**options) if options else model


def model_name(model: ChatModel | str) -> str:
    """Return a model's name for messages and traces, or its class name if it has none."""
    if isinstance(model, str):
        return model
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    return name if isinstance(name, str) else type(model).__name__
