"""Work on many things at the same time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable


async def side_by_side(jobs: Iterable[Callable[[], Awaitable[None]]], concurrency: int) -> None:
    """Do the jobs, so many at a time.

    Raises:
        Exception: The first error of a job; the others are cancelled.
    """
    waiting = iter(jobs)

    async def work() -> None:
        for job in waiting:
            await job()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
