"""The progress of an evaluation on stderr: one line that is rewritten on a terminal, a line now and then elsewhere."""

import time
from typing import TYPE_CHECKING, Self

from stepcraft.cli.output import printable, write

if TYPE_CHECKING:
    from rich.live import Live

    from stepcraft.evals.progress import Progress

_FIRST = 10
"""So many lines are written as they come."""
_EVERY_S = 5.0
"""Later ones are this far apart, but for the last."""


class ShownProgress:
    """Shows what it is called with, while it is entered.

    Args:
        quiet: Whether nothing is shown.
    """

    def __init__(self, *, quiet: bool) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, quiet=quiet)
        self._live: Live | None = None
        self._told = 0
        self._done = 0
        self._next = 0.0

    def __enter__(self) -> Self:
        if self._console.is_terminal and not self._console.quiet:
            from rich.live import Live

            self._live = Live("", console=self._console, auto_refresh=False)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def say(self, text: str) -> None:
        """Write a line of its own."""
        write(self._console, text)

    def __call__(self, progress: "Progress") -> None:
        """Show how far it is."""
        now = time.monotonic()
        if self._live:
            from rich.text import Text

            if now >= self._next or progress.done == progress.total:
                self._next = now + 0.1
                text = Text(printable(line(progress)), no_wrap=True, overflow="ellipsis")
                self._live.update(text, refresh=True)
        elif progress.done > self._done and (
            self._told < _FIRST or now >= self._next or progress.done == progress.total
        ):
            self._told, self._done, self._next = self._told + 1, progress.done, now + _EVERY_S
            write(self._console, line(progress))


def line(progress: "Progress") -> str:
    """The progress in one line."""
    parts = [f"{progress.done:,} of {progress.total:,} done"]
    if progress.running:
        parts.append(f"{progress.running:,} running")
    parts.append(f"{progress.failed:,} failed")
    if progress.seconds_left is not None and progress.done < progress.total:
        parts.append(f"about {_time(progress.seconds_left)} left")
    if progress.usd:
        parts.append(usd(progress.usd))
    calls = "1 call" if progress.calls == 1 else f"{progress.calls:,} calls"
    parts += [calls, f"{progress.tokens:,} tokens"]
    if progress.rate:
        parts.append(f"{progress.rate:.2f} a second")
    return ", ".join(parts)


def usd(cost: float) -> str:
    """An amount with four digits at most behind the point."""
    return f"{cost:,.2f} USD" if cost >= 1 else f"{cost:.4f} USD"


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02} min"
