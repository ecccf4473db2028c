"""`stepcraft doctor`: what is set up here, whether it works, and what to do about it."""

from typing import Annotated

import typer

from stepcraft.cli.options import AsJson, reported
from stepcraft.cli.output import one_line, print_json, say
from stepcraft.errors import BadInput

CHECKS = (
    "python",
    "packages",
    "settings",
    "model",
    "embeddings",
    "memory",
    "source",
    "tracing",
    "server",
    "sandbox",
    "allow",
    "access",
)
"""The checks, in the order in which their findings are printed."""


@reported()
def doctor(
    checks: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CHECK]...", help=f"By default all: {', '.join(CHECKS)}."),
    ] = None,
    as_json: AsJson = False,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.1, help="How many seconds the checks may take, side by side.")
    ] = 7,
) -> None:
    """Check what is set up here: each is ok, missing (nothing is set up) or wrong (it is, and does not work).

    A named model is asked for one token. The exit status is 1 if something is wrong.
    """
    names = list(dict.fromkeys(checks or CHECKS))
    if unknown := [name for name in names if name not in CHECKS]:
        raise BadInput(f"there is no check {unknown[0]!r}; there are {', '.join(CHECKS)}")
    from stepcraft.cli.doctor._examine import examine

    findings = examine(names, timeout)
    counts = {state: sum(one.state == state for one in findings) for state in ("ok", "missing", "wrong")}
    if as_json:
        print_json({"ok": not counts["wrong"], "checks": [vars(one) for one in findings]})
    else:
        for one in findings:
            say(f"{one.state:<8} {one.check:<11} {one_line(one.found)}")
            if one.advice:
                say(f"{'':<20} -> {one_line(one.advice)}")
        say(", ".join(f"{count} {state}" for state, count in counts.items()))
    if counts["wrong"]:
        raise typer.Exit(1)
