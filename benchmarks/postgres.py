"""What keeping state in Postgres costs: `python benchmarks/postgres.py` (extra `dev`).

A scripted model answers at once, so that what is left is LangGraph, the graph and the checkpointer. Each figure is a
ratio of two medians taken in turns in this run. The server runs on this machine with a file system that is never
flushed: a real one adds the time of its disk and of the network to each write.

- a run under each checkpointer ÷ the run without one, for each durability;
- twenty runs at once on an event loop, by the size of the checkpointer's pool ÷ the same without a checkpointer;
- reading a run that stopped before its last step and making that step ÷ a whole run without a checkpointer;
- a search of 10,000 procedures by vectors ÷ the same search in a memory in a SQLite file.
"""

import asyncio
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.postgres import PostgresStore
from psycopg_pool import AsyncConnectionPool, ConnectionPool
from rich.console import Console
from rich.table import Table
from tests.graphs.persisted import CONNECTION

from benchmarks.memory import procedures, queries
from benchmarks.timing import in_turns, looped_in_turns
from stepcraft import build_aag, build_rat, open_memory
from stepcraft.models.embeddings import WordLlamaEmbedder
from tests.kitchen import GOAL, PAPER, cook, forever, small_memory
from tests.scripted import ScriptedModel
from tests.servers.postgres_server import found_postgres, own_database
from tests.shelf import QUESTION, Shelf, thinker

REPEAT = 15
NUMBERS = itertools.count()

Build = Callable[[Any], tuple[Any, dict[str, Any], Any, str]]


def aag(saver: Any) -> tuple[Any, dict[str, Any], Any, str]:
    """The graph, its input, its context and its last model node."""
    model = ScriptedModel(forever(cook()))
    return build_aag(model=model, memory=small_memory(), checkpointer=saver), GOAL, PAPER, "critic"


def rat(saver: Any) -> tuple[Any, dict[str, Any], Any, str]:
    """The same of RAT, with three thoughts."""
    model = ScriptedModel(thinker("..."))
    return build_rat(model=model, retriever=Shelf(), checkpointer=saver), QUESTION, None, "finish"


def thread() -> dict[str, Any]:
    """The config of a new thread."""
    return {"configurable": {"thread_id": str(next(NUMBERS))}}


def runs(table: Table, name: str, build: Build, savers: dict[str, Any]) -> None:
    """A run under each checkpointer, in turns with one without."""
    bare, given, context, _ = build(None)
    works: dict[str, Callable[[], Any]] = {"none": lambda: bare.invoke(given, context=context)}
    for saver, durability in itertools.product(savers, ("exit", "async", "sync")):
        graph = build(savers[saver])[0]
        works[f"{saver}, {durability}"] = lambda graph=graph, durability=durability: graph.invoke(
            given, thread(), context=context, durability=durability
        )
    times = dict(zip(works, in_turns(list(works.values()), REPEAT), strict=True))
    for what, taken in times.items():
        told = f"{taken * 1e3:.1f} ms over {times['none'] * 1e3:.1f} ms"
        if what != "none":
            table.add_row(
                f"{name}: run with {what} ÷ without a checkpointer",
                f"{taken / times['none']:.2f}",
                told,
            )


def resumption(table: Table, name: str, build: Build, savers: dict[str, Any]) -> None:
    """A run that stopped before its last step is read and ended."""
    times: dict[str, float] = {}
    bare, given, context, _ = build(None)
    for saver, kept in savers.items():
        graph, *_, last = build(kept)
        stopped: list[dict[str, Any]] = []
        for _ in range(REPEAT + 1):
            stopped.append(thread())
            graph.invoke(given, stopped[-1], context=context, interrupt_before=[last])
        [times[saver], whole] = in_turns(
            [lambda graph=graph, stopped=stopped: graph.invoke(None, stopped.pop()), lambda: bare.invoke(given, context=context)],
            REPEAT,
        )  # fmt: skip
        told = f"{times[saver] * 1e3:.1f} ms over {whole * 1e3:.1f} ms"
        table.add_row(
            f"{name}: resumed before {last} from {saver} ÷ a whole run without",
            f"{times[saver] / whole:.2f}",
            told,
        )


