"""The memory in Weaviate against the raw client: `python benchmarks/weaviate_memory.py [--size 100000]`.

It starts the server that `scripts/weaviate install` built, and prints for procedures of one domain:

- import: add ÷ the raw client's batch.fixed_size(1000, concurrent_requests=2), as rates, in turns,
  with the same properties and with vectors made beforehand on both sides;
- recall@10 at alpha 1 against the exact search of a local memory, and the time of a search;
- kill: the server is killed three times while procedures are imported, and started again; a second
  import completes each, and nothing is lost or doubled.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import weaviate
from langchain_core.embeddings import Embeddings

from benchmarks.memory import procedures, queries, seconds
from stepcraft import open_memory
from stepcraft.errors import AddStopped
from stepcraft.index import embedded
from stepcraft.memory.local import LocalMemory
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.weaviate.collection import words_of
from stepcraft.models.embeddings import WordLlamaEmbedder
from tests.servers.weaviate_server import WeaviateServer

ROUNDS = 3
K = 10


class Ready(Embeddings):
    """Vectors that were made beforehand."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.vectors = {
            text: np.frombuffer(row or b"", np.float32)
            for text, row in embedded(WordLlamaEmbedder(), [*texts, "procedure"]).vectors.items()
        }
        self.words = {text: words_of(text) for text in texts}

    def embed_documents(self, texts):
        """One vector a text."""
        return [self.vectors[text] for text in texts]

    def embed_query(self, text):
        """The vector of a query."""
        return self.vectors[text]


def raw_import(server: WeaviateServer, name: str, known: list[Procedure], ready: Ready) -> None:
    """Import with the client's own batch, into a collection of the same shape.

    The words that are searched are made beforehand, too; ours makes them while it imports.
    """
    with weaviate.connect_to_local(
        port=server.port, grpc_port=server.grpc_port, skip_init_checks=True
    ) as client:
        collection = client.collections.use(name)
        with collection.batch.fixed_size(1000, concurrent_requests=2) as batch:
            for item in known:
                batch.add_object(
                    {
                        "input": item.input,
                        "output": item.output,
                        "steps": list(item.steps),
                        **ready.words[item.text()],
                    },
                    uuid=item.id,
                    vector=ready.vectors[item.text()].tolist(),
                )
        assert not collection.batch.failed_objects


def imports(server: WeaviateServer, known: list[Procedure], ready: Ready) -> tuple[float, float]:
    """Seconds of ours and of the raw client's, as medians of rounds in turns."""
    times: dict[str, list[float]] = {"Ours": [], "Raw": []}
    for number in range(ROUNDS):
        for kind in sorted(times, reverse=bool(number % 2)):
            url = server.url(f"{kind}{number}")
            with open_memory(url, embeddings=ready) as memory:
                work: Callable[[], object] = (
                    (lambda memory=memory: memory.add(known))
                    if kind == "Ours"
                    else (lambda number=number: raw_import(server, f"Raw{number}", known, ready))
                )
                times[kind].append(seconds(work))
                assert memory.count() == len(known)
    return median(times["Ours"]), median(times["Raw"])


def recall(server: WeaviateServer, known: list[Procedure]) -> str:
    """Recall@10 and the median time of a search."""
    url = server.url("Recall")
    with open_memory(url, embeddings="wordllama") as memory:
        memory.add(known)
        with LocalMemory(":memory:", embeddings="wordllama") as exact:
            exact.add(known)
            found, times = [], []
            for query in queries(known):
                start = time.perf_counter()
                hits = memory.search(query, K, alpha=1)
                times.append(time.perf_counter() - start)
                best = {hit.procedure.id for hit in exact.search(query, K, alpha=1)}
                found.append(len(best & {hit.procedure.id for hit in hits}) / K)
    return f"{np.mean(found):.3f} ({1000 * median(times):.1f} ms a search)"


def kill(server: WeaviateServer, known: list[Procedure]) -> str:
    """Kill the server in each import, start it, import again; what is there in the end."""
    lost = doubled = unfound = 0
    for number, part in enumerate((0.2, 0.5, 0.8)):

        def at(count: int, part: float = part) -> None:
            if count >= part * len(known) and server.pid:
                server.kill()

        with open_memory(server.url(f"Kill{number}"), embeddings="wordllama") as memory:
            try:
                memory.add(known, progress=at)
            except AddStopped as stop:
                print(f"  killed after {stop.done:,}", flush=True)
            server.start()
            report = memory.add(known)
            ids = [item.id for item in memory]
            lost += len({item.id for item in known} - set(ids)) + len(report.failed)
            doubled += len(ids) - len(set(ids))
            sample = known[:: len(known) // 300]
            unfound += sum(
                memory.search(item.text(), 1, alpha=1)[0].score < 0.999 for item in sample
            )
    return f"{lost} lost, {doubled} doubled, {unfound} of 900 not found by their vectors"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--import-size", type=int, default=20_000)
    options = parser.parse_args()
    known = procedures(options.size)
    some = known[: options.import_size]
    ready = Ready([item.text() for item in some])
    with tempfile.TemporaryDirectory() as folder, WeaviateServer(Path(folder)) as server:
        ours, raw = imports(server, some, ready)
        rates = f"{len(some) / ours:,.0f} over {len(some) / raw:,.0f} a second"
        print(f"import of {len(some):,} ÷ the raw client's: {raw / ours:.2f} ({rates})", flush=True)
        print(f"recall@{K} among {len(known):,}: {recall(server, known)}", flush=True)
        print(f"killed and completed: {kill(server, some)}", flush=True)


if __name__ == "__main__":
    main()
