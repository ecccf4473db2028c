"""RPG answers from what the search tool of an MCP server finds.

Run with `python examples/mcp_source.py "How long is a refund?"` and langchain-mcp-adapters, which
need an older package `mcp` than `stepcraft[mcp]`: take an environment without that extra. The
server is this program itself, started with `serve`.
"""

import asyncio
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient
from mcp.server.fastmcp import FastMCP

from stepcraft import build_rpg

ANSWERS = ["A refund takes five working days.", "Invoices are sent on the first of a month."]


def serve() -> None:
    """Serve a search tool on stdio."""
    server = FastMCP("desk", log_level="WARNING")

    @server.tool()
    def search(query: str) -> list[str]:
        """Search the answers of the service desk."""
        return [text for text in ANSWERS if set(query.lower().split()) & set(text.lower().split())]

    server.run()


async def main(question: str) -> None:
    """Print the answer."""
    desk = {"transport": "stdio", "command": sys.executable, "args": [__file__, "serve"]}
    [search] = await MultiServerMCPClient({"desk": desk}).get_tools()
    print((await build_rpg(sources={"desk": search}).ainvoke({"question": question}))["answer"])


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else asyncio.run(main(" ".join(sys.argv[1:])))
