"""`stepcraft memory check`: compare a memory with a file, or with the documents that it was built from."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stepcraft.cli.memory import FieldNames, field_names, headline, opened_memory
from stepcraft.cli.options import AsJson, reported
from stepcraft.cli.output import one_line, print_json, say
from stepcraft.errors import BadInput, Failed

if TYPE_CHECKING:
    from stepcraft.memory.procedure import Procedure


@reported()
def check(
    memory: Annotated[str, typer.Argument(help="The memory to compare.")],
    file: Annotated[
        Path | None,
        typer.Argument(help="A JSONL, JSON or CSV file with the procedures to expect.", show_default=False),
    ] = None,
    against: Annotated[
        list[str] | None,
        typer.Option(
            "--against",
            metavar="SOURCE",
            help="Documents that the memory was built from, as in `memory build`; may be repeated.",
        ),
    ] = None,
    mark: Annotated[
        bool, typer.Option("--mark", help="With --against: mark in the memory what is stale.")
    ] = False,
    fields: FieldNames = "",
    as_json: AsJson = False,
) -> None:
    """Compare a memory with a file, or with the documents that it was built from.

    The exit status is 1 if a procedure is missing, extra or different, or if its document is gone or has changed.
    """
    from stepcraft.memory.files import read_procedures
    from stepcraft.memory.transfer import compare

    if against and not file:
        _check_documents(memory, against, mark=mark, as_json=as_json)
        return
    if not file or against or mark:
        raise BadInput(
            "name either a file to compare the memory with, or --against with a source of documents"
        )
    expected: list[Procedure] = []
    for _, outcome in read_procedures(file, fields=field_names(fields)):
        if isinstance(outcome, Failed):
            raise BadInput(f"{outcome.where}: {outcome.reason}; nothing was compared")
        expected.append(outcome)
    with opened_memory(memory, "none") as opened:
        found = compare(opened, expected)
    groups = {"missing": found.missing, "extra": found.extra, "different": found.different}
    if as_json:
        ids = {name: [procedure.id for procedure in group] for name, group in groups.items()}
        print_json({"same": found.same, **ids})
    else:
        for name, group in groups.items():
            for procedure in group:
                say(f"{name:9}  {headline(procedure)}")
        counts = ", ".join(f"{len(group)} {name}" for name, group in groups.items())
        say(f"{found.same} the same, {counts}")
    if not found.equal:
        raise typer.Exit(1)


def _check_documents(memory: str, sources: list[str], *, mark: bool, as_json: bool) -> None:
    """Print the procedures whose documents are gone or have changed; exit with 1 if there are some."""
    from stepcraft.building.staleness import check_documents

    with opened_memory(memory, None if mark else "none") as opened:
        found = check_documents(opened, sources, mark=mark)
    for failed in found.failed:
        say(one_line(f"{failed.where}: {failed.reason}"), err=True)
    if as_json:
        stale = [{"id": procedure.id, "reason": reason} for procedure, reason in found.stale]
        counts = {"current": found.current, "others": found.others, "marked": found.marked}
        failures = [{"where": failed.where, "reason": failed.reason} for failed in found.failed]
        print_json({"stale": stale, **counts, "failed": failures})
    else:
        for procedure, reason in found.stale:
            say(f"stale  {headline(procedure)}: {one_line(reason)}")
        marked = f" ({found.marked:,} marked now)" if mark else ""
        say(f"{found.current:,} current, {len(found.stale):,} stale{marked}, {found.others:,} from elsewhere")
    if found.stale or found.failed:
        raise typer.Exit(1)