async def at_once(table: Table, url: str, build: Build) -> None:
    """Twenty runs at once under the async checkpointer, by the size of its pool."""
    bare, given, context, _ = build(None)

    async def twenty(graph: Any) -> None:
        await asyncio.gather(*(graph.ainvoke(given, thread(), context=context) for _ in range(20)))

    sizes = (1, 4, 16)
    async with AsyncExitStack() as opened:
        graphs = [bare]
        for size in sizes:
            pool = AsyncConnectionPool(
                url, min_size=size, max_size=size, open=False, kwargs=CONNECTION
            )
            graphs.append(build(AsyncPostgresSaver(await opened.enter_async_context(pool)))[0])  # type: ignore[arg-type]
        without, *kept = await looped_in_turns(
            [lambda graph=graph: twenty(graph) for graph in graphs], 5
        )
    for size, taken in zip(sizes, kept, strict=True):
        told = f"{taken * 1e3:.0f} ms over {without * 1e3:.0f} ms"
        table.add_row(
            f"rat: 20 runs at once, pool of {size} ÷ without a checkpointer",
            f"{taken / without:.2f}",
            told,
        )


def searches(table: Table, new: Callable[[], str], folder: Path) -> None:
    """A search by vectors in each memory, in turns."""
    embedder, filled = WordLlamaEmbedder(), procedures(10_000)
    index: Any = {
        "dims": 256,
        "embed": lambda texts: embedder.embed_documents(texts).tolist(),
        "fields": ["text"],
    }
    with ExitStack() as opened:
        hnsw = opened.enter_context(PostgresStore.from_conn_string(new(), index=index))
        hnsw.setup()
        memories = {
            "SQLite": open_memory(folder / "memory.db", embeddings="wordllama"),
            "Postgres, exact": open_memory(f"store+{new()}", embeddings="wordllama"),
            "Postgres, HNSW": open_memory("store:", store=hnsw),
        }
        for memory in memories.values():
            opened.enter_context(memory)
            memory.add(filled)
        asked = queries(filled)
        found = {name: [{hit.procedure.id for hit in memory.search(query, 10, alpha=1)} for query in asked] for name, memory in memories.items()}  # fmt: skip
        works = [lambda memory=memory: [memory.search(query, 10, alpha=1) for query in asked] for memory in memories.values()]  # fmt: skip
        times = dict(zip(memories, in_turns(works, 3), strict=True))
    for name in list(memories)[1:]:
        same = sum(
            len(ours & exact) for ours, exact in zip(found[name], found["SQLite"], strict=True)
        )
        recall = same / sum(map(len, found["SQLite"]))
        per = f"{times[name] / len(asked) * 1e3:.1f} ms over {times['SQLite'] / len(asked) * 1e3:.1f} ms; recall@10 {recall:.3f}"
        table.add_row(
            f"search of 10,000, {name} ÷ SQLite", f"{times[name] / times['SQLite']:.2f}", per
        )


@contextmanager
def savers(url: str, folder: Path) -> Iterator[dict[str, Any]]:
    """The checkpointers, set up."""
    with (
        SqliteSaver.from_conn_string(str(folder / "threads.db")) as sqlite,
        ConnectionPool(url, kwargs=CONNECTION) as pool,
    ):
        postgres = PostgresSaver(pool)  # type: ignore[arg-type]
        postgres.setup()
        yield {"SQLite": sqlite, "Postgres": postgres}


def main() -> None:
    """Measure and print the table."""
    table = Table("what", "ratio", "of")
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        server = opened.enter_context(found_postgres())
        if not server.startswith("postgresql://"):
            raise SystemExit(server)
        new = lambda: opened.enter_context(own_database(server))  # noqa: E731
        url = new()
        with savers(url, folder) as kept:
            for name, build in {"aag": aag, "rat": rat}.items():
                runs(table, name, build, kept)
                resumption(table, name, build, kept)
        asyncio.run(at_once(table, url, rat))
        searches(table, new, folder)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
