"""Threads, and values made once per key."""

import asyncio
import gc
import threading
import weakref
from typing import Any

import pytest

from stepcraft.concurrency import OncePerKey, within


class Opened:
    """A value that can be watched while it is kept."""


def outcome(call: Any) -> Any:
    try:
        return call()
    except Exception as error:
        return error


def test_a_value_is_made_once_for_all_who_ask_at_the_same_time():
    once, go, made = OncePerKey[str, Opened](), threading.Event(), list[Opened]()

    def make() -> Opened:
        go.wait(10)
        made.append(Opened())
        return made[-1]

    first = once.start("a", make)
    found = list[Opened]()
    threads = [threading.Thread(target=lambda: found.append(once.get("a", make))) for _ in range(8)]
    for thread in threads:
        thread.start()
    assert once.peek("a") is None
    go.set()
    for thread in threads:
        thread.join(10)
    assert made == [first.result()]
    assert set(found) == {made[0]} == {once.get("a", make)} == {once.peek("a")}


def test_one_key_that_takes_long_holds_up_no_other_and_no_event_loop():
    once, go = OncePerKey[str, str](), threading.Event()
    slow = once.start("slow", lambda: "opened" if go.wait(10) else "never")
    assert once.get("quick", lambda: "quick") == "quick"

    async def main() -> str:
        assert once.peek("slow") is None
        abandoned = asyncio.wrap_future(once.start("slow", lambda: "twice"))
        abandoned.cancel()
        waiting = asyncio.wrap_future(once.start("slow", lambda: "twice"))
        assert await asyncio.wrap_future(once.start("quick", lambda: "twice")) == "quick"
        go.set()
        return await waiting

    assert asyncio.run(main()) == slow.result(10) == once.peek("slow") == "opened"


def test_a_failure_reaches_all_who_wait_and_is_not_kept():
    once, go = OncePerKey[str, str](), threading.Event()

    def fail() -> str:
        go.wait(10)
        raise ConnectionError("refused")

    waiting = [once.start("a", fail) for _ in range(3)]
    go.set()
    assert {str(future.exception(10)) for future in waiting} == {"refused"}
    assert once.peek("a") is None
    assert isinstance(outcome(lambda: once.get("a", fail)), ConnectionError)
    assert once.get("a", lambda: "at last") == "at last"


def test_a_stale_value_is_made_again_by_who_asks_for_a_fresh_one():
    once, numbers = OncePerKey[str, int](), iter(range(9))
    assert once.get("a", lambda: next(numbers)) == 0
    assert once.get("a", lambda: next(numbers)) == 0
    assert once.get("a", lambda: next(numbers), fresh=lambda value: value == 0) == 0
    assert once.get("a", lambda: next(numbers), fresh=lambda value: value > 0) == 1
    assert once.peek("a") == 1


def test_only_so_many_values_are_kept_and_the_others_are_let_go():
    once = OncePerKey[int, Opened](2)
    watched = [weakref.ref(once.get(number, Opened)) for number in range(2)]
    in_use = once.get(1, Opened)
    once.get(0, Opened)
    once.get(2, Opened)
    once.get(3, Opened)
    gc.collect()
    assert watched[0]() is None, "the least recently used one of those that nobody holds"
    assert watched[1]() is in_use
    assert once.peek(1) is None
    assert once.pop(3) is not None
    assert once.pop(3) is None


def test_a_value_that_is_dropped_while_it_is_made_is_not_kept():
    once, go = OncePerKey[str, str](), threading.Event()
    first = once.start("a", lambda: "first" if go.wait(10) else "never")
    once.pop("a")
    assert once.get("a", lambda: "second") == "second"
    go.set()
    assert first.result(10) == "first"
    assert once.peek("a") == "second"


def test_a_call_that_is_given_up_ends_and_keeps_nothing_alive():
    go, threads, results = threading.Event(), list[threading.Thread](), list[weakref.ref[Opened]]()

    def call() -> Opened:
        threads.append(threading.current_thread())
        go.wait(10)
        result = Opened()
        results.append(weakref.ref(result))
        return result

    with pytest.raises(TimeoutError):
        within(0.01, call)
    go.set()
    threads[0].join(10)
    assert not threads[0].is_alive()
    gc.collect()
    assert results[0]() is None
