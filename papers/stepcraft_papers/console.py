"""Output and error handling for the command lines of this distribution."""

import sys
from collections.abc import Iterable, Sequence

import typer
from rich.console import Console
from rich.table import Table

from stepcraft.errors import StepcraftError


def say(text: str, *, err: bool = True, end: str = "\n") -> None:
    """Print a text as it is, by default to stderr."""
    console = Console(stderr=err)
    console.print(text, end=end, markup=False, highlight=False, soft_wrap=True)


def print_table(*columns: str, rows: Iterable[Sequence[str]]) -> None:
    """Print a table to stdout."""
    table = Table(*columns)
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def run(app: typer.Typer, module: str) -> None:
    """Run a command line, reporting a failure in one line."""
    try:
        app(prog_name=f"python -m {module}")
    except StepcraftError as error:
        say(f"error: {error}")
        sys.exit(2)
