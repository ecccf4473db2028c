"""The background event loop on which the async client of Weaviate lives.

Sync callers wait for a coroutine on it and async callers await it from their own loop, so that one client serves any
number of threads and loops. `asyncio.run_coroutine_threadsafe` offers the same through two chained futures and several
more passes through each loop, which costs a tenth of a search. Here a call wakes the loop once, its result wakes the
caller once, and calls that come close together share both.
"""

import asyncio
import atexit
import os
import threading
from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Generic, TypeVar, cast
from weakref import WeakKeyDictionary

_Result = TypeVar("_Result")
_Replies = deque[asyncio.Future[None]]
_EXIT_S = 2.0
"""How long a fork and the end of the process wait for clients to close, in seconds."""


class _Job(Generic[_Result]):
    """A call on the background loop; `finished` is called there when it is done."""

    __slots__ = ("call", "cancelled", "error", "finished", "result", "task")

    def __init__(self, call: Callable[[], Awaitable[_Result]], finished: Callable[[], object]) -> None:
        self.call = call
        self.finished = finished
        self.task: asyncio.Task[None] | None = None
        self.cancelled = False
        self.result: _Result | None = None
        self.error: BaseException | None = None

    async def run(self) -> None:
        try:
            self.result = await self.call()
        except BaseException as error:
            self.error = error
        self.finished()

    def cancel(self) -> None:
        self.cancelled = True
        if self.task:
            self.task.cancel()

    def outcome(self) -> _Result:
        """Return the result or raise the exception; to be called once."""
        error, self.error = self.error, None
        if error is None:
            return cast("_Result", self.result)
        try:
            raise error
        finally:
            del error  # the traceback and this frame would keep each other alive


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
        self._jobs: deque[_Job[Any]] = deque()
        self._waking = False
        self._replies: WeakKeyDictionary[AbstractEventLoop, _Replies] = WeakKeyDictionary()
        self._resume = threading.Event()
        self._stopped = False
        self._thread = threading.Thread(target=self._loop.run_forever, name="stepcraft-weaviate", daemon=True)
        self._thread.start()
        atexit.register(self._stop)

    @classmethod
    def current(cls) -> "BackgroundLoop":
        """Return the loop of this process, started by the first call."""
        if cls._current is None:
            with cls._starting:
                cls._current = cls._current or cls()
        return cls._current

    def call(self, call: Callable[[], Awaitable[_Result]]) -> _Result:
        """Run a coroutine on the loop and block the calling thread until it is done."""
        done = threading.Lock()
        done.acquire()
        job = self.post(call, done.release)
        try:
            done.acquire()
        except BaseException:
            self._loop.call_soon_threadsafe(job.cancel)
            raise
        return job.outcome()

    async def acall(self, call: Callable[[], Awaitable[_Result]]) -> _Result:
        """Run a coroutine on the loop and await it from the running one; if the caller is cancelled, so is it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        replies = self._replies.get(loop)
        if replies is None:
            replies = self._replies[loop] = deque()
        job = self.post(call, partial(_reply, replies, future))
        try:
            await future
        except asyncio.CancelledError:
            self._loop.call_soon_threadsafe(job.cancel)
            raise
        return job.outcome()

    def start(self, call: Callable[[], Coroutine[Any, Any, _Result]]) -> Future[_Result]:
        """Start a coroutine on the loop and return its future."""
        return asyncio.run_coroutine_threadsafe(call(), self._loop)

    def post(
        self, call: Callable[[], Awaitable[_Result]], finished: Callable[[], object] = lambda: None
    ) -> _Job[_Result]:
        """Start a coroutine on the loop; never blocks, so that a finalizer may do it in any thread.

        Raises:
            RuntimeError: the process is about to exit.
        """
        if self._stopped:
            raise RuntimeError("Weaviate cannot be called any more: the process is about to exit")
        job = _Job(call, finished)
        self._jobs.append(job)
        if not self._waking:
            self._waking = True
            self._loop.call_soon_threadsafe(self._start_jobs)
        return job

    def _start_jobs(self) -> None:
        self._waking = False  # first, so that a job which is added meanwhile wakes the loop again
        while self._jobs:
            job = self._jobs.popleft()
            if not job.cancelled:
                job.task = self._loop.create_task(job.run())

    async def _close_clients(self) -> None:
        for close in list(self.clients.values()):
            await close()

    def _stop(self) -> None:
        if BackgroundLoop._current is not self:
            return  # the parent's, inherited by a child process in which it does not run
        with suppress(TimeoutError):
            self.start(self._close_clients).result(_EXIT_S)
        self._stopped = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_EXIT_S)
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
        loop._resume.clear()

        async def close_and_hold() -> None:
            try:
                await loop._close_clients()
            finally:
                held.set()
                loop._resume.wait(_EXIT_S)  # blocks the loop on purpose

        loop.start(close_and_hold)
        held.wait(_EXIT_S)

    @classmethod
    def _after_fork(cls) -> None:
        if cls._current:
            cls._current._resume.set()

    @classmethod
    def _forget(cls) -> None:
        cls._current = None
        cls._starting = threading.Lock()


def _reply(replies: _Replies, future: asyncio.Future[None]) -> None:
    """Wake the loop of a caller, unless it is about to fetch earlier replies anyway."""
    replies.append(future)
    if len(replies) == 1:
        try:
            future.get_loop().call_soon_threadsafe(_deliver, replies)
        except RuntimeError:  # the caller's loop was closed
            replies.clear()


def _deliver(replies: _Replies) -> None:
    while replies:
        future = replies.popleft()
        if not future.done():
            future.set_result(None)


BackgroundLoop.survive_forks()
