"""The memories against what they are made of: `python benchmarks/memory.py [--sizes 1000,10000] [--weaviate]`.

With --weaviate (and --million for that size too) `benchmarks/weaviate_memory.py` measures the memory in Weaviate; else
this measures the local one. Each figure is a ratio within one run:

- search ÷ (the same FTS5 query for the best k by rank + the same query embedded and multiplied with a bare
  matrix), the median over the same queries, taken in turns;
- add ÷ (the same texts embedded + one bare SQLite transaction of the same rows, FTS5 row and vector included);
- peak resident memory of a process that fills a database and searches it.

The procedures are made of sentences of the bundled ones, with a seed.
"""

import argparse
import json
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from stepcraft.index import LAYOUT, match_expression
from stepcraft.memory.local import LocalMemory
from stepcraft.memory.open import open_memory
from stepcraft.memory.procedure import Procedure
from stepcraft.models.embeddings import WordLlamaEmbedder

K = 3
QUERIES = 40


def procedures(count: int) -> list[Procedure]:
    """As many different procedures, of the sentences of the bundled ones."""
    chance = random.Random(7)
    bundled = list(open_memory(embeddings="none"))
    steps = [step for procedure in bundled for step in procedure.steps]
    words = sorted({word for step in steps for word in step.split()})
    return [
        Procedure(
            output=" ".join([*chance.choice(bundled).output.split()[:6], *chance.sample(words, 3)]),
            input=chance.choice(bundled).input,
            steps=tuple(chance.choices(steps, k=chance.randint(3, 9))),
        )
        for _ in range(count)
    ]


def queries(of: list[Procedure]) -> list[str]:
    """Goals with resources, as AAG asks."""
    chance = random.Random(8)
    return [f"{chance.choice(of).output} using {chance.choice(of).input}" for _ in range(QUERIES)]


class Bare:
    """The same rows in plain SQLite and numpy."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "cache_size = -65536"):
            self.connection.execute(f"PRAGMA {pragma}")
        for statement in LAYOUT.split(";\n"):
            self.connection.execute(statement)
        self.embedder = WordLlamaEmbedder()

    def add(self, rows: list[tuple[str, str, str]]) -> None:
        """(id, text, payload) in one transaction."""
        vectors = self.embedder.embed_documents([text for _, text, _ in rows])
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
        self.matrix = vectors
        self.connection.execute("BEGIN IMMEDIATE")
        self.connection.executemany(
            "INSERT INTO entries VALUES (?, ?, ?, ?)", ((n, *row) for n, row in enumerate(rows, 1))
        )
        self.connection.executemany(
            "INSERT INTO vectors VALUES (?, ?)",
            ((n, vector.tobytes()) for n, vector in enumerate(vectors, 1)),
        )
        self.connection.executemany(
            "INSERT INTO words (rowid, text) VALUES (?, ?)",
            ((n, text) for n, (_, text, _) in enumerate(rows, 1)),
        )
        self.connection.execute("COMMIT")

    def search(self, query: str) -> object:
        """The k best by words, and the k best by vectors."""
        found = self.connection.execute(
            "SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?",
            (match_expression(query), K),
        ).fetchall()
        scores = self.matrix @ self.embedder.embed_query(query)
        return found, np.argpartition(scores, -K)[-K:]


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(size: int, folder: Path) -> dict[str, float]:
    """All figures at one size, in seconds."""
    known = procedures(size)
    rows = [(item.id, item.text(), json.dumps(item.to_dict())) for item in known]
    bare = Bare(folder / f"bare{size}.db")
    memory = LocalMemory(folder / f"memory{size}.db", embeddings="wordllama")
    memory.search("warm up"), bare.embedder.embed_query("warm up")
    figures = {
        "bare add": seconds(lambda: bare.add(rows)),
        "add": seconds(lambda: memory.add(known)),
    }
    asked = queries(known)
    memory.search(asked[0]), bare.search(asked[0])
    pairs = [
        (seconds(partial(memory.search, query, K)), seconds(partial(bare.search, query)))
        for query in asked
    ]
    figures |= {
        "search": median(ours for ours, _ in pairs),
        "bare search": median(plain for _, plain in pairs),
    }
    figures["search ratio"] = median(ours / plain for ours, plain in pairs)
    memory.close()
    bare.connection.close()
    return figures


def peak(size: int, url: str) -> float:
    """Fill a memory and search it; by how many MB the peak of resident memory grows."""
    made = procedures(1000)
    with open_memory(url, embeddings="wordllama") as memory:
        memory.add(made[:1])
        memory.search("load the model")
        start = resident()
        memory.add(
            Procedure(
                output=f"{made[n % 1000].output} {n}",
                input=made[n % 1000].input,
                steps=made[n % 1000].steps,
            )
            for n in range(size)
        )
        memory.search("search the long-term memory of an agent")
        return resident() - start


def own_peak(size: int, url: str) -> float:
    """`peak` in a process of its own."""
    command = [sys.executable, __file__, "--peak", str(size), "--url", url]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def resident() -> float:
    """The peak resident memory of this process so far, in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says on Linux may be the peak of the parent process
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--weaviate", action="store_true", help="measure the memory in Weaviate")
    parser.add_argument("--million", action="store_true", help="at 1,000,000 procedures too")
    parser.add_argument("--peak", type=int, help="only print the peak memory at this size")
    parser.add_argument("--url", default="", help="of the memory to fill for --peak")
    options = parser.parse_args()
    sizes = [*map(int, options.sizes.split(",")), *([1_000_000] if options.million else [])]
    if options.peak:
        print(f"{peak(options.peak, options.url):.0f}")
    elif options.weaviate:
        from benchmarks.weaviate_memory import table  # noqa: PLC0415 - it imports this module

        table(sizes)
    else:
        local_table(sizes)


def local_table(sizes: list[int]) -> None:
    """Print the figures of the local memory."""
    print(
        f"{'procedures':>10}  {'search':>9}  {'bare':>9}  {'ratio':>5}  {'add':>8}  {'bare':>8}  {'ratio':>5}  peak"
    )
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(size, Path(folder))
            used = own_peak(size, f"{folder}/peak.db")
        print(
            f"{size:>10,}  {1000 * found['search']:>6.2f} ms  {1000 * found['bare search']:>6.2f} ms  "
            f"{found['search ratio']:>5.2f}  {found['add']:>6.2f} s  {found['bare add']:>6.2f} s  "
            f"{found['add'] / found['bare add']:>5.2f}  +{used:.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    main()
