"""What the commands share: their options, the settings made of them, and how errors end a command."""

import errno
import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from stepcraft.cli.output import complain, one_line
from stepcraft.errors import BadInput, StepcraftError

_PATH_ERRORS = {
    errno.EACCES,
    errno.EISDIR,
    errno.ELOOP,
    errno.ENAMETOOLONG,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EROFS,
}

Graph = Annotated[str, typer.Argument(metavar="GRAPH", help="The graph; `stepcraft graphs` lists them.")]
Question = Annotated[str, typer.Argument(help="The question to answer, or the goal to reach.")]
Model = Annotated[str | None, typer.Option(help='The chat model: "openai:gpt-5-mini", "ollama:…".')]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="FIELD=VALUE", help="A field of the graph's context; may be repeated."),
]
Sources = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="SPEC",
        help="A source of evidence: corpus:PATH, web, memory, weaviate://…; may be repeated.",
    ),
]
SecondSources = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="SPEC",
        help="A source to answer questions from, beside the memory: corpus:PATH, web, …; may be repeated.",
    ),
]
Memory = Annotated[
    str | None, typer.Option(help="The memory of procedures: a .db, .jsonl or .csv file, or a URL.")
]
Using = Annotated[str, typer.Option("--using", help="The available resources, separated by commas.")]
Kind = Annotated[
    str | None,
    typer.Option(help="The kind of answer: auto, long, short, or multihop (short, in several steps)."),
]
Passages = Annotated[
    Path | None,
    typer.Option(help="Answer from these passages: a .jsonl, .json or .csv file with text, or a .txt file."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Html = Annotated[
    Path | None, typer.Option("--html", help="Write a page that shows how the answer came about.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress and no warnings.")]


class Output(NamedTuple):
    """What a command prints and writes."""

    as_json: bool
    html: Path | None
    quiet: bool


def context_fields(settings: list[str] | None, **options: object) -> dict[str, Any]:
    """Return the fields of a context: those named by options that were used, and those named by `--set`.

    Raises:
        BadInput: a `--set` has no value.
    """
    values: dict[str, Any] = {name: value for name, value in options.items() if value}
    for setting in settings or []:
        name, equals, text = setting.partition("=")
        if not equals:
            raise BadInput(f"--set {setting!r} has no value; write --set field=value")
        value: Any = text
        if text.startswith(("{", "[")) or text in {"null", "true", "false"}:
            try:
                value = json.loads(text)
            except ValueError:
                value = text  # the context says what is wrong with it
        values[name.strip()] = value
    return values


def check_writable(file: Path) -> None:
    """Open a file for writing, before any work is done; one that is not there is not left behind.

    Raises:
        BadInput: it cannot be written.
    """
    try:
        is_new = not file.exists()
        with file.open("ab"):
            pass
        if is_new:
            file.unlink()
    except FileNotFoundError as error:
        raise BadInput(
            f"{file} cannot be written: there is no folder {file.parent}; create it first"
        ) from error
    except (OSError, ValueError) as error:  # ValueError: the name holds a NUL
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"{file} cannot be written: {reason}; name a file") from error


@contextmanager
def reported() -> Generator[None]:
    """End a command with one line on stderr and an exit status instead of a traceback.

    The status is 2 for bad input, 130 for Ctrl-C, and 1 for any other failure.
    """
    try:
        yield
    except (typer.Exit, typer.Abort):
        raise
    except KeyboardInterrupt as error:
        raise typer.Exit(130) from error
    except BrokenPipeError as error:
        raise typer.Exit(1) from error
    except StepcraftError as error:
        complain(str(error))
        raise typer.Exit(2 if isinstance(error, BadInput) else 1) from error
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _PATH_ERRORS and error.filename:
            complain(
                f"{one_line(str(error.filename))[:200]} cannot be used: {error.strerror}; name another path"
            )
            raise typer.Exit(2) from error
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            complain("the output cannot be written: no space is left; make room, or write it elsewhere")
            raise typer.Exit(1) from error
        complain(f"unexpected error: {type(error).__name__}: {one_line(str(error))[:500]}")
        raise typer.Exit(1) from error
