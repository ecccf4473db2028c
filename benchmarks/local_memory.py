"""The costs of a memory in a SQLite file: `python benchmarks/local_memory.py [--sizes 10000,100000]`.

For each number of procedures (of `benchmarks/memory.py`, embedded by wordllama, 256 dimensions):

- filling: seconds, and ÷ embedding the same texts alone;
- first search: opening the file and reading all vectors;
- goal, steps: the median hybrid search for goals and for steps of 1,500 characters, each query once; ÷ the bare parts,
  which are the same file's FTS5 query for the best k by rank and the query embedded and multiplied with a bare matrix;
- changed: the same goals, each after one procedure was added or deleted, ÷ just before;
- same: which part of the first three is that of ranking all rows by all words;
- memory: by how much the peak of a process that opens and searches the file grows, ÷ its vectors.

At the end, how long the bundled procedures take to open, with embeddings kept by an earlier start and without.
"""

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import fmean, median

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.memory import procedures, queries, resident, seconds
from stepcraft.memory.local import LocalMemory
from stepcraft.memory.open import open_memory
from stepcraft.memory.procedure import Procedure
from stepcraft.memory.protocol import ALPHA
from stepcraft.models.embeddings import WordLlamaEmbedder
from stepcraft.text.words import query_words

K = 3
STEPS = 25
CHARACTERS = 1500


