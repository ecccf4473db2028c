"""Find the passages that fit each query (AAG §3.2, RAT §3.2)."""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig

from stepcraft.concurrency import in_thread, within
from stepcraft.contexts.base import Context
from stepcraft.errors import StepcraftError, without_secrets
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budget
from stepcraft.llm.resources import GraphResources
from stepcraft.retrieval.build import RetrievalTarget, Searcher
from stepcraft.retrieval.shared import in_turn

Outcome = list[Document] | Exception
"""What one search found, or why it failed."""
Sources = Callable[[Any, Context], Sequence[RetrievalTarget]]
"""What a node searches, from its state."""
Queries = Callable[[Any], Sequence[str]]
Keep = Callable[[Any, list[list[Evidence]], list[str]], dict[str, Any]]


class RetrieveNode(Runnable[Any, dict[str, Any]]):
    """Searches the graph's sources, all queries side by side. A search that fails costs that search."""

    def __init__(
        self, queries: Queries, keep: Keep, build: GraphResources, sources: Sources | None = None
    ) -> None:
        self.name = "retrieve"
        self.queries = queries
        self.keep = keep
        self.build = build
        self.sources = sources or self._source

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """What was found, as the graph keeps it."""
        queries = list(self.queries(input))
        if not queries:
            return self._kept(input, [])
        context = self.build.context.current()
        seconds = Budget.of("retrieve", input, context).seconds_left()
        searched = list(self.sources(input, context))
        if len(searched) == 1:
            return self._kept(input, [_search(searched[0], queries, context, config, seconds)])
        begun = [in_thread(partial(_search, one, queries, context, config, seconds)) for one in searched]
        return self._kept(input, [search.result() for search in begun])

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """As `invoke`, without blocking the event loop."""
        queries = list(self.queries(input))
        if not queries:
            return self._kept(input, [])
        context = self.build.context.current()
        seconds = Budget.of("retrieve", input, context).seconds_left()
        searches = [_asearch(one, queries, context, config, seconds) for one in self.sources(input, context)]
        found = [await searches[0]] if len(searches) == 1 else await asyncio.gather(*searches)
        return self._kept(input, found)

    def _source(self, _state: object, _context: Context) -> list[RetrievalTarget]:
        return [self.build.searched]

    def _kept(self, state: Any, sources: Sequence[list[Outcome]]) -> dict[str, Any]:  # noqa: ANN401 - any graph's state
        """What was found for each query: where there are several sources, the best of each, then the second best."""
        outcomes = [outcome for found in sources for outcome in found]
        failed = [
            f"{self.name}: a search failed: {_told(error)}"
            for error in outcomes
            if isinstance(error, Exception)
        ]
        found = [
            in_turn([[] if isinstance(docs, Exception) else docs for docs in of_query])
            for of_query in zip(*sources, strict=True)
        ]
        evidence = [[evidence_of(document) for document in docs] for docs in found]
        notes = [note for docs in found for note in _notes(docs)]
        return {**self.keep(state, evidence, failed), "warnings": [*failed, *notes]}


def _search(
    searched: RetrievalTarget,
    queries: list[str],
    context: Context,
    config: RunnableConfig | None,
    seconds: float | None,
) -> list[Outcome]:
    """What each query finds, or why it finds nothing."""

    def search() -> list[Any]:
        return searched.searcher(context).batch(queries, config, return_exceptions=True)

    try:
        return within(seconds, search)
    except (TimeoutError, StepcraftError) as failure:
        return [failure] * len(queries)


async def _asearch(
    searched: RetrievalTarget,
    queries: list[str],
    context: Context,
    config: RunnableConfig | None,
    seconds: float | None,
) -> list[Outcome]:
    """As `_search`, without blocking the event loop."""
    try:
        async with asyncio.timeout(seconds):
            source = await _searcher(searched, context)
            found: list[Any] = await source.abatch(queries, config, return_exceptions=True)
            return found
    except (TimeoutError, StepcraftError) as failure:
        return [failure] * len(queries)


async def _searcher(searched: RetrievalTarget, context: Context) -> Searcher:
    if searched.is_open(context):
        return searched.searcher(context)
    return await asyncio.to_thread(searched.searcher, context)


def wanted(question: str, resources_text: str) -> str:
    """What is searched for where a question or a goal has not been taken apart (AAG §3.2)."""
    return f"{question} using {resources_text}" if resources_text else question


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
    evidence = Evidence(
        id=str(
            document.id or facts.get("id") or hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]
        ),
        title=str(facts.get("title") or ""),
        text=text,
        source=str(facts.get("source") or facts.get("url") or ""),
        score=round(float(facts.get("score") or facts.get("relevance_score") or 0.0), 4),
    )
    if composed := facts.get("composed_of"):
        evidence["composed_of"] = [str(part) for part in composed]
    return evidence


def _notes(documents: Sequence[Document]) -> list[str]:
    return [str(note) for document in documents for note in document.metadata.get("notes", [])]


def _told(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it took longer than the deadline allows"
    return without_secrets(" ".join(str(error).split())[:300]) or type(error).__name__
