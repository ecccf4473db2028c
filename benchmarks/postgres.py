"""A memory in Postgres: `python benchmarks/postgres.py [--sizes 10000,40000]` (extra `dev`).

Each figure is a ratio within one run, on a server of this machine with 16 MB of buffers and a file
system that is never flushed:

- count, iteration and export ÷ a bare SELECT of the same rows, at two sizes, to show that they are
  linear;
- copy into a SQLite file by words, in microseconds a procedure at both sizes;
- search: for a goal and for a whole procedure, hybrid, in milliseconds;
- found: the share of the bundled procedures' goals that are among the first three (the table of
  docs/memory.md), in Postgres, in a store and in a local memory.
"""

import argparse
import sys
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import psycopg
from langgraph.store.memory import InMemoryStore
from rich.console import Console
from rich.table import Table

from benchmarks.memory import procedures, queries
from benchmarks.retrieval_memory import ASKERS, K, ranks
from benchmarks.retrieval_memory import queries as asked_for
from benchmarks.timing import in_turns, seconds
from stepcraft import open_memory
from stepcraft.memory.files import write_jsonl
from stepcraft.memory.protocol import ALPHA
from stepcraft.models.embeddings import WordLlamaEmbedder
from tests.servers.postgres_server import found_postgres, own_database

REPEAT = 5


def select(url: str) -> int:
    """Read all rows of the store."""
    with psycopg.connect(url) as connection:
        return len(connection.execute("SELECT key, value FROM store").fetchall())


def costs(table: Table, url: str, size: int, folder: Path) -> None:
    """The rows of one size."""
    known = procedures(size)
    with open_memory(f"store+{url}", embeddings="wordllama") as memory:
        memory.add(known)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ANALYZE")  # as the server does by itself after a while
        works = {
            "count": memory.count,
            "iteration": lambda: sum(1 for _ in memory),
            "export": lambda: write_jsonl(memory, folder / "export.jsonl"),
        }
        bare, *times = in_turns([partial(select, url), *works.values()], REPEAT)
        for name, taken in zip(works, times, strict=True):
            of = f"{1000 * taken:.0f} ms over {1000 * bare:.0f} ms"
            table.add_row(f"{name} of {size:,} ÷ SELECT", f"{taken / bare:.2f}", of)

        def copy() -> None:
            with (
                tempfile.TemporaryDirectory() as fresh,
                open_memory(f"{fresh}/copy.db", embeddings="none") as copied,
            ):
                copied.add(memory)

        table.add_row(f"copy of {size:,}", f"{1e6 * seconds(copy, 1) / size:.0f} µs each", "")
        goals = queries(known)[:10]
        texts = {"a goal": goals, "a procedure": [item.text() for item in known[:10]]}
        for name, asked in texts.items():
            taken = seconds(lambda asked=asked: [memory.search(text, 3) for text in asked], 1)
            table.add_row(f"search of {size:,} for {name}", f"{100 * taken:.0f} ms", "")


def found(table: Table, url: str) -> None:
    """How often the right procedure is found, in each memory."""
    bundled = list(open_memory(embeddings="none"))
    asked = asked_for(bundled)
    embedder = WordLlamaEmbedder()
    index = {
        "dims": 256,
        "embed": lambda texts: embedder.embed_documents(texts).tolist(),
        "fields": ["text"],
    }
    with (
        open_memory(embeddings="wordllama") as local,
        open_memory("store:", store=InMemoryStore(index=index)) as store,
        open_memory(f"store+{url}", embeddings="wordllama") as postgres,
    ):
        for name, memory in {"local": local, "store": store, "Postgres": postgres}.items():
            if memory is not local:
                memory.add(bundled)
            places = list(zip(ranks(memory, asked, ALPHA), asked, strict=True))
            shares = [
                fmean(place <= K for place, query in places if query.asker == asker)
                for asker in ASKERS
            ]
            figures = ", ".join(
                f"{asker} {share:.2f}" for asker, share in zip(ASKERS, shares, strict=True)
            )
            table.add_row(f"found by {name}", figures, "")


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="10000,40000")
    options = parser.parse_args()
    table = Table("what", "figure", "of")
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        server = opened.enter_context(found_postgres())
        if not server.startswith("postgresql://"):
            raise SystemExit(server)
        for size in map(int, options.sizes.split(",")):
            costs(table, opened.enter_context(own_database(server)), size, folder)
        found(table, opened.enter_context(own_database(server)))
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
