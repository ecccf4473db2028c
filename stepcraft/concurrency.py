"""Calls in threads of their own, calls that stand in line for one, and calls that are waited for only so long."""

import asyncio
import contextvars
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext, suppress
from threading import Lock, Thread
from typing import Any, TypeVar

T = TypeVar("T")

_Done = tuple[asyncio.Future[Any], Future[Any]]
"""What became of a call, and what waits for it."""


def in_thread(call: Callable[[], T]) -> Future[T]:
    """What a call gives, made in a thread of its own, which does not keep the process from ending.

    A pool would make the end of the process wait for the slowest host, would not survive a fork, and has few threads.
    """
    future: Future[T] = Future()
    work = contextvars.copy_context().run
    Thread(target=work, args=(_settle, future, call), name="stepcraft", daemon=True).start()
    return future


def within(seconds: float | None, call: Callable[[], T]) -> T:
    """What a call gives; after so many seconds it is left to itself. None waits as long as it takes.

    Raises:
        TimeoutError: it took longer.
    """
    return call() if seconds is None else in_thread(call).result(timeout=max(0.0, seconds))


class Line:
    """Calls from event loops that would wait for each other anyway: one thread makes all that stand in line.

    With a thread for each, many of them would hinder each other and the event loop more than they work.

    Args:
        around: what the calls are made in, such as a transaction; entered once for all that fit into one turn.
    """

    def __init__(self, around: Callable[[], AbstractContextManager[object]] = nullcontext) -> None:
        self._around = around
        self._lock = Lock()
        self._waiting: deque[tuple[asyncio.Future[Any], Callable[[], Any]]] = deque()
        self._at_work = False

    async def made(self, call: Callable[[], T]) -> T:
        """What a call gives, or its exception; also what goes wrong around it."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiting.append((future, call))
            begins, self._at_work = not self._at_work, True
        if begins:
            Thread(target=self._work, name="stepcraft", daemon=True).start()
        return await future

    def _work(self) -> None:
        while self._goes_on():
            _tell(self._turn())

    def _goes_on(self) -> bool:
        with self._lock:
            self._at_work = bool(self._waiting)
            return self._at_work

    def _turn(self) -> list[_Done]:
        """The calls that are made before the event loops are told, which wakes each of them once."""
        done: list[_Done] = []
        try:
            with self._around():
                until = time.monotonic() + _TURN_S
                while self._waiting and (not done or time.monotonic() < until):
                    waiting, call = self._waiting.popleft()
                    done.append((waiting, _outcome(call)))
        except BaseException as error:
            lost = [waiting for waiting, _ in done] or [self._waiting.popleft()[0]]
            return [(waiting, _failed(error)) for waiting in lost]
        return done


_TURN_S = 0.002
"""Results that come sooner after each other wake an event loop together."""


def _tell(done: list[_Done]) -> None:
    for loop in {waiting.get_loop() for waiting, _ in done}:
        own = [(waiting, outcome) for waiting, outcome in done if waiting.get_loop() is loop]
        with suppress(RuntimeError):  # the loop was closed, so nobody waits
            loop.call_soon_threadsafe(_hand_over, own)


def _hand_over(done: list[_Done]) -> None:
    for waiting, outcome in done:
        if waiting.done():
            continue
        if error := outcome.exception():
            waiting.set_exception(error)
        else:
            waiting.set_result(outcome.result())


def _outcome(call: Callable[[], T]) -> Future[T]:
    outcome: Future[T] = Future()
    _settle(outcome, call)
    return outcome


def _failed(error: BaseException) -> Future[Any]:
    outcome: Future[Any] = Future()
    outcome.set_exception(error)
    return outcome


def _settle(future: Future[T], call: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
