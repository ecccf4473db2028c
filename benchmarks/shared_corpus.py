"""A corpus in Weaviate and in Postgres: `python benchmarks/shared_corpus.py [--size 100000] [--postgres 20000]`.

It starts the servers that the tests start, and prints for Markdown files of ten passages each:

- import: `build_corpus` ÷ the raw client's batch.fixed_size(1000, concurrent_requests=2), as rates, with vectors made
  beforehand on both sides; ours reads and splits the files, and makes the words that are searched, too;
- a second build in which one file in a hundred has changed, and one in which nothing has, ÷ the first;
- recall@10 of a search that uses only vectors, against an exact search;
- p50 and p95 of a hybrid search ÷ those of the raw client's, in turns. With a limit of 10 Weaviate gives other
  scores, and misses better passages, so that ours is 100;
- growth of the peak memory of a process that searches.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import weaviate
from langchain_core.embeddings import Embeddings

from benchmarks.memory import resident, seconds
from stepcraft.index import embedded, unit_vectors
from stepcraft.memory.open import open_memory
from stepcraft.memory.weaviate.collection import words_of
from stepcraft.models.embeddings import WordLlamaEmbedder
from stepcraft.sources import build_corpus, open_source
from stepcraft.sources.corpus.passages import passages
from stepcraft.sources.shared.weaviate import WeaviatePassages
from stepcraft.text.words import PARTS_WEIGHT, query_words
from tests.servers.postgres_server import found_postgres, own_database
from tests.servers.weaviate_server import WeaviateServer

K = 10
PER_FILE = 10
QUERIES = 200


class Ready(Embeddings):
    """Vectors that were made beforehand; others are made."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.model = WordLlamaEmbedder()
        self.vectors = {
            text: np.frombuffer(row, np.float32)
            for text, row in embedded(self.model, texts).vectors.items()
        }

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector a text."""
        return [self._vector(text) for text in texts]  # type: ignore[misc]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query."""
        return self._vector(text)  # type: ignore[return-value]

    def _vector(self, text: str) -> np.ndarray:
        if text not in self.vectors:
            [self.vectors[text]] = unit_vectors(self.model, [text])
        return self.vectors[text]


