"""`stepcraft server` and `stepcraft mcp`: serve the graphs to others."""

import json
import os
from typing import Annotated

from typer import Argument, Option, Typer
from typing_extensions import Unpack

from stepcraft.cli.options import SearchOptions, builder_options, search_fields, unpacked
from stepcraft.cli.output import note, say

server_app = Typer(help="Prepare a LangGraph server.", no_args_is_help=True, rich_markup_mode=None)


@server_app.callback()
def server() -> None:
    """Prepare a LangGraph server."""


@server_app.command()
def key(user: Annotated[str, Argument(help="The user who gets the key.")]) -> None:
    """Print a new API key, and its entry for the users file. The key is not stored."""
    from stepcraft.server.users import new_key

    secret, digest = new_key()
    name = json.dumps(user, ensure_ascii=False)
    say(f"{secret}\n\n[users.{name}]\nkeys = [{json.dumps(digest)}]")
    note("The key is shown only once. Add its hash to the file that STEPCRAFT_ACCESS names.")


@unpacked
def mcp(
    http: Annotated[bool, Option("--http", help="Serve over HTTP instead of stdio.")] = False,
    port: Annotated[int, Option(help="The port of --http.")] = 8000,
    **options: Unpack[SearchOptions],
) -> None:
    """Serve aag, rat, rpg and the memory tools to clients of the Model Context Protocol."""
    from stepcraft.graphs.memory_tools import memory_tools
    from stepcraft.graphs.registry import get_graph
    from stepcraft.memory.open import MEMORY_VARIABLE
    from stepcraft.server.mcp import ARGUMENTS, build_mcp_server

    fields = search_fields(options)
    graphs = {name: get_graph(name, **builder_options(name, fields)) for name in ARGUMENTS}
    # The client asks its user before it calls a tool, so nothing is left to approve.
    memory = options["memory"] or os.environ.get(MEMORY_VARIABLE, "")
    tools = memory_tools(memory, approve=False, embeddings=options["embeddings"])
    mcp_server = build_mcp_server(graphs, tools)
    if http:
        note(f"http://127.0.0.1:{port}/mcp")
        mcp_server.run("streamable-http", port=port)
    else:
        mcp_server.run("stdio")
