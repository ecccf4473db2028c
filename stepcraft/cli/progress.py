"""A counter on stderr for imports, copies and corpora: live on a terminal, now and then a plain line elsewhere."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from stepcraft.cli.output import write

_LINE_EVERY = 10_000


class Counter:
    """Counts items of several sources, one source after the other."""

    def __init__(self, show: Callable[[int], None]) -> None:
        self._show = show
        self._before = self._now = 0

    def __call__(self, done: int) -> None:
        """Set how many items of the current source are done."""
        self._now = self._before + done
        self._show(self._now)

    def next_source(self) -> None:
        """Add the items of the next source to those counted so far."""
        self._before = self._now


@contextmanager
def counting(items: str) -> Generator[Counter]:
    """Show a counter while the block runs; `items` says what is counted."""
    console = Console(stderr=True)
    if not console.is_terminal:
        printed = 0

        def show_line(done: int) -> None:
            nonlocal printed
            if done - printed >= _LINE_EVERY:
                printed = done
                write(console, f"{done:,} {items}")

        yield Counter(show_line)
        return
    columns = (SpinnerColumn(), TextColumn("{task.completed:,} {task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(items, total=None)
        yield Counter(lambda done: progress.update(task, completed=done))
