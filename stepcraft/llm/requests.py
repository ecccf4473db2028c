"""What a model node asks of the outside: build a model, wait, make a call. Each is done with or without blocking."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphBubbleUp

from stepcraft.concurrency import within
from stepcraft.models.resolve import is_built, resolve_model


@dataclass(frozen=True)
class Resolve:
    """Give the model that a name stands for."""

    choice: BaseChatModel | str


@dataclass(frozen=True)
class Pause:
    """Wait."""

    seconds: float


class ModelCaller(Protocol):
    """What takes a prompt to a model: the model itself, or what stands before it."""

    def invoke(self, input: list[BaseMessage], config: RunnableConfig, /, **options: Any) -> object:  # noqa: A002, ANN401 - the signature of Runnable
        """The reply."""
        ...

    async def ainvoke(self, input: list[BaseMessage], config: RunnableConfig, /, **options: Any) -> object:  # noqa: A002, ANN401 - the signature of Runnable
        """As `invoke`, without blocking the event loop."""
        ...


@dataclass(frozen=True)
class Call:
    """Ask a model; the outcome is its message, or the exception that it raised."""

    model: BaseChatModel | ModelCaller
    messages: Sequence[BaseMessage]
    options: Mapping[str, Any]
    timeout: float | None


Request = Resolve | Pause | Call


def carry_out(request: Request, config: RunnableConfig) -> Any:  # noqa: ANN401 - a request's own outcome
    """Do what is requested, blocking."""
    match request:
        case Resolve(choice):
            return resolve_model(choice)
        case Pause(seconds):
            return time.sleep(seconds)
        case Call(model, messages, options, timeout):
            try:
                return within(timeout, lambda: model.invoke(list(messages), config, **options))
            except GraphBubbleUp:
                raise
            except Exception as error:  # a provider may raise anything
                return error


async def acarry_out(request: Request, config: RunnableConfig) -> Any:  # noqa: ANN401 - a request's own outcome
    """Do what is requested without blocking the event loop."""
    match request:
        case Resolve(choice) if is_built(choice):
            return resolve_model(choice)
        case Resolve(choice):
            return await asyncio.to_thread(resolve_model, choice)
        case Pause(seconds):
            return await asyncio.sleep(seconds)
        case Call(model, messages, options, timeout):
            try:
                async with asyncio.timeout(timeout):
                    return await model.ainvoke(list(messages), config, **options)
            except GraphBubbleUp:
                raise
            except Exception as error:  # a provider may raise anything
                return error
