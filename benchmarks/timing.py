"""How long something takes: the median of several runs after one that warms up."""

import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

Clock = Callable[[], float]


def seconds(work: Callable[[], Any], repeat: int) -> float:
    """The median of so many runs."""
    return in_turns([work], repeat)[0]


async def looped(work: Callable[[], Awaitable[Any]], repeat: int) -> float:
    """As `seconds`, on the event loop that is running."""
    return (await looped_in_turns([work], repeat))[0]


def in_turns(
    works: Sequence[Callable[[], Any]], repeat: int, clock: Clock = time.perf_counter
) -> list[float]:
    """As `seconds`, of each in turn: what else the machine does falls on all of them alike.

    `time.process_time` as the clock leaves it out, where nothing waits.
    """
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeat + 1):
        for work, taken in zip(works, times, strict=True):
            gc.collect()
            began = clock()
            work()
            taken.append(clock() - began)
    return [statistics.median(taken[1:]) for taken in times]


async def looped_in_turns(
    works: Sequence[Callable[[], Awaitable[Any]]], repeat: int, clock: Clock = time.perf_counter
) -> list[float]:
    """As `in_turns`, on the event loop that is running."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeat + 1):
        for work, taken in zip(works, times, strict=True):
            gc.collect()
            began = clock()
            await work()
            taken.append(clock() - began)
    return [statistics.median(taken[1:]) for taken in times]
