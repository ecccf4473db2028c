"""Daemon threads for blocking calls, values created once per key, and concurrent coroutines.

`concurrent.futures.ThreadPoolExecutor` is not used: its threads are joined when the process ends,
so one hanging host would keep a command from returning, and in a bounded pool a few hanging calls
would delay all others.
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, Generic, ParamSpec, TypeVar
from weakref import WeakValueDictionary

P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def in_thread(call: Callable[[], T]) -> Future[T]:
    """Start a call in a daemon thread of its own, with a copy of the current context variables."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # so no waiter can cancel it for the others
    context = contextvars.copy_context()
    Thread(target=context.run, args=(_settle, future, call), name="stepcraft", daemon=True).start()
    return future


def _settle(future: Future[T], call: Callable[[], T]) -> None:
    try:
        result = call()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


async def to_thread(call: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """Return the result of a blocking call, like `asyncio.to_thread`, but from a daemon thread."""
    return await asyncio.wrap_future(in_thread(partial(call, *args, **options)))


def within(seconds: float | None, call: Callable[[], T]) -> T:
    """Return the result of a call, waiting at most `seconds`; None means no limit.

    A call that takes longer continues in its thread, and its result is dropped.

    Raises:
        TimeoutError: The call took longer.
    """
    if seconds is None:
        return call()
    return in_thread(call).result(timeout=max(0.0, seconds))


def outcomes(
    calls: Sequence[Callable[[], T]], seconds: float | None, most: int
) -> list[T | Exception]:
    """Return the result of each call, the exception that it raised, or a TimeoutError.

    Args:
        calls: The calls, which run in daemon threads. At the time limit, calls that have not
            started are dropped, and running ones continue in the background.
        seconds: The time limit for all of them together; None means no limit.
        most: The maximum number of concurrent calls.
    """
    results: list[T | Exception] = [TimeoutError() for _ in calls]
    jobs: SimpleQueue[tuple[int, Callable[[], T]]] = SimpleQueue()
    for job in enumerate(calls):
        jobs.put(job)
    is_over = Event()

    def work() -> None:
        with suppress(Empty):
            while not is_over.is_set():
                place, call = jobs.get_nowait()
                try:
                    results[place] = call()
                except Exception as error:
                    results[place] = error

    wait([in_thread(work) for _ in calls[:most]], timeout=seconds)
    is_over.set()
    return [*results]


def results(calls: Sequence[Callable[[], T]], most: int) -> list[T]:
    """Return the result of each call, running at most `most` of them at once.

    Raises:
        Exception: The error of the first call that failed, once all calls have ended.
    """
    done: list[T] = []
    for outcome in outcomes(calls, None, most):
        if isinstance(outcome, Exception):
            raise outcome
        done.append(outcome)
    return done


async def side_by_side(jobs: Iterator[Coroutine[Any, Any, None]], concurrency: int) -> None:
    """Run the jobs, at most `max(1, concurrency)` at a time.

    Raises:
        Exception: The first error; the other jobs are cancelled.
    """

    async def work() -> None:
        for job in jobs:
            await job

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(max(1, concurrency)):
                group.create_task(work())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def uncancelled(call: Awaitable[T]) -> T:
    """Return the result of a call, treating cancellation of a task it awaits as an error.

    Raises:
        CancelledError: The current task was cancelled.
        RuntimeError: A task that the call awaited was cancelled.
    """
    try:
        return await call
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task and task.cancelling():
            raise
        raise RuntimeError("a task that it awaited was cancelled") from error


def shared_lock(key: Hashable) -> Lock:
    """Return the lock for a key, which exists as long as a caller holds a reference to it."""
    with _naming:
        return _locks.setdefault(key, Lock())


_locks: WeakValueDictionary[Hashable, Lock] = WeakValueDictionary()
_naming = Lock()


class OncePerKey(Generic[K, V]):
    """Values created on demand, each once and in its own thread. Thread-safe.

    The lock only guards the table and is never held during `make`, so creating one value does not
    delay other keys.

    Args:
        most: The number of values kept; the least recently used one is dropped first. A dropped
            value lives on while it is in use.
    """

    def __init__(self, most: int = 32) -> None:
        self._most = most
        self._lock = Lock()
        self._futures: dict[K, Future[V]] = {}

    def get(self, key: K, make: Callable[[], V], fresh: Callable[[V], bool] | None = None) -> V:
        """Return the value for a key, creating it or waiting until another thread has created it.

        Args:
            key: The key of the value.
            make: A function that creates the value. If it raises, all callers waiting for the value
                get the exception, and nothing is kept.
            fresh: A function that returns whether a kept value can still be used; it must be fast.
        """
        return self.start(key, make, fresh).result()

    def start(
        self, key: K, make: Callable[[], V], fresh: Callable[[V], bool] | None = None
    ) -> Future[V]:
        """Like `get`, but without blocking: return a future for the value.

        A caller that stops waiting and asks again joins the thread that is already running.
        """
        with self._lock:
            future = self._futures.pop(key, None)
            if future and future.done():
                stale = future.exception() or (fresh and not fresh(future.result()))
                future = None if stale else future
            future = self._futures[key] = future or in_thread(make)
            oldest = [*self._futures][: max(0, len(self._futures) - self._most)]
            dropped = [self._futures.pop(each) for each in oldest]
        del dropped  # a destructor runs after the lock is released
        future.add_done_callback(partial(self._drop_failure, key))
        return future

    def _drop_failure(self, key: K, future: Future[V]) -> None:
        with self._lock:
            if future.exception() and self._futures.get(key) is future:
                del self._futures[key]
