"""The background event loop on which the async client of Weaviate lives, for all threads and event loops."""

import asyncio
import atexit
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

_Result = TypeVar("_Result")
_CLOSE_TIMEOUT_S = 2.0
"""How long a fork and the end of the process wait for clients to close, in seconds."""


class BackgroundLoop:
    """An event loop in a daemon thread; `current` returns the one of this process.

    Before a fork all clients are closed, because gRPC's asyncio support hangs in a child that inherits an open
    channel. Parent and child connect again with their next call, the child on a loop of its own. Clients are closed at
    the exit of the process, too.
    """

    _current: "BackgroundLoop | None" = None
    _starting = threading.Lock()

    def __init__(self) -> None:
        self.clients: dict[Any, Callable[[], Awaitable[None]]] = {}
        """The open clients and how to close each; changed on the loop only."""
        self._loop = asyncio.new_event_loop()
        self._forked = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="stepcraft-weaviate", daemon=True
        )
        self._thread.start()
        atexit.register(self._stop)

    @classmethod
    def current(cls) -> "BackgroundLoop":
        """Return the loop of this process, started by the first call."""
        if cls._current is None:
            with cls._starting:
                cls._current = cls._current or cls()
        return cls._current

    def start(self, coroutine: Coroutine[Any, Any, _Result]) -> Future[_Result]:
        """Start a coroutine on the loop; never blocks, so that a finalizer may do it in any thread.

        The coroutine itself sets the result. `asyncio.run_coroutine_threadsafe` does so one pass of the loop later, which
        costs 2 or 3 % of a search.

        Raises:
            RuntimeError: the process is about to exit.
        """
        if self._stopped:
            coroutine.close()
            raise RuntimeError("Weaviate cannot be called any more: the process is about to exit")
        future: Future[_Result] = Future()

        async def run() -> None:
            try:
                settle = partial(future.set_result, await coroutine)
            except BaseException as error:
                settle = partial(future.set_exception, error)
            with suppress(InvalidStateError):  # the caller cancelled it
                settle()

        def launch() -> None:
            if future.cancelled():
                coroutine.close()
                return
            task = self._loop.create_task(run())
            future.add_done_callback(
                lambda done: (
                    self._loop.call_soon_threadsafe(task.cancel) if done.cancelled() else None
                )
            )

        self._loop.call_soon_threadsafe(launch)
        return future

    def call(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """Run a coroutine on the loop and block the calling thread until it is done."""
        future = self.start(coroutine)
        try:
            return future.result()
        finally:
            future.cancel()  # where the wait was interrupted
            del future  # an exception's traceback and this frame would keep each other alive

    async def acall(self, coroutine: Coroutine[Any, Any, _Result]) -> _Result:
        """Run a coroutine on the loop and await it from the running one; if the caller is cancelled, so is it."""
        return await asyncio.wrap_future(self.start(coroutine))

    async def _close_clients(self) -> None:
        for close in list(self.clients.values()):
            await close()

    def _stop(self) -> None:
        if BackgroundLoop._current is not self:
            return  # the parent's, inherited by a child process in which it does not run
        with suppress(TimeoutError):
            self.start(self._close_clients()).result(_CLOSE_TIMEOUT_S)
        self._stopped = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_TIMEOUT_S)
        if not self._thread.is_alive():
            self._loop.close()

    @classmethod
    def survive_forks(cls) -> None:
        """Register the fork handlers of this class."""
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(
                before=cls._before_fork, after_in_parent=cls._after_fork, after_in_child=cls._forget
            )

    @classmethod
    def _before_fork(cls) -> None:
        """Close all clients and hold the loop until the fork is done, so that no call connects before it."""
        loop, held = cls._current, threading.Event()
        if not loop or loop._stopped:
            return
        loop._forked.clear()

        async def close_and_hold() -> None:
            try:
                await loop._close_clients()
            finally:
                held.set()
                loop._forked.wait(_CLOSE_TIMEOUT_S)  # blocks the loop on purpose

        loop.start(close_and_hold())
        held.wait(_CLOSE_TIMEOUT_S)

    @classmethod
    def _after_fork(cls) -> None:
        if cls._current:
            cls._current._forked.set()

    @classmethod
    def _forget(cls) -> None:
        cls._current = None
        cls._starting = threading.Lock()


BackgroundLoop.survive_forks()
