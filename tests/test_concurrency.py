"""Threads, values made once per key, and the serial executor."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import pytest

from stepcraft.concurrency import OncePerKey, within
from stepcraft.index.serial import SerialExecutor


def test_calls_are_made_one_after_the_other_off_the_event_loop():
    executor, at_once, most, threads = SerialExecutor(), 0, 0, set()

    def call(number: int) -> int:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        threads.add(threading.current_thread())
        at_once -= 1
        return number * number

    async def main() -> list[int]:
        return await asyncio.gather(
            *(executor.submit(lambda number=number: call(number)) for number in range(100))
        )

    assert asyncio.run(main()) == [number * number for number in range(100)]
    assert asyncio.run(main())[-1] == 99 * 99
    assert most == 1
    assert threading.main_thread() not in threads


def test_calls_have_the_context_variables_of_their_callers():
    executor, name = SerialExecutor(), ContextVar("name", default="nobody")

    async def asked(value: str) -> str:
        name.set(value)
        return await executor.submit(name.get)

    async def main() -> list[str]:
        return await asyncio.gather(*(asked(value) for value in ("ann", "ben", "eve")))

    assert asyncio.run(main()) == ["ann", "ben", "eve"]


def test_a_call_that_fails_fails_alone():
    executor = SerialExecutor()

    async def main() -> None:
        good, bad = executor.submit(lambda: "good"), executor.submit(lambda: 1 / 0)
        outcomes = await asyncio.gather(bad, good, return_exceptions=True)
        assert outcomes[1] == "good"
        with pytest.raises(ZeroDivisionError):
            raise outcomes[0]

    asyncio.run(main())


def test_a_call_that_nobody_waits_for_any_more_hinders_no_other():
    executor, go = SerialExecutor(), threading.Event()

    async def main() -> str:
        left = asyncio.create_task(executor.submit(go.wait))
        await asyncio.sleep(0)
        next_one = asyncio.create_task(executor.submit(lambda: "next"))
        await asyncio.sleep(0)
        left.cancel()
        go.set()
        return await next_one

    assert asyncio.run(main()) == "next"


def test_event_loops_in_several_threads_share_an_executor():
    executor, found = SerialExecutor(), []

    async def ask(name: str) -> None:
        found.extend(
            [await executor.submit(lambda number=number: f"{name}{number}") for number in range(50)]
        )

    threads = [threading.Thread(target=asyncio.run, args=(ask(name),)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(found) == sorted(f"{name}{number}" for name in "ab" for number in range(50))


def test_calls_that_wait_together_are_made_within_one_block():
    entered, go = [], threading.Event()

    @contextmanager
    def around() -> Iterator[None]:
        entered.append(threading.current_thread())
        yield

    async def main() -> list[Any]:
        executor = SerialExecutor(around)
        first = asyncio.create_task(executor.submit(go.wait))
        await asyncio.sleep(0)
        rest = [asyncio.create_task(executor.submit(lambda: len(entered))) for _ in range(5)]
        await asyncio.sleep(0)
        go.set()
        return await asyncio.gather(first, *rest)

    assert asyncio.run(main())[0] is True
    assert len(entered) < 6


def test_what_goes_wrong_around_calls_is_told_to_each_and_to_no_later_one():
    doors = iter([False, True, True])

    @contextmanager
    def around() -> Iterator[None]:
        if not next(doors):
            raise PermissionError("shut")
        yield

    async def main() -> list[Any]:
        executor = SerialExecutor(around)
        with pytest.raises(PermissionError, match="shut"):
            await executor.submit(lambda: 1)
        return await asyncio.gather(*(executor.submit(lambda: 2) for _ in range(2)))

    assert asyncio.run(main()) == [2, 2]


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