class Bare:
    """The words and vectors of a memory's file, searched by plain SQLite and numpy."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path)
        self.connection.execute("PRAGMA cache_size = -65536")
        rows = self.connection.execute("SELECT seq, vector FROM vectors ORDER BY seq").fetchall()
        self.numbers = np.array([number for number, _ in rows])
        self.matrix = np.frombuffer(b"".join(row[1] for row in rows), np.float32)
        self.matrix = self.matrix.reshape(len(rows), -1)
        self.embedder = WordLlamaEmbedder()

    def search(self, query: str) -> object:
        """The k best by words, and the k best by vectors."""
        found = self.connection.execute(
            "SELECT rowid, rank FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?",
            (expression(query), K),
        ).fetchall()
        return found, np.argpartition(self.matrix @ self.embedder.embed_query(query), -K)[-K:]

    def exact(self, query: str) -> set[str]:
        """The ids of the k best of both, with all rows ranked by all words."""
        vector = self.embedder.embed_query(query)
        scores = ALPHA * (self.matrix @ (vector / np.linalg.norm(vector))).astype(float)
        sql = "SELECT rowid, rank FROM words WHERE words MATCH ?"
        rows = np.array(self.connection.execute(sql, (expression(query),)).fetchall())
        by_words = (1 - ALPHA) * rows[:, 1] / rows[:, 1].min()
        scores[np.searchsorted(self.numbers, rows[:, 0])] += by_words
        best = self.numbers[np.argpartition(scores, -K)[-K:]]
        marks = ", ".join("?" * K)
        sql = f"SELECT id FROM entries WHERE seq IN ({marks})"
        return {name for (name,) in self.connection.execute(sql, best.tolist())}


def expression(query: str) -> str:
    """The FTS5 expression for all words of a query."""
    return " OR ".join(f'"{word}"' for word in query_words(query))


def many(count: int) -> Iterable[Procedure]:
    """As many procedures; from 100,000 on they are those before with another number and input."""
    first = procedures(min(count, 100_000))
    yield from first
    for number, (item, other) in zip(
        range(len(first), count), zip(cycle(first), cycle(first[7:]), strict=False), strict=False
    ):
        yield Procedure(output=f"{item.output} {number}", input=other.input, steps=other.steps)


def each(search: Callable[[str], object], asked: list[str]) -> list[float]:
    """How long each query takes."""
    return [seconds(partial(search, query)) for query in asked]


def changed(memory: LocalMemory, asked: list[str]) -> tuple[list[float], list[float]]:
    """How long each query takes, and how long after one procedure was added, or deleted."""
    before, after = [], []
    for number, query in enumerate(asked):
        search = partial(memory.search, query, K)
        item = Procedure(output=f"something new {number}", input="flour", steps=("Mix it.",))
        for change in (partial(memory.add, [item]), partial(memory.delete, [item.id])):
            before.append(seconds(search))
            change()
            after.append(seconds(search))
    return before, after


def measure(size: int, path: Path) -> str:
    """The row of a size."""
    known = procedures(min(size, 100_000))
    goals = queries(known)
    texts = ["\n".join(item.steps)[:CHARACTERS] for item in known]
    steps = [text for text in texts if len(text) == CHARACTERS][:STEPS]
    embedder = WordLlamaEmbedder()
    embedder.embed_query("load the model")
    with LocalMemory(path, embeddings="wordllama") as memory:
        filling = seconds(lambda: memory.add(many(size)))
    embedding = seconds(lambda: embedder.embed_documents([item.text() for item in known]))
    embedding *= size / len(known)
    with LocalMemory(path) as memory:
        first = seconds(lambda: memory.search("search the long-term memory of an agent"))
        ours = [each(partial(memory.search, k=K), asked) for asked in (goals, steps)]
        bare = Bare(path)
        same = fmean(
            len({hit.procedure.id for hit in memory.search(query, K)} & bare.exact(query)) / K
            for query in goals
        )
        plain = [each(bare.search, asked) for asked in (goals, steps)]
        del bare
        before, after = map(median, changed(memory, goals))
    goal, step = map(median, ours)
    ratios = [mine / median(theirs) for mine, theirs in zip((goal, step), plain, strict=True)]
    command = [sys.executable, __file__, "--peak", str(path)]
    grown = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    vectors = size * 256 * 4 / 1024**2
    return (
        f"{size:>10,}  {filling:>6.1f} s {filling / embedding:>5.1f}  {first:>6.2f} s  "
        f"{1000 * goal:>6.1f} ms {ratios[0]:>5.2f}  {1000 * step:>7.1f} ms {ratios[1]:>5.2f}  "
        f"{1000 * after:>6.1f} ms {after / before:>5.2f}  {same:.2f}  "
        f"+{grown:.0f} MB {grown / vectors:>5.2f}"
    )


def peak(path: Path) -> float:
    """By how many MB opening and searching a file grows the peak of resident memory."""
    with open_memory(embeddings="wordllama") as bundled:
        bundled.search("load the model")
    start = resident()
    with LocalMemory(path) as memory:
        memory.search("search the long-term memory of an agent")
        return resident() - start


def start(cache: str) -> float:
    """How long a new process takes to open the bundled procedures, in seconds, with this cache."""
    code = (
        "import time; from stepcraft.memory.open import open_memory; import stepcraft.memory.local;"
        "began = time.perf_counter(); open_memory(embeddings='wordllama'); print(time.perf_counter() - began)"
    )
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "XDG_CACHE_HOME": cache}
    return float(
        subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="10000,100000")
    parser.add_argument("--peak", type=Path, help="only print the memory that this file takes")
    options = parser.parse_args()
    if options.peak:
        print(f"{peak(options.peak):.0f}")
        return
    print(
        f"{'procedures':>10}  {'filling':>8} {'÷':>5}  {'first':>8}  {'goal':>9} {'÷':>5}  "
        f"{'steps':>10} {'÷':>5}  {'changed':>9} {'÷':>5}  same  memory ÷"
    )
    with tempfile.TemporaryDirectory() as folder:
        for size in map(int, options.sizes.split(",")):
            path = Path(folder) / "memory.db"
            print(measure(size, path), flush=True)
            path.unlink()
        without, kept = start(folder), median(start(folder) for _ in range(3))
    print(f"bundled procedures opened: {without:.2f} s, then {kept:.2f} s ({kept / without:.2f})")


if __name__ == "__main__":
    main()
