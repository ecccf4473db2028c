"""The memory in Weaviate against the raw client: `python benchmarks/memory.py --weaviate [--sizes 1000] [--million]`.

It starts the server that `scripts/weaviate install` built. Each figure is a ratio within one run, on the same
procedures (of `benchmarks/memory.py`) in collections of the same shape:

- import: add ÷ the raw client's batch.fixed_size(1000, concurrent_requests=2) with vectors made beforehand
  ("ready": the memory too finds its vectors made; "whole": it embeds with wordllama), as rates, in turns, the median;
- search at alpha 1 ÷ raw near_vector, hybrid ÷ raw hybrid: p50 and p99, in turns, the query's vector made beforehand;
- 8 threads and 64 asyncio tasks: searches a second ÷ the raw client's (threads), 8 each;
- iterate ÷ the raw iterator, as rates;
- recall@10 at alpha 1 against the exact search of a local memory;
- by how many MB the peak of resident memory grows in an import, in a process of its own.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import weaviate
from langchain_core.embeddings import Embeddings
from weaviate.classes.query import MetadataQuery

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.memory import own_peak, procedures, queries, seconds
from stepcraft.index import embedded
from stepcraft.memory.local import LocalMemory
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.store import open_memory
from stepcraft.models.embeddings import WordLlamaEmbedder
from tests.servers.weaviate_server import WeaviateServer

K = 10
ROUNDS = 400


class Ready(Embeddings):
    """Vectors that were made beforehand."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.vectors = {
            text: np.frombuffer(row or b"", np.float32)
            for text, row in embedded(WordLlamaEmbedder(), [*texts, "procedure"]).items()
        }

    def embed_documents(self, texts):
        """One vector a text."""
        return [self.vectors[text] for text in texts]

    def embed_query(self, text):
        """The vector of a query."""
        return self.vectors[text]


def raw_import(client, name: str, known: list[Procedure], ready: Ready) -> None:
    """What a user of the client alone would write."""
    collection, now = client.collections.use(name), datetime.now(UTC)
    with collection.batch.fixed_size(1000, concurrent_requests=2) as batch:
        for item in known:
            fields = {
                "input": item.input,
                "output": item.output,
                "steps": list(item.steps),
                "source": "",
                "metadata": "{}",
                "created": now,
            }
            batch.add_object(fields, uuid=item.id, vector=ready.vectors[item.text()].tolist())
    assert not collection.batch.failed_objects


def in_turns(
    ours: Callable[[str], object], raw: Callable[[str], object], asked: list[str]
) -> tuple[float, float, float]:
    """p50 in ms of ours, and the ratios of p50 and p99."""
    times = [(seconds(lambda q=q: ours(q)), seconds(lambda q=q: raw(q))) for q in (asked * ROUNDS)[:ROUNDS]]
    mine, plain = np.array(times).T
    at = [np.percentile(mine, p) / np.percentile(plain, p) for p in (50, 99)]
    return 1000 * float(np.median(mine)), float(at[0]), float(at[1])


def rate(search: Callable[[str], object], asked: list[str]) -> float:
    """Searches a second by 8 threads."""
    many = asked * 40
    with ThreadPoolExecutor(8) as pool:
        return len(many) / seconds(lambda: list(pool.map(search, many)))


def task_rate(search: Callable[[str], object], asked: list[str]) -> float:
    """Searches a second by 64 tasks on one event loop, off the loop in threads."""
    many = iter(asked * 40)

    async def work() -> None:
        for query in many:
            await asyncio.to_thread(search, query)

    async def tasks() -> None:
        await asyncio.gather(*(work() for _ in range(64)))

    return 40 * len(asked) / seconds(lambda: asyncio.run(tasks()))


@contextmanager
def connected(server: WeaviateServer) -> Iterator[weaviate.WeaviateClient]:
    """The raw client."""
    with weaviate.connect_to_local(
        "127.0.0.1", server.port, server.grpc_port, skip_init_checks=True
    ) as client:
        yield client


