"""A client of a deployed server: what each graph is doing, then its answer.

Start a server with `langgraph dev --no-browser`, then run
`python examples/client.py http://127.0.0.1:2024 rat rpg`; without names it runs all graphs.
"""

import asyncio
import sys

from langgraph_sdk import get_client

QUESTION = "How does an agent remember its users?"


async def main(url: str, *graphs: str, question: str = QUESTION) -> None:
    """Run the graphs one after the other."""
    async with get_client(url=url) as client:
        if not graphs:
            assistants = await client.assistants.search(limit=100)
            graphs = tuple(sorted({assistant["graph_id"] for assistant in assistants}))
        for graph in graphs:
            print(f"\n== {graph}")
            answer = ""
            async for event in client.runs.stream(
                None, graph, input={"question": question}, stream_mode=["custom", "values"]
            ):
                if event.event == "error":
                    print(f"failed: {event.data}")
                elif event.event == "values":
                    answer = event.data.get("answer", "")
                elif event.event == "custom" and event.data["type"] == "progress":
                    print(f"   {event.data['text']}")
            print(answer)


if __name__ == "__main__":
    asyncio.run(main(*(sys.argv[1:] or ["http://127.0.0.1:2024"])))
