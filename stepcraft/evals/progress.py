"""How far work on many samples is, what it used, and when its budget ends it."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from stepcraft.errors import BadInput, RunStopped


@dataclass(frozen=True)
class Budget:
    """When an evaluation stops; samples that are running are finished."""

    calls: int | None = None
    tokens: int | None = None
    """Tokens read and written."""
    usd: float | None = None


@dataclass(frozen=True)
class Progress:
    """How far work is, and what all of it used so far."""

    done: int
    failed: int
    total: int
    seconds: float = 0.0
    """Since the work began."""
    calls: int = 0
    tokens: int = 0
    usd: float | None = None
    """None where a price is unknown."""


class Spending:
    """What an evaluation used, counted against its budget.

    Args:
        budget: When to stop.
        progress: How far it is at the beginning.
        on_progress: Is told of the progress after each job.
    """

    def __init__(
        self, budget: Budget, progress: Progress, on_progress: Callable[[Progress], object]
    ) -> None:
        self.budget = budget
        self.progress = progress
        self.on_progress = on_progress
        self.began = time.monotonic()
        self.running = 0
        self.stopped = ""
        """Which part of the budget is used up."""

    def begin(self) -> bool:
        """Return whether another job may ask a model; it counts as one call until it ends."""
        used = self.progress
        for limit, count, unit in (
            (self.budget.calls, used.calls + self.running, "calls"),
            (self.budget.tokens, used.tokens, "tokens"),
            (self.budget.usd, used.usd or 0.0, "USD"),
        ):
            if limit is not None and count >= limit:
                self.stopped = f"the budget of {limit:,} {unit} is used up"
                return False
        self.running += 1
        return True

    def end(self, usage: Mapping[str, Any], usd: float | None) -> None:
        """Count a job that asked a model.

        Raises:
            BadInput: The budget is in USD, and the price of this job is unknown.
        """
        self.running -= 1
        self.add(usage, usd)
        if self.budget.usd is not None and usd is None:
            raise BadInput(unpriced(", ".join(usage.get("models") or ())))

    def add(self, usage: Mapping[str, Any], usd: float | None) -> None:
        """Count a usage, also one of an earlier process."""
        before = self.progress
        self.progress = replace(
            before,
            calls=before.calls + int(usage.get("calls", 0)),
            tokens=before.tokens + total_tokens(usage),
            usd=None if usd is None or before.usd is None else before.usd + usd,
        )

    def report(self, done: int, failed: int) -> None:
        """Emit the progress."""
        self.progress = replace(
            self.progress, done=done, failed=failed, seconds=time.monotonic() - self.began
        )
        self.on_progress(self.progress)

    def check_finished(self, done: int, what: str) -> None:
        """Check that the budget left nothing out.

        Raises:
            RunStopped: It is used up.
        """
        if self.stopped:
            raise RunStopped(
                f"{self.stopped}: {done:,} of {self.progress.total:,} {what} are done; raise it and "
                "start the same command again"
            )


def total_tokens(usage: Mapping[str, Any]) -> int:
    """Return the tokens read and written."""
    return int(usage.get("input_tokens", 0)) + int(usage.get("output_tokens", 0))


def unpriced(model: str) -> str:
    """Return why a budget in USD cannot be kept."""
    return (
        f"a budget in USD needs the price of every model, and that of {model or 'a model'} is "
        "unknown; name it with --price READ/WRITTEN, in USD per million tokens"
    )


async def side_by_side(jobs: Iterable[Callable[[], Awaitable[None]]], concurrency: int) -> None:
    """Do the jobs, N at a time.

    Raises:
        Exception: The first error of a job; the others are cancelled.
    """
    waiting = iter(jobs)

    async def work() -> None:
        for job in waiting:
            await job()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(max(1, concurrency)):
                group.create_task(work())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
