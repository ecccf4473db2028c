"""The memory in Weaviate against the raw client: `python benchmarks/memory.py [--sizes 1000] [--million]`.

It starts the server that `scripts/weaviate install` built. Each figure is a ratio within one run, on the same
procedures (of `benchmarks/memory.py`) in collections of the same shape and index settings:

- import: add ÷ the raw client's batch.fixed_size(1000, concurrent_requests=2), as rates, in turns, the median, with
  vectors made beforehand on both sides ("ready"), or wordllama at work on both ("whole"); and ours with wordllama
  over the raw client with vectors made beforehand ("whole ÷ ready");
- search at alpha 1 ÷ raw near_vector, hybrid ÷ raw hybrid: p50 and p99, the query's vector made beforehand on both
  sides, the raw client asked for the same properties and metadata;
- embedded: the same as search p50, but our side embeds the query with wordllama;
- 8 threads: searches a second ÷ the raw client's in 8 threads; 64 tasks: asearches a second of as many tasks on one
  event loop ÷ the raw async client's;
- iterate ÷ the raw iterator, as rates;
- recall@10 at alpha 1 against the exact search of a local memory, with the default settings of the index;
- by how many MB the peak of resident memory grows in an import, in a process of its own.

Ours and the raw client take turns, and take turns at being first: the second of two equal searches finds the server's
caches warm, and is a tenth quicker. The figures of searches are medians over rounds.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import weaviate
from langchain_core.embeddings import Embeddings
from weaviate.classes.query import MetadataQuery

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.memory import own_peak, procedures, queries, seconds
from stepcraft.index import embedded
from stepcraft.memory.local import LocalMemory
from stepcraft.memory.open import open_memory
from stepcraft.memory.procedure import Procedure
from stepcraft.models.embeddings import WordLlamaEmbedder
from tests.servers.weaviate_server import WeaviateServer

K = 10
PROPERTIES = ["input", "output", "steps", "source", "metadata"]
ROUNDS = 6
SHORT_ROUNDS = 20
IN_A_ROUND = 400
MILLION = 1_000_000
"""From this size on, procedures are imported once, with ready vectors alone: half an hour on two cores."""


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

    async def aembed_query(self, text):
        """The same, without a thread."""
        return self.vectors[text]


def raw_import(
    client, name: str, known: list[Procedure], embed: Callable[[list[str]], Sequence]
) -> None:
    """What a user of the client alone would write."""
    collection, now = client.collections.use(name), datetime.now(UTC)
    with collection.batch.fixed_size(1000, concurrent_requests=2) as batch:
        for start in range(0, len(known), 1000):
            part = known[start : start + 1000]
            for item, vector in zip(part, embed([item.text() for item in part]), strict=True):
                fields = {
                    "input": item.input,
                    "output": item.output,
                    "steps": list(item.steps),
                    "created": now,
                }
                batch.add_object(fields, uuid=item.id, vector=vector.tolist())
    assert not collection.batch.failed_objects


def in_turns(
    ours: Callable[[str], object], raw: Callable[[str], object], asked: list[str]
) -> tuple[float, float, float]:
    """p50 in ms of ours, and the ratios of p50 and p99: the medians over the rounds."""
    rounds = []
    for number in range(ROUNDS):
        many = (asked * IN_A_ROUND)[:IN_A_ROUND]
        times = np.array(
            [both(partial(ours, query), partial(raw, query), number % 2) for query in many]
        )
        (mine, mine_late), (plain, plain_late) = np.percentile(times, (50, 99), axis=0).T
        rounds.append((1000 * mine, mine / plain, mine_late / plain_late))
    return tuple(np.median(rounds, axis=0))


def both(
    ours: Callable[[], object], raw: Callable[[], object], raw_first: int
) -> tuple[float, float]:
    """How long each takes."""
    if raw_first:
        plain = seconds(raw)
        return seconds(ours), plain
    return seconds(ours), seconds(raw)


def threads(ours: Callable[[str], object], raw: Callable[[str], object], asked: list[str]) -> float:
    """The ratio of searches a second by 8 threads, the median over the rounds."""
    many = (asked * IN_A_ROUND)[:IN_A_ROUND]
    with ThreadPoolExecutor(8) as pool:

        def all_of(search: Callable[[str], object]) -> list[object]:
            return list(pool.map(search, many))

        times = [
            both(partial(all_of, ours), partial(all_of, raw), turn % 2)
            for turn in range(SHORT_ROUNDS)
        ]
    return median(plain / mine for mine, plain in times)


async def tasks(
    ours: Callable[[str], Awaitable], raw: Callable[[str], Awaitable], asked: list[str]
) -> float:
    """The ratio of searches a second by 64 tasks on one event loop, the median over the rounds."""
    ratios = []
    for turn in range(SHORT_ROUNDS):
        times = {}
        for search in (raw, ours) if turn % 2 else (ours, raw):
            start, left = time.perf_counter(), iter((asked * IN_A_ROUND)[:IN_A_ROUND])
            await asyncio.gather(*(ask_all(search, left) for _ in range(64)))
            times[search] = time.perf_counter() - start
        ratios.append(times[raw] / times[ours])
    return median(ratios)


async def ask_all(search: Callable[[str], Awaitable], left: Iterator[str]) -> None:
    """One of the tasks that share the queries."""
    for query in left:
        await search(query)


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
    ours, whole = f"Ready{size}", f"Whole{size}"
    if size < MILLION:
        figures["import MB"] = own_peak(size, server.url(f"Peak{size}"))
        with open_memory(server.url(whole), embeddings="wordllama") as memory:
            memory.search("warm up")
            near = partial(raw_near, client.collections.use(whole), ready)
            figures["embedded"] = in_turns(partial(memory.search, k=K, alpha=1), near, asked)[1]
    memory = open_memory(server.url(ours), embeddings=ready)
    figures |= searches(memory, client.collections.use(ours), ready, asked)
    figures["64 tasks"] = asyncio.run(async_searches(memory, ours, server, ready, asked))
    pages = client.collections.use(ours)
    turns = [
        both(lambda: sum(1 for _ in memory), lambda: sum(1 for _ in pages.iterator()), turn % 2)
        for turn in range(2 if size >= MILLION else ROUNDS)
    ]
    figures["iterate"] = median(raw / mine for mine, raw in turns)
    with LocalMemory(":memory:", embeddings=ready) as exact:
        exact.add(known)
        figures["recall@10"] = float(np.mean([same(memory, exact, query) for query in asked]))
    memory.close()
    return figures


def raw_near(collection, ready: Ready, query: str):
    """What a user of the client alone would write; of an async client, to be awaited."""
    return collection.query.near_vector(
        ready.vectors[query].tolist(),
        limit=K,
        return_properties=PROPERTIES,
        return_metadata=MetadataQuery(distance=True),
    )


def raw_hybrid(collection, ready: Ready, query: str):
    """The same for words and vectors."""
    return collection.query.hybrid(
        query,
        vector=ready.vectors[query].tolist(),
        alpha=0.4,
        limit=K,
        query_properties=["input", "output", "steps"],
        return_properties=PROPERTIES,
        return_metadata=MetadataQuery(score=True),
    )


def imports(
    size: int,
    server: WeaviateServer,
    client: weaviate.WeaviateClient,
    known: list[Procedure],
    ready: Ready,
) -> dict[str, float]:
    """The figures of imports into fresh collections, forwards and backwards; one with ready vectors is left."""
    wordllama = WordLlamaEmbedder()
    made = {"Plain": ready.embed_documents, "PlainWhole": wordllama.embed_documents}
    kinds = ["Plain", "Ready"] if size >= MILLION else ["Plain", "PlainWhole", "Ready", "Whole"]
    taken: dict[str, list[float]] = {kind: [] for kind in kinds}
    for turn in range(10 if size <= 1000 else 6 if size <= 10_000 else 1 if size >= MILLION else 2):
        for kind in sorted(taken, reverse=bool(turn % 2)):
            name, whole = f"{kind}{size}", kind.endswith("Whole")
            client.collections.delete(name)
            with open_memory(
                server.url(name), embeddings="wordllama" if whole else ready
            ) as memory:
                memory.search("warm up", alpha=1 if whole else 0)
                add = (
                    partial(raw_import, client, name, known, made[kind])
                    if kind in made
                    else partial(memory.add, known)
                )
                taken[kind].append(seconds(add))
            if kind in made:
                client.collections.delete(name)
    raw = np.array(taken["Plain"])
    figures = {
        "raw import/s": size / float(np.median(raw)),
        "import ready": float(np.median(raw / taken["Ready"])),
    }
    if size < MILLION:
        whole = np.array(taken["Whole"])
        figures["import whole"] = float(np.median(taken["PlainWhole"] / whole))
        figures["whole ÷ ready"] = float(np.median(raw / whole))
    return figures


def searches(memory, collection, ready: Ready, asked: list[str]) -> dict[str, float]:
    """The figures of searches by one caller and by threads."""
    near, hybrid = partial(raw_near, collection, ready), partial(raw_hybrid, collection, ready)
    ours = partial(memory.search, k=K, alpha=1)
    found = dict(
        zip(("search ms", "search p50", "search p99"), in_turns(ours, near, asked), strict=True)
    )
    mixed = in_turns(partial(memory.search, k=K, alpha=0.4), hybrid, asked)
    found |= dict(zip(("hybrid ms", "hybrid p50", "hybrid p99"), mixed, strict=True))
    return found | {"8 threads": threads(ours, near, asked)}


async def async_searches(
    memory, name: str, server: WeaviateServer, ready: Ready, asked: list[str]
) -> float:
    """The figure of searches by tasks."""
    async with weaviate.use_async_with_local(
        "127.0.0.1", server.port, server.grpc_port, skip_init_checks=True
    ) as client:
        near = partial(raw_near, client.collections.use(name), ready)
        return await tasks(partial(memory.asearch, k=K, alpha=1), near, asked)


def same(memory, exact, query: str) -> float:
    """The share of the exact best that were found."""
    ours, theirs = (
        {hit.procedure.id for hit in each.search(query, K, alpha=1)} for each in (memory, exact)
    )
    return len(ours & theirs) / K


def table(sizes: list[int]) -> None:
    """Print the figures of each size."""
    with (
        tempfile.TemporaryDirectory() as folder,
        WeaviateServer(Path(folder), {"GOMEMLIMIT": "10GiB"}) as server,
        connected(server) as client,
    ):
        for size in sizes:
            start = time.monotonic()
            figures = measure(size, server, client)
            client.collections.delete_all()
            print(f"{size:,} procedures ({time.monotonic() - start:.0f} s)")
            print(
                "".join(f"  {name:13} {value:10.3f}\n" for name, value in figures.items()),
                flush=True,
            )
