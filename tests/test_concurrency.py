"""Calls that stand in line for one thread."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from stepcraft.concurrency import Line


def test_calls_are_made_one_after_the_other_off_the_event_loop():
    line, at_once, most, threads = Line(), 0, 0, set()

    def call(number: int) -> int:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        threads.add(threading.current_thread())
        at_once -= 1
        return number * number

    async def main() -> list[int]:
        return await asyncio.gather(*(line.made(lambda number=number: call(number)) for number in range(100)))

    assert asyncio.run(main()) == [number * number for number in range(100)]
    assert asyncio.run(main())[-1] == 99 * 99
    assert most == 1
    assert threading.main_thread() not in threads


def test_a_call_that_fails_fails_alone():
    line = Line()

    async def main() -> None:
        good, bad = line.made(lambda: "good"), line.made(lambda: 1 / 0)
        outcomes = await asyncio.gather(bad, good, return_exceptions=True)
        assert outcomes[1] == "good"
        with pytest.raises(ZeroDivisionError):
            raise outcomes[0]

    asyncio.run(main())


def test_a_call_that_nobody_waits_for_any_more_hinders_no_other():
    line, go = Line(), threading.Event()

    async def main() -> str:
        left = asyncio.create_task(line.made(go.wait))
        await asyncio.sleep(0)
        next_one = asyncio.create_task(line.made(lambda: "next"))
        await asyncio.sleep(0)
        left.cancel()
        go.set()
        return await next_one

    assert asyncio.run(main()) == "next"


def test_event_loops_in_several_threads_share_a_line():
    line, found = Line(), []

    async def ask(name: str) -> None:
        found.extend([await line.made(lambda number=number: f"{name}{number}") for number in range(50)])

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
        line = Line(around)
        first = asyncio.create_task(line.made(go.wait))
        await asyncio.sleep(0)
        rest = [asyncio.create_task(line.made(lambda: len(entered))) for _ in range(5)]
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
        line = Line(around)
        with pytest.raises(PermissionError, match="shut"):
            await line.made(lambda: 1)
        return await asyncio.gather(*(line.made(lambda: 2) for _ in range(2)))

    assert asyncio.run(main()) == [2, 2]
