"""Daemon threads for blocking calls, values made once per key, and a serial executor for event loops.

`concurrent.futures.ThreadPoolExecutor` is not used: its threads are joined when the process ends, so that one hung
host would keep a command from returning, they do not survive a fork, and a bounded pool lets a few hung calls hold
up all others. Threads whose call has returned take the next one for a second, because starting a thread takes longer than
most calls.
"""

import asyncio
import contextvars
import math
import os
import time
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import ContextVar
from functools import partial
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def in_thread(call: Callable[[], T]) -> Future[T]:
    """Start a call in a daemon thread that no other call is made in, with a copy of the current context variables."""
    future: Future[T] = Future()
    context = contextvars.copy_context()
    _start(lambda: context.run(_settle, future, call))
    return future


def _start(job: Callable[[], object]) -> None:
    try:
        _idle.pop().put(job)
    except IndexError:
        Thread(target=_work, args=(job,), name="stepcraft", daemon=True).start()


def _work(job: Callable[[], object]) -> None:
    """Make a call, and those that come within a second after one another."""
    jobs: SimpleQueue[Callable[[], object]] = SimpleQueue()
    while True:
        job()
        del job  # what it holds is not kept while the thread is idle
        _idle.append(jobs)
        try:
            job = jobs.get(timeout=_IDLE_S)
        except Empty:
            try:
                _idle.remove(jobs)
            except ValueError:  # a call was given to it just now
                job = jobs.get()
            else:
                return


_IDLE_S = 1.0
_idle: deque[SimpleQueue[Callable[[], object]]] = deque()
"""Where threads without a call take the next one from; the last to become idle is the next to be used."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # a fork has no other threads


def within(seconds: float | None, call: Callable[[], T]) -> T:
    """Return the result of a call that may take this many seconds; None means without a limit.

    A call that takes longer goes on in its thread, where `overdue` tells it so, and its result is dropped.

    Raises:
        TimeoutError: the call took longer.
    """
    if seconds is None:
        return call()
    seconds = max(0.0, seconds)
    token = _ends.set(min(_ends.get(), time.monotonic() + seconds))
    try:
        future = in_thread(call)
    finally:
        _ends.reset(token)
    return future.result(timeout=seconds)


def overdue() -> bool:
    """Whether nobody waits any more for the call of `within` that is running here."""
    return time.monotonic() > _ends.get()


_ends: ContextVar[float] = ContextVar("ends", default=math.inf)


def shared_lock(key: Hashable) -> Lock:
    """The lock that all who name this key have in common in this process, for as long as one of them holds on to it."""
    with _naming:
        return _locks.setdefault(key, Lock())


_locks: WeakValueDictionary[Hashable, Lock] = WeakValueDictionary()
_naming = Lock()


class OncePerKey(Generic[K, V]):
    """Values that are made on demand, each once, and kept until newer ones displace them. Thread-safe.

    The lock guards the tables only, never a `make`: making one value does not delay any other key, and an event
    loop may call `peek` and `start` at any time.

    Args:
        most: how many values are kept; the least recently used one is dropped first. A dropped value lives on
            for as long as somebody uses it.
    """

    def __init__(self, most: int = 32) -> None:
        self._most = most
        self._lock = Lock()
        self._kept: dict[K, Future[V]] = {}
        self._making: dict[K, Future[V]] = {}

    def get(self, key: K, make: Callable[[], V], fresh: Callable[[V], bool] | None = None) -> V:
        """Return the value of a key; make it in this thread, or wait for the thread that is making it.

        Args:
            key: what the value is kept under.
            make: makes the value. What it raises is raised to all who wait for the value, and nothing is kept.
            fresh: whether a kept value may still be used; it must be quick. Until a new value is there, `peek` and
                calls without `fresh` return the old one.
        """
        future, claimed = self._claim(key, fresh)
        if claimed:
            self._make(key, make, future)
        return future.result()

    def start(self, key: K, make: Callable[[], V], fresh: Callable[[V], bool] | None = None) -> Future[V]:
        """As `get`, without blocking: the future of the value, which is made in a thread if need be.

        However many callers give up waiting, at most one thread per key is left.
        """
        future, claimed = self._claim(key, fresh)
        if claimed:
            try:
                in_thread(lambda: self._make(key, make, future))
            except RuntimeError as error:  # no thread can be started
                self._fail(key, future, error)
        return future

    def peek(self, key: K) -> V | None:
        """Return the kept value of a key, or None; never blocks."""
        with self._lock:
            future = self._kept.pop(key, None)
            if future:
                self._kept[key] = future
        return future.result() if future else None

    def pop(self, key: K) -> V | None:
        """Drop the value of a key and return it. A value that is being made is not kept."""
        with self._lock:
            self._making.pop(key, None)
            future = self._kept.pop(key, None)
        return future.result() if future else None

    def _claim(self, key: K, fresh: Callable[[V], bool] | None) -> tuple[Future[V], bool]:
        """The future of a key's value, and whether the caller is the one to make it."""
        with self._lock:
            kept = self._kept.get(key)
            if kept and (fresh is None or fresh(kept.result())):
                self._kept[key] = self._kept.pop(key)
                return kept, False
            if key in self._making:
                return self._making[key], False
            future = self._making[key] = Future[V]()
            future.set_running_or_notify_cancel()  # a waiter that is cancelled must not cancel it for the others
            return future, True

    def _make(self, key: K, make: Callable[[], V], future: Future[V]) -> None:
        try:
            value = make()
        except BaseException as error:
            self._fail(key, future, error)
            return
        future.set_result(value)
        dropped: list[Future[V] | None] = []  # destructors run after the lock is released
        with self._lock:
            if self._making.get(key) is future:
                del self._making[key]
                dropped.append(self._kept.pop(key, None))
                self._kept[key] = future
                while len(self._kept) > self._most:
                    dropped.append(self._kept.pop(next(iter(self._kept))))

    def _fail(self, key: K, future: Future[V], error: BaseException) -> None:
        with self._lock:
            if self._making.get(key) is future:
                del self._making[key]
        future.set_exception(error)


