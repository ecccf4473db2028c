"""The command line. Each command imports what it needs when it runs, so that `--help` stays quick."""

import io
import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from stepcraft.cli.building import build
from stepcraft.cli.check import check
from stepcraft.cli.dedupe import dedupe
from stepcraft.cli.doctor import doctor
from stepcraft.cli.evals import eval_app
from stepcraft.cli.learning import history, rate, restore
from stepcraft.cli.memory import memory_app
from stepcraft.cli.options import (
    AsJson,
    Graph,
    Html,
    Kind,
    Memory,
    Model,
    Output,
    Passages,
    Question,
    Quiet,
    SecondSources,
    Settings,
    Sources,
    Using,
    context_fields,
    reported,
)
from stepcraft.cli.output import say
from stepcraft.cli.server import server_app
from stepcraft.cli.source import source_app
from stepcraft.errors import BadInput

app = typer.Typer(
    help="Long answers made correct by working on them step by step.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
memory_app.command()(build)
memory_app.command()(check)
memory_app.command(context_settings={"ignore_unknown_options": True})(rate)  # so that -1 is a vote
memory_app.command()(history)
memory_app.command()(restore)
app.add_typer(memory_app, name="memory")
app.add_typer(source_app, name="source")
app.add_typer(eval_app, name="eval")
app.add_typer(server_app, name="server")
app.command()(doctor)
memory_app.command()(dedupe)


def main() -> None:
    """Run the command line. Characters that the terminal's encoding lacks are replaced."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    logging.lastResort = _LogLines(logging.WARNING)
    try:
        with reported():  # the help, too, may not find room
            app()
    except typer.Exit as end:
        sys.exit(end.exit_code)
    finally:
        _drop_unwritten()


def _drop_unwritten() -> None:
    """Drop what cannot be written, so that Python does not try it again at its end and complain."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream:
                stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class _LogLines(logging.Handler):
    """Prints what libraries log where nobody has configured logging, such as a message of a server."""

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage(), err=True)


def _version(wanted: bool) -> None:  # noqa: FBT001 - the callback of a flag
    if wanted:
        from importlib.metadata import version

        say(version("stepcraft"))
        raise typer.Exit


@app.callback()
@reported()
def options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Long answers made correct by working on them step by step."""
    # A console script does not look for modules in the working directory. Installed ones come first.
    try:
        here = str(Path.cwd())
    except FileNotFoundError as error:
        raise BadInput("the working directory is no longer there; change to another one") from error
    if here not in sys.path:
        sys.path.append(here)


@app.command()
@reported()
def aag(
    goal: Annotated[str, typer.Argument(help="The goal to reach.")],
    using: Using = "",
    memory: Memory = None,
    sources: SecondSources = None,
    model: Model = None,
    settings: Settings = None,
    review: Annotated[
        bool,
        typer.Option("--review", help="Ask you to accept, edit or reject the steps before they are final."),
    ] = False,
    remember: Annotated[
        bool, typer.Option("--remember", help="Add the steps to the memory once you approved them.")
    ] = False,
    as_json: AsJson = False,
    html: Html = None,
    quiet: Quiet = False,
) -> None:
    """Write a procedure for a goal, by analogy with procedures of a memory."""
    from stepcraft.cli.run import answer

    fields = context_fields(settings, model=model, review=review, remember=remember)
    output = Output(as_json, html, quiet)
    answer("aag", goal, fields, output, sources=sources, memory=memory, inputs={"resources": using})


@app.command()
@reported()
def rat(
    question: Annotated[str, typer.Argument(help="The question to answer.")],
    sources: Sources = None,
    finish: Annotated[
        str | None, typer.Option(help="The form of the answer: answer, thoughts, article or code.")
    ] = None,
    model: Model = None,
    settings: Settings = None,
    show_changes: Annotated[
        bool, typer.Option("--show-changes", help="Print what each revision changed, and its sources.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if a thought could not be checked.")
    ] = False,
    as_json: AsJson = False,
    html: Html = None,
    quiet: Quiet = False,
) -> None:
    """Answer a question, each thought of the answer checked against sources."""
    from stepcraft.cli.run import answer, check_strict

    fields, output = context_fields(settings, model=model, finish=finish), Output(as_json, html, quiet)
    result = answer("rat", question, fields, output, sources=sources, show_changes=show_changes)
    if strict:
        check_strict(result)


@app.command()
@reported()
def rpg(
    question: Annotated[str, typer.Argument(help="The question to answer.")],
    sources: Sources = None,
    kind: Kind = None,
    passages: Passages = None,
    citations: Annotated[
        str | None, typer.Option(help='With "inline" each sentence cites its evidence: [1].')
    ] = None,
    model: Model = None,
    settings: Settings = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if a segment was written without evidence.")
    ] = False,
    as_json: AsJson = False,
    html: Html = None,
    quiet: Quiet = False,
) -> None:
    """Answer a question in segments, each planned and written from sentences chosen for it."""
    from stepcraft.cli.run import answer, check_strict

    fields, output = context_fields(settings, model=model, citations=citations), Output(as_json, html, quiet)
    inputs = {"kind": kind}
    result = answer("rpg", question, fields, output, sources=sources, inputs=inputs, passages=passages)
    if strict:
        check_strict(result)


@app.command()
@reported()
def run(
    graph: Graph,
    question: Question,
    sources: Sources = None,
    memory: Memory = None,
    using: Using = "",
    kind: Kind = None,
    passages: Passages = None,
    model: Model = None,
    settings: Settings = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 if a part of the work was not done.")
    ] = False,
    as_json: AsJson = False,
    html: Html = None,
    quiet: Quiet = False,
) -> None:
    """Run any graph: a method, a baseline to compare it with, or the chat, which picks one."""
    from stepcraft.cli.run import answer, check_strict

    result = answer(
        graph,
        question,
        context_fields(settings, model=model),
        Output(as_json, html, quiet),
        sources=sources,
        memory=memory,
        inputs={"resources": using, "kind": kind},
        passages=passages,
    )
    if strict:
        check_strict(result, warnings=True)


@app.command()
@reported()
def graphs() -> None:
    """List the graphs, one per line."""
    from stepcraft.graphs.registry import CHAT, GRAPHS

    for name, listed in {**GRAPHS, **CHAT}.items():
        say(f"{name:<9} {'baseline, ' if listed.is_baseline else ''}{listed.line}")


@app.command()
@reported()
def draw(
    graph: Graph,
    xray: Annotated[bool, typer.Option("--xray", help="Draw the nodes of subgraphs, too.")] = False,
) -> None:
    """Print a graph as a Mermaid diagram."""
    from stepcraft.graphs.drawing import drawing
    from stepcraft.graphs.registry import get_graph

    say(drawing(get_graph(graph), xray=xray))
