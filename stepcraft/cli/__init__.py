"""The command line. What is heavy is imported by the command that needs it."""

import io
import json
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from stepcraft.cli.errors import reported
from stepcraft.cli.memory import memory_app
from stepcraft.cli.source import source_app

if TYPE_CHECKING:
    from stepcraft.graphs.aag import AagContext

app = typer.Typer(
    help="Long answers made correct by working on them step by step.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(memory_app, name="memory")
app.add_typer(source_app, name="source")


def main() -> None:
    """The entry point of the console script. What a terminal cannot show costs the character, not the answer."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    app()


def _version(wanted: bool) -> None:  # noqa: FBT001 - the callback of a flag
    if wanted:
        from importlib.metadata import version

        typer.echo(version("stepcraft"))
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Long answers made correct by working on them step by step."""


@app.command()
def aag(
    goal: Annotated[str, typer.Argument(help="What is to be reached.")],
    using: Annotated[str, typer.Option("--using", help="The resources at hand, separated by commas.")] = "",
    memory: Annotated[
        str | None, typer.Option(help="The procedures to learn from: a .db, .jsonl, .csv, or a URL.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help='The chat model: "openai:gpt-5-mini", "ollama:…".')
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FIELD=VALUE", help="Any field of AagContext; may be repeated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the whole result as JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress and no warnings.")] = False,
) -> None:
    """Write a procedure for a goal, by analogy with remembered procedures."""
    with reported():
        from stepcraft.cli.run import show_result, watched

        context = _aag_context(settings or [], model=model, memory=memory)
        err = Console(stderr=True, quiet=quiet)
        result = watched(goal, using, context, err)
        if as_json:
            typer.echo(json.dumps(result, ensure_ascii=False, indent=2))
        else:
            show_result(result, Console(highlight=False), err)


@app.command()
def draw(
    graph: Annotated[str, typer.Argument(help="Which graph: aag.")],
    xray: Annotated[bool, typer.Option("--xray", help="Draw what is inside of subgraphs, too.")] = False,
) -> None:
    """Print a graph as a Mermaid diagram."""
    with reported():
        from stepcraft.cli.run import drawn

        typer.echo(drawn(graph, xray=xray))


def _aag_context(settings: list[str], **options: str | None) -> "AagContext":
    from stepcraft.errors import BadInput
    from stepcraft.graphs.aag import AagContext

    values: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise BadInput(f"--set {setting!r} has no value; write --set field=value")
        values[name.strip()] = _value(value)
    return AagContext.named(values)


def _value(text: str) -> Any:  # noqa: ANN401 - JSON
    if text.startswith(("{", "[")) or text == "null":
        try:
            return json.loads(text)
        except ValueError:
            return text
    return text
