"""Nodes whose work is written once for both blocking and async runs.

Such a node awaits only the methods of `Calls`. In a blocking run these never suspend, so the
coroutine runs to completion at once.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from itertools import starmap
from typing import Any, NamedTuple, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import (
    ensure_config,
    set_config_context,
    var_child_runnable_config,
)
from typing_extensions import override

from stepcraft.concurrency import in_thread, to_thread, uncancelled, within
from stepcraft.concurrency import outcomes as outcomes_in_threads
from stepcraft.models.resolve import ChatModel, aresolve_model, resolve_model, unbound

T = TypeVar("T")

_MOST_CALLS = 16
"""The maximum number of concurrent calls, unless the config sets `max_concurrency`."""


class Call(NamedTuple):
    """A call to a runnable, with options for its `invoke`."""

    runnable: Runnable[Any, Any]
    input: Any
    options: dict[str, Any]


class Calls(ABC):
    """The interface through which a node makes calls that take time.

    Args:
        config: The node's config, for traces and callbacks.
    """

    def __init__(self, config: RunnableConfig | None) -> None:
        self.config = config

    @abstractmethod
    async def model(self, choice: ChatModel | str) -> ChatModel:
        """Return the model with the given name."""

    @abstractmethod
    async def function(self, function: Callable[[], T], seconds: float | None) -> T:
        """Call a function that blocks.

        Raises:
            TimeoutError: The function took longer than `seconds`.
        """

    @abstractmethod
    async def result(self, call: Call, seconds: float | None) -> Any:
        """Make a call and return its result.

        Raises:
            TimeoutError: The call took longer than `seconds`.
        """

    @abstractmethod
    async def outcomes(self, calls: Sequence[Call], seconds: float | None) -> list[Any]:
        """Make calls concurrently; return a result, an exception or a TimeoutError for each."""

    @property
    def most(self) -> int:
        """The maximum number of concurrent calls."""
        return (self.config or {}).get("max_concurrency") or _MOST_CALLS

    def blocking(self, call: Call) -> Callable[[], Any]:
        """Return a call as a function without arguments."""
        return partial(call.runnable.invoke, call.input, self.config, **call.options)


class BlockingCalls(Calls):
    """Calls in a blocking run; those with a time limit are made in daemon threads."""

    @override
    async def model(self, choice: ChatModel | str) -> ChatModel:
        return resolve_model(choice)

    @override
    async def function(self, function: Callable[[], T], seconds: float | None) -> T:
        return within(seconds, function)

    @override
    async def result(self, call: Call, seconds: float | None) -> Any:
        return within(seconds, self.blocking(call))

    @override
    async def outcomes(self, calls: Sequence[Call], seconds: float | None) -> list[Any]:
        return outcomes_in_threads([*map(self.blocking, calls)], seconds, self.most)


class AsyncCalls(Calls):
    """Calls on the running event loop.

    Blocking functions, and blocking calls with a time limit, run in daemon threads, because an
    event loop waits for its own threads when it is closed.
    """

    @override
    async def model(self, choice: ChatModel | str) -> ChatModel:
        return await aresolve_model(choice)

    @override
    async def function(self, function: Callable[[], T], seconds: float | None) -> T:
        async with asyncio.timeout(seconds):
            return await to_thread(function)

    @override
    async def result(self, call: Call, seconds: float | None) -> Any:
        async with asyncio.timeout(seconds):
            return await uncancelled(self._started(call, seconds))

    @override
    async def outcomes(self, calls: Sequence[Call], seconds: float | None) -> list[Any]:
        results: list[Any] = [TimeoutError() for _ in calls]
        free = asyncio.Semaphore(self.most)

        async def work(place: int, call: Call) -> None:
            async with free:
                try:
                    results[place] = await uncancelled(self._started(call, seconds))
                except Exception as error:
                    results[place] = error

        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await asyncio.gather(*starmap(work, enumerate(calls)))
        return results

    def _started(self, call: Call, seconds: float | None) -> Awaitable[Any]:
        if seconds is not None and _blocks(call.runnable):
            return asyncio.wrap_future(in_thread(self.blocking(call)))
        return call.runnable.ainvoke(call.input, self.config, **call.options)


def _blocks(runnable: Runnable[Any, Any]) -> bool:
    """Return whether a runnable is a retriever or a model without async code of its own."""
    kind: Any = type(unbound(runnable))
    if issubclass(kind, BaseChatModel):
        calls = ("_agenerate", "_astream")
        return all(getattr(kind, call) is getattr(BaseChatModel, call) for call in calls)
    search = "_aget_relevant_documents"
    return getattr(kind, search, None) is getattr(BaseRetriever, search)


class Node(Runnable[Any, dict[str, Any]], ABC):
    """A graph node whose work is done in `run`.

    LangGraph sets the context of the config only for the first runnable of a sequence, so any other
    node sets it itself.
    """

    @abstractmethod
    async def run(self, state: Any, calls: Calls) -> dict[str, Any]:
        """Do the work and return the state update."""

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:
        """Do the work in the calling thread."""
        work = self.run(input, BlockingCalls(config))
        if var_child_runnable_config.get() is config:
            return _completed(work)
        with set_config_context(ensure_config(config)) as context:
            return context.run(_completed, work)

    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **_: Any
    ) -> dict[str, Any]:
        """Do the work on the running event loop."""
        work = self.run(input, AsyncCalls(config))
        if var_child_runnable_config.get() is config:
            return await work
        with set_config_context(ensure_config(config)) as context:
            return await asyncio.create_task(work, context=context)


class Inline(Runnable[Any, Any]):
    """A decorator that turns a quick function into a node or a router.

    In async runs, the function is called on the event loop. LangGraph runs a plain function in a
    thread, which would take longer than the function itself.

    Args:
        function: A function that takes the state.
        reads_config: Whether it is a router that reads the config or the runtime.
    """

    def __init__(self, function: Callable[..., Any], *, reads_config: bool = False) -> None:
        self.function = function
        self.reads_config = reads_config
        self.name = getattr(function, "__name__", "condition")

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Call the function."""
        return self.function(*args, **options)

    @override
    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        if not self.reads_config:
            return self.function(input)
        with set_config_context(config or {}) as context:  # LangGraph sets it for nodes only
            return context.run(self.function, input)

    @override
    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        return self.invoke(input, config)


def _completed(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never suspends."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("a node awaited something other than its calls in a blocking run")
