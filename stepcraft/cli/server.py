"""`stepcraft server`: what a deployment needs beside the graphs."""

import json
from typing import Annotated

import typer

from stepcraft.cli.options import reported
from stepcraft.cli.output import say, say_key

server_app = typer.Typer(help="Prepare a LangGraph server.", no_args_is_help=True, rich_markup_mode=None)


@server_app.callback()
def server() -> None:
    """Prepare a LangGraph server."""


@server_app.command()
@reported()
def key(user: Annotated[str, typer.Argument(help="Who gets the key.")]) -> None:
    """Print a new API key, and the lines for the file of users. The key is stored nowhere."""
    from stepcraft.server.credentials import new_key

    made, hashed = new_key()
    say_key(made)
    say(f"\n[users.{json.dumps(user, ensure_ascii=False)}]\nkeys = [{json.dumps(hashed)}]")
    say("\nThe key is shown this once. Its hash belongs into the file that STEPCRAFT_ACCESS names.", err=True)
