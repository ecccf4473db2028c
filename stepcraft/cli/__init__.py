"""The command line. Commands import their modules when they run, so that `--help` is fast."""

import codecs
import io
import logging
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Exit, Option, Typer
from typing_extensions import Unpack

from stepcraft.cli.building import build, credit, dedupe, repair
from stepcraft.cli.doctor import doctor
from stepcraft.cli.evals import eval_app
from stepcraft.cli.memory import memory_app
from stepcraft.cli.options import Question, RunOptions, Using, unpacked
from stepcraft.cli.output import note, say
from stepcraft.cli.reporting import Reported, mask_traces, reported
from stepcraft.cli.server import mcp, server_app
from stepcraft.cli.source import source_app
from stepcraft.errors import BadInput
from stepcraft.secrets import without_secrets

Graph = Annotated[str, Argument(metavar="GRAPH", help="The graph; `stepcraft graphs` lists them.")]

app = Typer(
    cls=Reported,
    help="Check long answers against your sources, and correct what is wrong.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
memory_app.command()(build)
memory_app.command()(dedupe)
memory_app.command()(credit)
memory_app.command()(repair)
app.add_typer(memory_app, name="memory")
app.add_typer(source_app, name="source")
app.add_typer(eval_app, name="eval")
app.add_typer(server_app, name="server")
app.command()(mcp)
app.command()(doctor)


def main() -> None:
    """Run the command line, replacing characters that the terminal's encoding lacks."""
    lost = set[str]()

    def replaced(error: UnicodeError) -> tuple[str | bytes, int]:
        if isinstance(error, UnicodeEncodeError):
            lost.update(error.object[error.start : error.end])
        return codecs.replace_errors(error)

    codecs.register_error("stepcraft", replaced)
    for stream, errors in ((sys.stdout, "stepcraft"), (sys.stderr, "replace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)
    logging.lastResort = _LogLines(logging.WARNING)
    try:
        with reported():  # printing the help can fail too, such as on a full disk
            app()
    finally:
        with suppress(OSError):
            if lost:
                note(
                    f"the encoding of the output, {sys.stdout.encoding}, lacks {len(lost)} of its "
                    "characters, which became ?; set PYTHONIOENCODING=utf-8"
                )
        _drop_unwritten()


def _drop_unwritten() -> None:
    """Drop unwritable output, so that Python does not retry it on exit and complain."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream:
                stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


_MOST_MESSAGES = 20


class _LogLines(logging.Handler):
    """Prints what Stepcraft logs, and the first message of each library, without repetitions.

    It is used unless logging is configured.
    """

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self._messages: dict[str, set[str]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        name, message = record.name.partition(".")[0], record.getMessage()
        known = self._messages.setdefault(name, set())
        most = _MOST_MESSAGES if name == "stepcraft" else 1
        if message in known or len(known) > most:
            return
        known.add(message)
        if len(known) <= most:
            note(f"{name}: {without_secrets(message):.500}")
        elif most > 1:
            note(f"{name}: further messages are left out")


def _version(wanted: bool) -> None:  # noqa: FBT001 - the callback of a flag
    if wanted:
        from importlib.metadata import version

        say(version("stepcraft"))
        raise Exit


@app.callback()
def options(
    _version: Annotated[
        bool,
        Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Check long answers against your sources, and correct what is wrong."""
    # A console script does not look for modules in the working directory.
    try:
        here = str(Path.cwd())
    except FileNotFoundError as error:
        raise BadInput("the working directory no longer exists; change to another one") from error
    if here not in sys.path:
        sys.path.append(here)
    mask_traces()


@app.command()
@unpacked
def aag(
    goal: Annotated[str, Argument(help="The goal to reach.")],
    using: Using = "",
    review: Annotated[
        bool, Option("--review", help="Ask you to approve, edit or reject the steps.")
    ] = False,
    remember: Annotated[
        bool, Option("--remember", help="Add the steps to the memory once you approve them.")
    ] = False,
    **options: Unpack[RunOptions],
) -> None:
    """Write a procedure for a goal, by analogy with procedures in a memory."""
    from stepcraft.cli.run import run_graph

    run_graph("aag", goal, options, {"resources": using}, review=review, remember=remember)


@app.command()
@unpacked
def rat(
    question: Question,
    draft: Annotated[
        typer.FileBinaryRead | None,
        Option(help="Check the answer in this file; - for stdin."),
    ] = None,
    **options: Unpack[RunOptions],
) -> None:
    """Answer a question or check an answer, looking up each part in sources."""
    from stepcraft.cli.run import run_graph
    from stepcraft.encoding import Unreadable, decoded

    inputs: dict[str, str] = {}
    if draft:
        try:
            inputs["draft"], about = decoded(draft.read())
        except Unreadable as error:
            raise BadInput(f"{draft.name} cannot be checked: {error}; name a text file") from error
        if not inputs["draft"].strip():
            raise BadInput(f"{draft.name} is empty; write the answer to check into it")
        if about:
            note(f"{draft.name}: {about}")
    run_graph("rat", question, options, inputs)


@app.command()
@unpacked
def rpg(
    question: Question,
    kind: Annotated[str | None, Option(help="The form of the answer: auto, long or short.")] = None,
    **options: Unpack[RunOptions],
) -> None:
    """Answer a question from sources, and trace each sentence to its evidence."""
    from stepcraft.cli.run import run_graph

    run_graph("rpg", question, options, {}, kind=kind)


@app.command()
@unpacked
def run(graph: Graph, question: Question, using: Using = "", **options: Unpack[RunOptions]) -> None:
    """Run any graph by name: a method, a baseline, the chat, or one that a package adds."""
    from stepcraft.cli.run import run_graph

    run_graph(graph, question, options, {"resources": using})


@app.command()
def graphs() -> None:
    """List the graphs, one per line."""
    from stepcraft.graphs.registry import graph_info, graph_names

    for name in graph_names():
        say(f"{name:<9} {graph_info(name).sentence}")


@app.command()
def draw(
    graph: Graph,
    xray: Annotated[bool, Option("--xray", help="Also draw the nodes of subgraphs.")] = False,
) -> None:
    """Print a graph as a Mermaid diagram."""
    from stepcraft.graphs.registry import get_graph

    say(get_graph(graph).get_graph(xray=xray).draw_mermaid())
