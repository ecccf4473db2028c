"""What the commands of `stepcraft memory` read and print."""

import json
import sys
from typing import TYPE_CHECKING

import typer

from stepcraft.errors import AddStopped, BadInput

if TYPE_CHECKING:
    from stepcraft.errors import AddReport
    from stepcraft.memory.procedure import Procedure
    from stepcraft.memory.protocol import ProcedureMemory


def opened(url: str | None, embeddings: str | None, *, create: bool = False) -> "ProcedureMemory":
    """The memory of a URL; a missing database is made only if so told."""
    from stepcraft.memory.open import open_memory

    return open_memory(url, embeddings=embeddings, create=create)


def mapping(text: str) -> dict[str, str]:
    """What the fields of a file are called, from "output=title,steps=directions"."""
    pairs = [pair.partition("=") for pair in text.split(",") if pair.strip()]
    if any(not equals or not name.strip() for _, equals, name in pairs):
        raise BadInput(
            f"--map {text!r} is not understood; write --map output=title,input=ingredients,steps=directions"
        )
    return {field.strip(): name.strip() for field, _, name in pairs}


def from_stdin() -> "Procedure":
    """The procedure that stands as JSON on the standard input."""
    from stepcraft.memory.procedure import Procedure

    if sys.stdin.isatty():
        raise BadInput(
            "name the procedure with --output, --input and --step, or give it as JSON on the standard input"
        )
    try:
        record = json.loads(sys.stdin.buffer.read())
    except (ValueError, RecursionError) as error:
        raise BadInput(f"the standard input is not JSON: {error}") from error
    if not isinstance(record, dict):
        raise BadInput(f"the standard input must hold one JSON object, not a {type(record).__name__}")
    return Procedure.from_dict(record)  # pyright: ignore[reportUnknownArgumentType] - checked there


def by_prefix(memory: "ProcedureMemory", prefix: str) -> "Procedure":
    """The one procedure whose id starts so."""
    wanted = prefix.strip().lower()
    exact = memory.get(wanted)
    fitting = (
        [exact]
        if exact
        else [procedure for procedure in memory if wanted and procedure.id.startswith(wanted)]
    )
    if len(fitting) != 1:
        problem = "no procedure has" if not fitting else f"{len(fitting)} procedures have"
        raise BadInput(
            f"{problem} an id that starts with {prefix!r} in {memory.name}; `stepcraft memory list` shows them"
        )
    return fitting[0]


def headline(procedure: "Procedure") -> str:
    """A procedure on one line."""
    return f"{procedure.id[:8]}  {' '.join(procedure.output.split())}"


def tell(report: "AddReport", *, as_json: bool, stop: AddStopped | None = None) -> None:
    """What became of the procedures, failures and a stop on stderr; exit status 1 if there are any."""
    for failed in report.failed:
        typer.echo(f"{failed.where}: {failed.reason}", err=True)
    if as_json:
        failures = [{"where": failed.where, "reason": failed.reason} for failed in report.failed]
        counts = {"added": report.added, "present": report.present, "updated": report.updated}
        stopped = {"stopped": str(stop), "in_doubt": list(stop.in_doubt)} if stop else {}
        print_json({**counts, "failed": failures, **stopped})
    else:
        unread = f", {len(report.failed)} failed" if report.failed else ""
        typer.echo(f"{report.added} added, {report.present} already there, {report.updated} updated{unread}")
    if stop:
        typer.echo(f"stepcraft: {stop}", err=True)
    if stop or report.failed:
        raise typer.Exit(1)


def print_json(value: object) -> None:
    """Print a value as JSON."""
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))