def measure(size: int, server: WeaviateServer, client: weaviate.WeaviateClient) -> dict[str, float]:
    """All figures at one size."""
    known, figures = procedures(size), {}
    asked = queries(known)
    ready = Ready([*(item.text() for item in known), *asked])
    figures |= imports(size, server, client, known, ready)
    figures["import MB"] = own_peak(size, server.url(f"Peak{size}"))
    ours = f"Ready{size}"
    memory = open_memory(server.url(ours), embeddings=ready)
    figures |= searches(memory, client.collections.use(ours), ready, asked)
    turns = [
        (
            seconds(lambda: sum(1 for _ in client.collections.use(ours).iterator())),
            seconds(lambda: sum(1 for _ in memory)),
        )
        for _ in range(5)
    ]
    figures["iterate"] = float(np.median([raw / mine for raw, mine in turns]))
    with LocalMemory(":memory:", embeddings=ready) as exact:
        exact.add(known)
        figures["recall@10"] = float(np.mean([same(memory, exact, query) for query in asked]))
    memory.close()
    return figures


def imports(
    size: int, server: WeaviateServer, client: weaviate.WeaviateClient, known: list[Procedure], ready: Ready
) -> dict[str, float]:
    """The figures of imports into fresh collections, forwards and backwards; one with ready vectors is left."""
    taken: dict[str, list[float]] = {"Plain": [], "Ready": [], "Whole": []}
    for turn in range(5 if size <= 1000 else 3 if size <= 10_000 else 1):
        for kind in sorted(taken, reverse=bool(turn % 2)):
            name = f"{kind}{size}"
            client.collections.delete(name)
            with open_memory(
                server.url(name), embeddings="wordllama" if kind == "Whole" else ready
            ) as memory:
                memory.search("warm up", alpha=1 if kind == "Whole" else 0)
                add = (
                    partial(raw_import, client, name, known, ready)
                    if kind == "Plain"
                    else partial(memory.add, known)
                )
                taken[kind].append(seconds(add))
    raw = np.array(taken["Plain"])
    return {
        "raw import/s": size / float(np.median(raw)),
        "import ready": float(np.median(raw / taken["Ready"])),
        "import whole": float(np.median(raw / taken["Whole"])),
    }


def searches(memory, collection, ready: Ready, asked: list[str]) -> dict[str, float]:
    """The figures of searches."""
    wanted = MetadataQuery(distance=True, score=True)

    def near(query: str) -> object:
        return collection.query.near_vector(ready.vectors[query].tolist(), limit=K, return_metadata=wanted)

    def hybrid(query: str) -> object:
        vector = ready.vectors[query].tolist()
        return collection.query.hybrid(
            query,
            vector=vector,
            alpha=0.4,
            limit=K,
            return_metadata=wanted,
            query_properties=["input", "output", "steps"],
        )

    def ours(query: str) -> object:
        return memory.search(query, K, alpha=1)

    found = dict(zip(("search ms", "search p50", "search p99"), in_turns(ours, near, asked), strict=True))
    mixed = in_turns(lambda query: memory.search(query, K, alpha=0.4), hybrid, asked)
    found |= dict(zip(("hybrid ms", "hybrid p50", "hybrid p99"), mixed, strict=True))
    plain = rate(near, asked)
    return found | {"8 threads": rate(ours, asked) / plain, "64 tasks": task_rate(ours, asked) / plain}


def same(memory, exact, query: str) -> float:
    """The share of the exact best that were found."""
    ours, theirs = ({hit.procedure.id for hit in each.search(query, K, alpha=1)} for each in (memory, exact))
    return len(ours & theirs) / K


def table(sizes: list[int]) -> None:
    """Print the figures of each size."""
    with (
        tempfile.TemporaryDirectory() as folder,
        WeaviateServer(Path(folder)) as server,
        connected(server) as client,
    ):
        for size in sizes:
            start = time.monotonic()
            figures = measure(size, server, client)
            print(f"{size:,} procedures ({time.monotonic() - start:.0f} s)")
            print("".join(f"  {name:13} {value:10.3f}\n" for name, value in figures.items()), flush=True)
