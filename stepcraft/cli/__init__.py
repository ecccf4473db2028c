"""The command line. What is heavy is imported by the command that needs it."""

import io
import sys
from typing import Annotated

import typer

from stepcraft.cli.errors import reported
from stepcraft.cli.graphs import draw, graphs, run
from stepcraft.cli.memory import memory_app
from stepcraft.cli.options import (
    AsJson,
    Beside,
    Html,
    Kind,
    Memory,
    Model,
    Passages,
    Quiet,
    Settings,
    Sources,
    Using,
    values_of,
)
from stepcraft.cli.source import source_app

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
    using: Using = "",
    memory: Memory = None,
    sources: Beside = None,
    model: Model = None,
    settings: Settings = None,
    as_json: AsJson = False,
    html: Html = None,
    quiet: Quiet = False,
) -> None:
    """Write a procedure for a goal, by analogy with remembered procedures."""
    with reported():
        from stepcraft.cli.answer import answer
        from stepcraft.graphs.aag import AagContext

        beside = {"retriever": sources, "answer_from": "memory+source" if sources else None}
        context = AagContext.named(values_of(settings, model=model, memory=memory, **beside))
        given = {"question": goal, "resources": using}
        answer("aag", given, context, as_json=as_json, html=html, quiet=quiet)


@app.command()
def rat(
    question: Annotated[str, typer.Argument(help="What is to be answered.")],
    sources: Sources = None,
    finish: Annotated[
        str | None, typer.Option(help="What is made of the thoughts: answer, thoughts, article or code.")
    ] = None,
    model: Model = None,
    settings: Settings = None,
    show_changes: Annotated[
        bool, typer.Option("--show-changes", help="Print what each revision changed, and its sources.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 where a thought could not be checked.")
    ] = False,
    as_json: AsJson = False,
    html: Html = None,
    quiet: Quiet = False,
) -> None:
    """Answer a question, each thought of the answer checked against sources."""
    with reported():
        from stepcraft.cli.answer import answer, check_all_thoughts
        from stepcraft.graphs.rat import RatContext

        context = RatContext.named(values_of(settings, model=model, retriever=sources, finish=finish))
        result = answer(
            "rat",
            {"question": question},
            context,
            as_json=as_json,
            html=html,
            quiet=quiet,
            show_changes=show_changes,
        )
        if strict:
            check_all_thoughts(result)


@app.command()
def rpg(
    question: Annotated[str, typer.Argument(help="What is to be answered.")],
    sources: Sources = None,
    kind: Kind = None,
    passages: Passages = None,
    citations: Annotated[
        str | None, typer.Option(help='With "inline" each sentence cites its evidence: [1].')
    ] = None,
    model: Model = None,
    settings: Settings = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 where a segment rests on no evidence.")
    ] = False,
    as_json: AsJson = False,
    html: Html = None,
    quiet: Quiet = False,
) -> None:
    """Answer a question in segments, each planned and written from sentences chosen for it."""
    with reported():
        from stepcraft.cli.answer import answer, check_all_segments
        from stepcraft.cli.passages import given_from
        from stepcraft.graphs.rpg import RpgContext

        named = values_of(settings, model=model, retriever=sources, citations=citations)
        given = {"question": question, **given_from(passages, sources), **({"kind": kind} if kind else {})}
        result = answer("rpg", given, RpgContext.named(named), as_json=as_json, html=html, quiet=quiet)
        if strict:
            check_all_segments(result)


app.command()(run)
app.command()(graphs)
app.command()(draw)
