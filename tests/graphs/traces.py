"""The trace of every graph as LangSmith receives it; `python -m tests.graphs.traces` prints the trees."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from langchain_core.tracers import LangChainTracer
from langsmith import Client

from stepcraft.graphs.registry import GRAPHS, get_graph
from tests.servers.langsmith_server import LangSmithServer, Record, metadata

GIVEN = {
    "question": "How does a LangGraph agent keep what it learned with a Store from one thread to the next?"
}
TREES = {
    text.splitlines()[0]: text
    for text in Path(__file__).with_name("traces.txt").read_text("utf-8").strip().split("\n\n")
}
"""The tree of every graph with the keyless model."""
LABEL = "stepcraft_"


@contextmanager
def tracer(server: LangSmithServer, **options: Any) -> Iterator[LangChainTracer]:
    """A tracer whose runs the server has at the end; the options are those of the client."""
    client = Client(server.url, api_key="lsv2_pt_opensesame", **options)
    made = LangChainTracer(client=client)
    yield made
    client.flush()
    # Flushing misses a batch that is just being handed to a thread.
    server.wait(lambda: all(server.kept["runs"].get(str(id_), {}).get("end_time") for id_ in made.order_map))
    client.cleanup()


def labels(run: Record) -> dict[str, Any]:
    """What Stepcraft says of a run in its metadata."""
    found = metadata(run)
    return {name.removeprefix(LABEL): found[name] for name in sorted(found) if name.startswith(LABEL)}


def main() -> None:
    """Run every graph with the keyless model and print its labels and its tree."""
    with LangSmithServer() as server, tracer(server) as traced:
        for name in GRAPHS:
            get_graph(name).invoke(GIVEN, {"callbacks": [traced]})
    for root in server.roots:
        print(labels(root), server.tree(root), sep="\n", end="\n\n")  # noqa: T201 - what it is for


if __name__ == "__main__":
    main()
