"""Progress on stderr: live on a terminal, a plain line now and then elsewhere."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

_PLAIN_EVERY = 10_000


class Count:
    """Shows how many are done, over several sources one after the other."""

    def __init__(self, show: Callable[[int], None]) -> None:
        self._show = show
        self._before = self._now = 0

    def __call__(self, done: int) -> None:
        """So many of the current source are done."""
        self._now = self._before + done
        self._show(self._now)

    def next_source(self) -> None:
        """Count on from here."""
        self._before = self._now


@contextmanager
def counting(what: str) -> Generator[Count]:
    """A count shown as long as the block runs."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Count(_plain(console, what))
        return
    columns = (SpinnerColumn(), TextColumn("{task.completed:,} {task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(what, total=None)

        def show(done: int) -> None:
            progress.update(task, completed=done)

        yield Count(show)


def _plain(console: Console, what: str) -> Callable[[int], None]:
    told = 0

    def tell(done: int) -> None:
        nonlocal told
        if done - told >= _PLAIN_EVERY:
            told = done
            console.print(f"{done:,} {what}", markup=False, highlight=False)

    return tell
