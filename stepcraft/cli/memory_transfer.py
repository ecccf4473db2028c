"""`stepcraft memory copy` and `check`: between memories, and against a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stepcraft.cli.errors import reported
from stepcraft.cli.memory_io import headline, mapping, opened, print_json, tell
from stepcraft.errors import AddStopped, BadInput

if TYPE_CHECKING:
    from stepcraft.memory.procedure import Procedure
    from stepcraft.memory.transfer import Comparison


def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The memory to read.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The memory to fill, made when missing.")],
    embeddings: Annotated[
        str | None, typer.Option("--embeddings", help="What the memory to fill is searched with.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Copy all procedures of a memory to another; run again after it was broken off, it does the rest.

    Vectors go along where both were made with the same embeddings and template.
    """
    with reported():
        from stepcraft.cli.progress import counting
        from stepcraft.memory.transfer import copy as copy_all

        with (
            opened(source, "none") as read,
            opened(target, embeddings, create=True) as filled,
            counting("procedures copied") as count,
        ):
            try:
                report, stop = copy_all(read, filled, progress=count), None
            except AddStopped as error:
                report, stop = error.report, error
        tell(report, as_json=as_json, stop=stop)


def check(
    memory: Annotated[str, typer.Argument(help="The memory to compare.")],
    file: Annotated[Path, typer.Argument(help="A JSONL, JSON or CSV file of what it should hold.")],
    fields: Annotated[str, typer.Option("--map", help="What fields are called, as for import.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Tell what is missing from a memory, extra in it, or different; exit status 1 if anything is."""
    with reported():
        from stepcraft.memory.transfer import compare

        wanted = _procedures(file, mapping(fields))
        with opened(memory, "none") as kept:
            found = compare(kept, wanted)
        _show(found, as_json=as_json)
        if not found.equal:
            raise typer.Exit(1)


def _procedures(file: Path, names: dict[str, str]) -> "list[Procedure]":
    from stepcraft.errors import Failed
    from stepcraft.memory.files import read_procedures

    outcomes = [outcome for _, outcome in read_procedures(file, fields=names)]
    for failed in outcomes:
        if isinstance(failed, Failed):
            raise BadInput(f"{failed.where}: {failed.reason}; nothing was compared")
    return [outcome for outcome in outcomes if not isinstance(outcome, Failed)]


def _show(found: "Comparison", *, as_json: bool) -> None:
    groups = {"missing": found.missing, "extra": found.extra, "different": found.different}
    if as_json:
        print_json(
            {"same": found.same, **{name: [item.id for item in group] for name, group in groups.items()}}
        )
        return
    for name, group in groups.items():
        for item in group:
            typer.echo(f"{name:9}  {headline(item)}")
    counts = ", ".join(f"{len(group)} {name}" for name, group in groups.items())
    typer.echo(f"{found.same} the same, {counts}")
