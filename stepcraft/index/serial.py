"""Calls of any number of event loops, one after another."""

import asyncio
import contextvars
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from threading import Lock
from typing import Any, TypeVar

from stepcraft.concurrency import in_thread

T = TypeVar("T")


class SerialExecutor:
    """Runs the calls of any number of event loops one after another in a thread that lives while there are calls.

    For calls that would wait for each other anyway: with a thread for each, many of them would
    hinder each other and the event loop more than they work.

    Args:
        around: what the calls are made in, such as a transaction; entered once for all calls of one
            turn.
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
            contextvars.Context().run(in_thread, self._run)
        return await future

    def _run(self) -> None:
        while True:
            with self._lock:
                self._running = bool(self._waiting)
                if not self._running:
                    return
            done = self._turn()
            for loop in {waiting.get_loop() for waiting, _ in done}:
                outcomes = [
                    (waiting, outcome) for waiting, outcome in done if waiting.get_loop() is loop
                ]
                with suppress(RuntimeError):  # the loop was closed, so nobody waits
                    loop.call_soon_threadsafe(_hand_over, outcomes)

    def _turn(self) -> list["_Done"]:
        """Make calls for a short while, so that their results wake each event loop once."""
        done: list[_Done] = []
        try:
            with self._around():
                until = time.monotonic() + _TURN_S
                while self._waiting and (not done or time.monotonic() < until):
                    waiting, call = self._waiting.popleft()
                    done.append((waiting, _outcome(call)))
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


def _outcome(call: Callable[[], Any]) -> Future[Any]:
    outcome: Future[Any] = Future()
    try:
        outcome.set_result(call())
    except BaseException as error:
        outcome.set_exception(error)
    return outcome
