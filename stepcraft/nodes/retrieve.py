"""Find the passages that fit each query (AAG §3.2, RAT §3.2)."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig

from stepcraft.context import Context
from stepcraft.errors import StepcraftError, without_secrets
from stepcraft.evidence import Evidence
from stepcraft.nodes._budget import Budget
from stepcraft.nodes._build import Build, Searcher
from stepcraft.threads import within

Queries = Callable[[Any], Sequence[str]]
Keep = Callable[[Any, list[list[Evidence]], list[str]], dict[str, Any]]


class RetrieveNode(Runnable[Any, dict[str, Any]]):
    """Searches the graph's source, all queries side by side. A search that fails costs that search."""

    def __init__(self, queries: Queries, keep: Keep, build: Build) -> None:
        self.name = "retrieve"
        self.queries = queries
        self.keep = keep
        self.build = build

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """What was found, as the graph keeps it."""
        queries = list(self.queries(input))
        if not queries:
            return self._kept(input, [])
        context = self.build.context.current()

        def search() -> list[Any]:
            source = self.build.searched.searcher(context)
            return source.batch(queries, config, return_exceptions=True)

        found: list[Any]
        try:
            found = within(Budget.of("retrieve", input, context).seconds_left(), search)
        except (TimeoutError, StepcraftError) as failure:
            found = [failure] * len(queries)
        return self._kept(input, found)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """As `invoke`, without blocking the event loop."""
        queries = list(self.queries(input))
        if not queries:
            return self._kept(input, [])
        context = self.build.context.current()
        found: list[Any]
        try:
            async with asyncio.timeout(Budget.of("retrieve", input, context).seconds_left()):
                source = await self._searcher(context)
                found = await source.abatch(queries, config, return_exceptions=True)
        except (TimeoutError, StepcraftError) as failure:
            found = [failure] * len(queries)
        return self._kept(input, found)

    async def _searcher(self, context: Context) -> Searcher:
        searched = self.build.searched
        if searched.is_open(context):
            return searched.searcher(context)
        return await asyncio.to_thread(searched.searcher, context)

    def _kept(self, state: Any, found: Sequence[list[Document] | Exception]) -> dict[str, Any]:  # noqa: ANN401 - any graph's state
        failed = [
            f"{self.name}: a search failed: {_told(error)}" for error in found if isinstance(error, Exception)
        ]
        evidence = [
            [] if isinstance(docs, Exception) else [evidence_of(doc) for doc in docs] for docs in found
        ]
        notes = [note for docs in found if not isinstance(docs, Exception) for note in _notes(docs)]
        return {**self.keep(state, evidence, failed), "warnings": [*failed, *notes]}


def ranked(*lists: Sequence[Evidence]) -> list[Evidence]:
    """Each passage once, with its best score, best first."""
    best: dict[str, Evidence] = {}
    for passage in (passage for found in lists for passage in found):
        known = best.get(passage["id"])
        if known is None or known["score"] < passage["score"]:
            best[passage["id"]] = passage
    return sorted(best.values(), key=lambda passage: -passage["score"])


def evidence_of(document: Document) -> Evidence:
    """A passage from a retriever's document; what the document does not tell is empty, its score 0."""
    facts = document.metadata
    text = document.page_content
    return Evidence(
        id=str(
            document.id or facts.get("id") or hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
        ),
        title=str(facts.get("title") or ""),
        text=text,
        source=str(facts.get("source") or facts.get("url") or ""),
        score=round(float(facts.get("score") or facts.get("relevance_score") or 0.0), 4),
    )


def _notes(documents: Sequence[Document]) -> list[str]:
    return [str(note) for document in documents for note in document.metadata.get("notes", [])]


def _told(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it took longer than the deadline allows"
    return without_secrets(" ".join(str(error).split())[:300]) or type(error).__name__
