"""Daemon threads for blocking calls, values made once per key, and coroutines side by side.

`concurrent.futures.ThreadPoolExecutor` is not used: its threads are joined when the process ends,
so that one hung host would keep a command from returning, and a bounded pool lets a few hung calls
hold up all others.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Hashable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, Generic, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def in_thread(call: Callable[[], T]) -> Future[T]:
    """Start a call in a daemon thread of its own, with a copy of the current context variables."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # a waiter that gives up cancels it for nobody else
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


def within(seconds: float | None, call: Callable[[], T]) -> T:
    """Return the result of a call that may take this many seconds; None means without a limit.

    A call that takes longer goes on in its thread, and its result is dropped.

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
        calls: They run in daemon threads. Those that take too long go on, and nothing waits for
            them; those that have not begun by then never do.
        seconds: What all of them together may take; None means without a limit.
        most: How many run at the same time.
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


async def side_by_side(jobs: Iterator[Coroutine[Any, Any, None]], concurrency: int) -> None:
    """Do the jobs, so many at a time.

    Raises:
        Exception: The first error of a job; the others are cancelled.
    """

    async def work() -> None:
        for job in jobs:
            await job

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


def shared_lock(key: Hashable) -> Lock:
    """Return the lock that all who name this key share, for as long as one of them holds it."""
    with _naming:
        return _locks.setdefault(key, Lock())


_locks: WeakValueDictionary[Hashable, Lock] = WeakValueDictionary()
_naming = Lock()


class OncePerKey(Generic[K, V]):
    """Values that are made on demand, each once, in a thread of its own. Thread-safe.

    The lock guards the table alone, never a `make`: making one value delays no other key.

    Args:
        most: How many values are kept; the least recently used one is dropped first. A dropped
            value lives on for as long as somebody uses it.
    """

    def __init__(self, most: int = 32) -> None:
        self._most = most
        self._lock = Lock()
        self._futures: dict[K, Future[V]] = {}

    def get(self, key: K, make: Callable[[], V], fresh: Callable[[V], bool] | None = None) -> V:
        """Return the value of a key; make it, or wait for the thread that is making it.

        Args:
            key: What the value is kept under.
            make: Makes the value. What it raises is raised to all who wait for the value, and
                nothing is kept.
            fresh: Whether a kept value may still be used; it must be quick.
        """
        return self.start(key, make, fresh).result()

    def start(
        self, key: K, make: Callable[[], V], fresh: Callable[[V], bool] | None = None
    ) -> Future[V]:
        """As `get`, without blocking: return the future of the value.

        However many callers give up waiting, at most one thread per key is left.
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
