"""A client of a deployed server: the steps of each graph as they happen, then its answer.

Start the server with `langgraph dev --no-browser` and run `python examples/client.py`, with `--url` for another one and
with names of graphs for some of them: `python examples/client.py --url http://127.0.0.1:2024 rat rpg`.
"""

import argparse
import asyncio
from typing import Any

from langgraph_sdk import get_client

QUESTION = "How does an agent remember its users?"


def told(event: str, data: Any) -> str:
    """A line about a part of the stream, "" for none: the text of a progress event, else the node that finished."""
    if event.startswith("custom"):
        return data.get("text", "") if data.get("type") == "progress" else ""
    return ", ".join(data) if event.startswith("updates") else ""


async def main(url: str, names: list[str], question: str) -> None:
    """Run the graphs one after the other, or all that the server has."""
    async with get_client(url=url) as client:
        if not names:
            assistants = await client.assistants.search(limit=100)
            names = sorted({assistant["graph_id"] for assistant in assistants})
        for name in names:
            print(f"\n== {name}")
            answer = ""
            async for part in client.runs.stream(
                None,
                name,
                input={"question": question},
                stream_mode=["updates", "custom", "values"],
                stream_subgraphs=True,
            ):
                if part.event == "error":
                    print(f"   failed: {part.data}")
                elif part.event == "values":
                    answer = part.data.get("answer", "")
                elif line := told(part.event, part.data):
                    print(f"   {line}")
            print(answer)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("graphs", nargs="*", help="names of graphs; all by default")
    parser.add_argument("--url", default="http://127.0.0.1:2024")
    parser.add_argument("--question", default=QUESTION)
    given = parser.parse_args()
    asyncio.run(main(given.url, given.graphs, given.question))
