"""`stepcraft graphs`, `run` and `draw`: every graph by its name."""

from pathlib import Path
from typing import Annotated, Any

import typer

from stepcraft.cli.errors import reported
from stepcraft.cli.options import (
    AsJson,
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

Name = Annotated[str, typer.Argument(metavar="GRAPH", help="Which graph; `stepcraft graphs` lists them.")]


def graphs() -> None:
    """List the graphs, a line each."""
    from stepcraft.graphs.registry import GRAPHS

    for name, listed in GRAPHS.items():
        typer.echo(f"{name:<9} {listed.line}")


def draw(
    graph: Name,
    xray: Annotated[bool, typer.Option("--xray", help="Draw what is inside of subgraphs, too.")] = False,
) -> None:
    """Print a graph as a Mermaid diagram."""
    with reported():
        from stepcraft.cli.run import drawn

        typer.echo(drawn(graph, xray=xray))


def run(
    graph: Name,
    question: Annotated[str, typer.Argument(help="What is to be answered, or reached.")],
    sources: Sources = None,
    memory: Memory = None,
    using: Using = "",
    kind: Kind = None,
    passages: Passages = None,
    model: Model = None,
    settings: Settings = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 where a part of the work was not done.")
    ] = False,
    as_json: AsJson = False,
    html: Html = None,
    quiet: Quiet = False,
) -> None:
    """Run any graph: a method, or a baseline to compare it with."""
    with reported():
        from stepcraft.cli.answer import answer, check_all
        from stepcraft.graphs.registry import context_of

        named = _known(graph, {"retriever": ("--from", sources), "memory": ("--memory", memory)})
        context = context_of(graph).named(values_of(settings, model=model, **named))
        given = {"question": question, **_input(graph, sources, using, kind, passages)}
        result = answer(graph, given, context, as_json=as_json, html=html, quiet=quiet)
        if strict:
            check_all(result)


def _known(graph: str, options: dict[str, tuple[str, Any]]) -> dict[str, Any]:
    """The options that were used, as fields of the graph's context.

    Raises:
        BadInput: the graph has no such field.
    """
    from stepcraft.errors import BadInput
    from stepcraft.graphs.registry import context_of

    fields = context_of(graph).__dataclass_fields__
    for field, (option, value) in options.items():
        if value and field not in fields:
            raise BadInput(f"{graph} takes no {option}, for it searches nothing of that kind; leave it out")
    if options["retriever"][1] and "answer_from" in fields:
        options["answer_from"] = ("", "memory+source")
    return {field: value for field, (_, value) in options.items() if value}


def _input(
    graph: str, sources: list[str] | None, using: str, kind: str | None, passages: Path | None
) -> dict[str, Any]:
    """What of a run's input is named beside the question.

    Raises:
        BadInput: the graph takes no such input, or the passages cannot be read.
    """
    from stepcraft.cli.passages import given_from
    from stepcraft.errors import BadInput
    from stepcraft.graphs.registry import inputs_of

    named = {"resources": using, "kind": kind, **given_from(passages, sources)}
    given = {name: value for name, value in named.items() if value}
    taken = inputs_of(graph)
    for name in given:
        if name not in taken:
            option = {"resources": "--using"}.get(name, f"--{name}")
            raise BadInput(f"{graph} takes no {option}; leave it out")
    return given