class SerialExecutor:
    """Runs the calls of any number of event loops one after another in a thread that lives while there are calls.

    For calls that would wait for each other anyway: with a thread for each, many of them would hinder each other
    and the event loop more than they work.

    Args:
        around: what the calls are made in, such as a transaction; entered once for all calls of one turn.
    """

    def __init__(self, around: Callable[[], AbstractContextManager[object]] = nullcontext) -> None:
        self._around = around
        self._lock = Lock()
        self._waiting: deque[tuple[asyncio.Future[Any], Callable[[], Any]]] = deque()
        self._running = False

    async def submit(self, call: Callable[[], T]) -> T:
        """Return the result of a call, made with the caller's context variables, or raise what it or `around` raises."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        context = contextvars.copy_context()
        with self._lock:
            self._waiting.append((future, partial(context.run, call)))
            starts, self._running = not self._running, True
        if starts:
            _start(partial(contextvars.Context().run, self._run))
        return await future

    def _run(self) -> None:
        while True:
            with self._lock:
                self._running = bool(self._waiting)
                if not self._running:
                    return
            done = self._turn()
            for loop in {waiting.get_loop() for waiting, _ in done}:
                own = [(waiting, outcome) for waiting, outcome in done if waiting.get_loop() is loop]
                with suppress(RuntimeError):  # the loop was closed, so nobody waits
                    loop.call_soon_threadsafe(_hand_over, own)

    def _turn(self) -> list["_Done"]:
        """Make calls for a short while, so that their results wake each event loop once."""
        done: list[_Done] = []
        try:
            with self._around():
                until = time.monotonic() + _TURN_S
                while self._waiting and (not done or time.monotonic() < until):
                    waiting, call = self._waiting.popleft()
                    done.append((waiting, _settle(Future(), call)))
        except BaseException as error:
            failed: Future[Any] = Future()
            failed.set_exception(error)
            lost = [waiting for waiting, _ in done] or [self._waiting.popleft()[0]]
            return [(waiting, failed) for waiting in lost]
        return done


_Done = tuple[asyncio.Future[Any], Future[Any]]
"""What waits for a call, and the outcome of the call."""

_TURN_S = 0.002


def _hand_over(done: list[_Done]) -> None:
    for waiting, outcome in done:
        if waiting.done():
            continue
        if error := outcome.exception():
            waiting.set_exception(error)
        else:
            waiting.set_result(outcome.result())


def _settle(future: Future[T], call: Callable[[], T]) -> Future[T]:
    if future.set_running_or_notify_cancel():
        try:
            result = call()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)
    return future
