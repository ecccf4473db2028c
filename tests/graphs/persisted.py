"""One run of every graph on a database, for tests of what outlives a process.

The name of a thread begins with that of its graph and says whether it is run on an event loop: `aag-async-1`. Its model
has the same name, so that a scripted server knows which run asks.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain_core.embeddings import DeterministicFakeEmbedding
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.store.postgres import AsyncPostgresStore, PostgresStore
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from stepcraft import RatContext, RpgContext, build_aag, build_rat, build_rpg
from stepcraft.contexts.base import Context
from stepcraft.contexts.baselines import (
    CotContext,
    DirectContext,
    FewShotContext,
    RagContext,
    ReactContext,
)
from stepcraft.graphs.baselines import build_cot, build_direct, build_few_shot, build_rag, build_react
from tests import bridge, shelf
from tests.graphs.killed import whole
from tests.kitchen import GOAL, PAPER, cooked
from tests.servers.openai_replies import Body, Reply, tool_call

CONNECTION: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
INDEX: Any = {"dims": 8, "embed": DeterministicFakeEmbedding(size=8), "fields": ["text"]}
MEMORY = "store:kitchen"


def searching(body: Body) -> Reply | str:
    """The agent's turns: two searches, then the answer."""
    made = sum(message["role"] == "tool" for message in body["messages"])
    return tool_call("search", query=f"bridge {made}") if made < 2 else "Haldruvin built it."


@dataclass(frozen=True)
class Case:
    """A graph, what it is asked, and what its model says; the replies depend on the requests alone."""

    build: Callable[..., Any]
    calls: Sequence[str]
    """The nodes that ask the model, as often as they do, sorted."""
    context: Context
    given: Mapping[str, Any] = field(default_factory=lambda: shelf.QUESTION)
    reply: Callable[[str, Body], Any] = lambda _node, _body: "Haldruvin."
    options: Callable[[], dict[str, Any]] = dict

    def graph(self, model: Any, saver: Any = None, store: Any = None) -> Any:
        """The graph with what it needs."""
        return self.build(model=model, checkpointer=saver, store=store, **self.options())


CASES = {
    "aag": Case(
        build_aag,
        sorted(["draft", "to_query", *["answer"] * 4, "revise", "critic", "edit", "critic"]),
        PAPER,
        GOAL,
        cooked,
        lambda: {"memory": MEMORY},
    ),
    "rat": Case(
        build_rat,
        sorted(["draft", *["to_query", "revise"] * 4, "finish"]),
        RatContext(),
        reply=lambda node, body: shelf.thinker(".x.")(node, whole(body)),
        options=lambda: {"retriever": shelf.Shelf()},
    ),
    "rpg": Case(
        build_rpg,
        sorted([*["plan", "answer"] * 3, "combine"]),
        RpgContext(paper=True),
        {**bridge.QUESTION, "kind": "multihop"},
        lambda node, body: bridge.planner()(node, whole(body)),
        lambda: {"retriever": shelf.Shelf(says=bridge.documents)},
    ),
    "direct": Case(build_direct, ["answer"], DirectContext()),
    "cot": Case(build_cot, ["answer"], CotContext(), reply=lambda *_: "I think.\nANSWER: Haldruvin."),
    "rag": Case(build_rag, ["answer"], RagContext(), options=lambda: {"retriever": shelf.Shelf()}),
    "few_shot": Case(build_few_shot, ["answer"], FewShotContext(), options=lambda: {"memory": MEMORY}),
    "react": Case(
        build_react,
        ["agent"] * 3,
        ReactContext(),
        reply=lambda _node, body: searching(body),
        options=lambda: {"retriever": shelf.Shelf()},
    ),
}


def case_of(thread: str) -> Case:
    """The case of a thread."""
    return CASES[thread.partition("-")[0]]


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def durability(thread: str) -> Any:
    """When the state of a thread is written: after every step, or only at the end if its name ends with "exit"."""
    return "exit" if thread.endswith("-exit") else "sync"


@contextmanager
def opened(url: str) -> Iterator[tuple[PostgresSaver, PostgresStore]]:
    """The checkpointer and the store in a database that is set up."""
    with ConnectionPool(url, min_size=1, max_size=4, kwargs=CONNECTION) as pool:
        yield PostgresSaver(pool), PostgresStore(pool, index=INDEX)  # type: ignore[arg-type]


@asynccontextmanager
async def aopened(url: str) -> AsyncIterator[tuple[AsyncPostgresSaver, AsyncPostgresStore]]:
    """As `opened`, on the event loop."""
    async with (
        AsyncConnectionPool(url, min_size=1, max_size=4, open=False, kwargs=CONNECTION) as pool,
        AsyncPostgresStore(pool, index=INDEX) as store,  # type: ignore[arg-type]
    ):
        yield AsyncPostgresSaver(pool), store  # type: ignore[arg-type]


def run(url: str, threads: Sequence[str]) -> None:
    """Run these threads at once, with the models that OPENAI_BASE_URL serves."""
    blocking = [thread for thread in threads if "-async" not in thread]
    with opened(url) as (saver, store), ThreadPoolExecutor(len(threads)) as pool:

        def one(thread: str) -> None:
            case = case_of(thread)
            graph = case.graph(f"openai:{thread}", saver, store)
            graph.invoke(case.given, config(thread), context=case.context, durability=durability(thread))

        runs = [pool.submit(one, thread) for thread in blocking]
        asyncio.run(_on_a_loop(url, [thread for thread in threads if thread not in blocking]))
        for each in runs:
            each.result()


async def _on_a_loop(url: str, threads: Sequence[str]) -> None:
    async with aopened(url) as (saver, store):

        async def one(thread: str) -> None:
            case = case_of(thread)
            graph = case.graph(f"openai:{thread}", saver, store)
            await graph.ainvoke(
                case.given, config(thread), context=case.context, durability=durability(thread)
            )

        await asyncio.gather(*map(one, threads))
