"""Work on many things at the same time."""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any


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