def make_files(folder: Path, size: int) -> None:
    """Markdown files of ten sections, in folders of a hundred."""
    chance = random.Random(7)
    steps = [step for procedure in open_memory(embeddings="none") for step in procedure.steps]
    words = sorted({word for step in steps for word in step.split()})
    for number in range(size // PER_FILE):
        place = folder / f"part{number // 100}"
        place.mkdir(exist_ok=True, parents=True)
        parts = [f"# {' '.join(chance.sample(words, 4))}"]
        for _ in range(PER_FILE):
            parts += [
                f"## {' '.join(chance.sample(words, 4))}",
                " ".join(chance.choices(steps, k=chance.randint(2, 6))),
            ]
        (place / f"{number}.md").write_text("\n\n".join(parts))


def change(folder: Path) -> int:
    """Change one file in a hundred."""
    files = sorted(folder.rglob("*.md"))[::100]
    for file in files:
        text = file.read_text()
        file.write_text(f"{text}\n\nA line more.")
    return len(files)


def percentile(times: list[float]) -> float:
    """The 95th percentile in milliseconds."""
    return float(1000 * np.percentile(times, 95))


def timed(search: Callable[[str], object], queries: Sequence[str]) -> list[float]:
    """The time of each search."""
    return [seconds(partial(search, query)) for query in queries]


def builds(url: str, folder: Path, ready: Ready) -> float:
    """Print how long a second build takes beside the first; return the first's seconds."""
    first = seconds(lambda: build_corpus([folder], url, embeddings=ready))
    same = seconds(lambda: build_corpus([folder], url, embeddings=ready))
    changed = change(folder)
    second = seconds(lambda: build_corpus([folder], url, embeddings=ready))
    print(f"  {changed} files changed ÷ first build: {second / first:.3f} ({second:.1f} s)")
    print(f"  nothing changed ÷ first build: {same / first:.3f} ({same:.1f} s)", flush=True)
    return first


def recall(url: str, folder: Path, queries: Sequence[str], ready: Ready) -> float:
    """Recall@10 of a search that uses only vectors."""
    texts = [
        f"{each.title}\n{each.text}"
        for file in sorted(folder.rglob("*.md"))
        for each in passages(file)
    ]
    matrix = np.array([ready.embed_query(text) for text in texts])
    found = []
    with closing(open_source(url, k=K, embeddings=ready)) as corpus:
        corpus.alpha = 1.0
        for query in queries:
            scores = matrix @ (vector := np.asarray(ready.embed_query(query)))
            del vector
            best = {texts[place] for place in np.argsort(-scores)[:K]}
            hits = {
                f"{each.metadata['title']}\n{each.page_content}" for each in corpus.invoke(query)
            }
            found.append(len(best & hits) / K)
    return float(np.mean(found))


def weaviate_figures(server: WeaviateServer, folder: Path, known: list, queries: list[str]) -> None:
    """Print those of Weaviate."""
    texts = [f"{each.title}\n{each.text}" for _, each in known]
    ready, words = Ready(texts), [*map(words_of, texts)]
    WeaviatePassages(server.url("Raw"), embeddings=ready, create=True).close()
    with weaviate.connect_to_local(
        port=server.port, grpc_port=server.grpc_port, skip_init_checks=True
    ) as client:
        raw = client.collections.use("Raw")

        def fill() -> None:
            with raw.batch.fixed_size(1000, concurrent_requests=2) as batch:
                for (path, each), text, searched in zip(known, texts, words, strict=True):
                    batch.add_object(
                        {
                            "path": path,
                            "title": each.title,
                            "text": each.text,
                            "place": each.place,
                            "digest": str(hash(text)),
                            "version": path,
                            **searched,
                        },
                        vector=ready.vectors[text].tolist(),
                    )
            assert not raw.batch.failed_objects

        theirs = seconds(fill)
        print(f"  raw import: {len(known) / theirs:,.0f} a second", flush=True)
        ours = builds(server.url("Ours"), folder, ready)
        print(
            f"  import ÷ raw: {theirs / ours:.2f} ({len(known) / ours:,.0f} a second)", flush=True
        )
        with closing(open_source(server.url("Ours"), k=K, embeddings=ready)) as corpus:

            def plain(query: str, limit: int) -> object:
                return raw.query.hybrid(
                    " ".join(query_words(query)),
                    vector=list(ready.embed_query(query)),
                    alpha=0.3,
                    query_properties=["words", f"parts^{PARTS_WEIGHT}"],
                    limit=limit,
                    return_properties=["path", "title", "text", "place"],
                ).objects

            works = [corpus.invoke, partial(plain, limit=K), partial(plain, limit=100)]
            times = [[seconds(partial(work, query)) for work in works] for query in queries]
            for name, part in (("p50", 50), ("p95", 95)):
                mine, ten, hundred = 1000 * np.percentile(times[20:], part, axis=0)
                print(
                    f"  {name} ÷ raw client's: {mine / ten:.2f} with its limit of 10, "
                    f"{mine / hundred:.2f} with 100 ({mine:.1f}, {ten:.1f}, {hundred:.1f} ms)",
                    flush=True,
                )
    print(f"  recall@{K}: {recall(server.url('Ours'), folder, queries, ready):.3f}", flush=True)
    grown = subprocess.run(
        [sys.executable, __file__, "--peak", server.url("Ours")],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    print(f"  memory of a worker: +{grown.strip()} MB in 1,000 searches", flush=True)


def peak(url: str) -> float:
    """By how many MB the peak of resident memory grows in a thousand searches."""
    with closing(open_source(url, embeddings="none")) as corpus:
        corpus.invoke("load the model")
        start = resident()
        for number in range(1000):
            corpus.invoke(f"load the model {number}")
        return resident() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=100_000, help="passages in Weaviate")
    parser.add_argument("--postgres", type=int, default=20_000, help="passages in Postgres")
    parser.add_argument("--peak", help="only print the memory that searches of a URL take")
    options = parser.parse_args()
    if options.peak:
        print(f"{peak(options.peak):.0f}")
        return
    for name, size in (("Weaviate", options.size), ("Postgres", options.postgres)):
        if not size:
            continue
        with tempfile.TemporaryDirectory() as where:
            folder = Path(where) / "docs"
            make_files(folder, size)
            files = sorted(folder.rglob("*.md"))
            start = time.perf_counter()
            known = [(str(file), each) for file in files for each in passages(file)]
            taken = time.perf_counter() - start
            chance = random.Random(8)
            queries = [
                " ".join(chance.sample(each.text.split(), 6))
                for _, each in chance.sample(known, QUERIES)
            ]
            print(f"{name}, {len(known):,} passages (read and split in {taken:.0f} s)", flush=True)
            if name == "Weaviate":
                with WeaviateServer(Path(where) / "server") as server:
                    weaviate_figures(server, folder, known, queries)
                continue
            ready = Ready([f"{each.title}\n{each.text}" for _, each in known])
            with found_postgres() as found, own_database(found) as database:
                url = f"{database}/docs"
                first = builds(url, folder, ready)
                print(f"  import: {len(known) / first:,.0f} a second", flush=True)
                with closing(open_source(url, k=K, embeddings=ready)) as corpus:
                    print(f"  p95: {percentile(timed(corpus.invoke, queries)):.1f} ms", flush=True)
                print(f"  recall@{K}: {recall(url, folder, queries, ready):.3f}", flush=True)


if __name__ == "__main__":
    main()
