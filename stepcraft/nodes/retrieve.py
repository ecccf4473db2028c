"""Find the procedures that fit each query (AAG §3.2)."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig

from stepcraft.context import Context
from stepcraft.evidence import Evidence
from stepcraft.nodes._build import Build

Queries = Callable[[Any], Sequence[str]]
Keep = Callable[[Any, list[list[Evidence]]], dict[str, Any]]


class RetrieveNode(Runnable[Any, dict[str, Any]]):
    """Searches the memory, all queries side by side. A search that fails costs that search."""

    def __init__(self, name: str, queries: Queries, keep: Keep, build: Build) -> None:
        self.name = name
        self.queries = queries
        self.keep = keep
        self.build = build

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """What was found, as the graph keeps it."""
        context = self.build.context.current()
        searcher = self._searcher(context)
        found = searcher.batch(list(self.queries(input)), config, return_exceptions=True)
        return self._kept(input, found)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """As `invoke`, without blocking the event loop."""
        context = self.build.context.current()
        searcher = await asyncio.to_thread(self._searcher, context)
        found = await searcher.abatch(list(self.queries(input)), config, return_exceptions=True)
        return self._kept(input, found)

    def _searcher(self, context: Context) -> Runnable[str, list[Document]]:
        memory = self.build.open_memory(context)
        return memory.as_retriever(getattr(context, "k", 3), alpha=getattr(context, "alpha", None))

    def _kept(self, state: Any, found: Sequence[list[Document] | Exception]) -> dict[str, Any]:  # noqa: ANN401 - any graph's state
        failed = [f"{self.name}: a search failed: {error}" for error in found if isinstance(error, Exception)]
        evidence = [[] if isinstance(docs, Exception) else [_evidence(doc) for doc in docs] for docs in found]
        return {**self.keep(state, evidence), "warnings": failed}


def retrieve_node(name: str, queries: Queries, keep: Keep, build: Build) -> RetrieveNode:
    """A step that searches the memory.

    Args:
        name: The node's name in graphs and traces.
        queries: The queries, from the state.
        keep: The state update, from the state and what was found for each query, best first.
        build: What the graph was built with.
    """
    return RetrieveNode(name, queries, keep, build)


def ranked(*lists: Sequence[Evidence]) -> list[Evidence]:
    """Each passage once, with its best score, best first."""
    best: dict[str, Evidence] = {}
    for passage in (passage for found in lists for passage in found):
        known = best.get(passage["id"])
        if known is None or known["score"] < passage["score"]:
            best[passage["id"]] = passage
    return sorted(best.values(), key=lambda passage: -passage["score"])


def _evidence(document: Document) -> Evidence:
    facts = document.metadata
    return Evidence(
        id=facts["id"],
        title=facts["title"],
        text=document.page_content,
        source=facts["source"],
        score=round(float(facts["score"]), 4),
    )
