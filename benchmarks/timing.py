"""How long something takes: the median of several runs after one that warms up."""

import gc
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any


def seconds(work: Callable[[], Any], repeat: int) -> float:
    """The median of so many runs."""
    work()
    times: list[float] = []
    for _ in range(repeat):
        gc.collect()
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


async def looped(work: Callable[[], Awaitable[Any]], repeat: int) -> float:
    """As `seconds`, on the event loop that is running."""
    await work()
    times: list[float] = []
    for _ in range(repeat):
        gc.collect()
        began = time.perf_counter()
        await work()
        times.append(time.perf_counter() - began)
    return statistics.median(times)
