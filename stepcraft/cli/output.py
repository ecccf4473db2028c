"""The only place that prints. What is printed has no secrets and nothing that a terminal obeys.

Answers, evidence, procedures and the messages of servers come from outside. Control characters but newline and tab, and
overrides of the writing direction, are left out of texts and escaped in JSON, on a terminal and in a pipe alike.
"""

import io
import json
import re
import shutil
from typing import TYPE_CHECKING

import typer

from stepcraft.secrets import redacted, without_secrets
from stepcraft.text.clean import clean

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_TO_ESCAPE = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""What JSON need not escape although a terminal may obey it, or UTF-8 cannot encode it."""


def printable(text: str) -> str:
    """Return a text as it may be printed; it may have several lines."""
    return without_secrets(clean(text))


def one_line(text: str) -> str:
    """Return a text as it may be printed, on one line."""
    return " ".join(printable(text).split())


def say(text: str, *, err: bool = False) -> None:
    """Print a text on stdout, or on stderr."""
    typer.echo(printable(text), err=err)


def say_key(key: str) -> None:
    """Print a key that was made for the user of the command, the one secret that is shown."""
    typer.echo(key)


def complain(text: str) -> None:
    """Print on stderr, in one line, why a command fails."""
    typer.echo(f"stepcraft: {one_line(text)}", err=True)


def write(console: "Console", *parts: str | tuple[str, str], style: str = "") -> None:
    """Print a text on a console, in parts that may have a style; the terminal breaks long lines."""
    from rich.text import Text

    pairs = [(part, "") if isinstance(part, str) else part for part in parts]
    shown = Text.assemble(*((printable(text), own) for text, own in pairs), style=style)
    console.print(shown, soft_wrap=True, highlight=False)


def drawn(table: "Table") -> str:
    """A table as plain text, as wide as the terminal; 100 columns where there is none."""
    from rich.console import Console

    file = io.StringIO()
    width = shutil.get_terminal_size((100, 24)).columns
    Console(file=file, width=width, color_system=None).print(table)
    return "\n".join(line.rstrip() for line in file.getvalue().strip("\n").splitlines())


def print_json(value: object) -> None:
    """Print a value as JSON on stdout."""
    print_data(json.dumps(redacted(value), ensure_ascii=False, indent=2))


def print_data(json_text: str) -> None:
    """Print JSON on stdout whose secrets stay, because it is a copy of the user's data."""
    typer.echo(_TO_ESCAPE.sub(lambda found: f"\\u{ord(found[0]):04x}", json_text))
