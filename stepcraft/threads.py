"""Calls in threads of their own, and calls that are waited for only so long."""

import contextvars
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


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


def _settle(future: Future[T], call: Callable[[], T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
