"""Find the passages that fit each query (AAG §3.2, RAT §3.2)."""

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.errors import GraphBubbleUp

from stepcraft.concurrency import in_thread, within
from stepcraft.contexts.base import Context, SearchSettings
from stepcraft.errors import StepcraftError
from stepcraft.evidence import NOTES, Evidence
from stepcraft.llm.budget import Budget
from stepcraft.llm.resources import GraphResources
from stepcraft.progress import ProgressData, Said, Status, counted, quoted, tell
from stepcraft.retrieval.target import Searched
from stepcraft.secrets import without_secrets

Outcome = list[Document] | Exception
"""What one search found, or why it failed."""
Queries = Callable[[Any], Sequence[str]]
"""The queries to search for, from the graph's state."""
Keep = Callable[[Any, list[list[Evidence]], list[str]], dict[str, Any]]
"""The state update, from the state, the evidence of each query, and the failures that left a query without any."""
Settings = Callable[[Any, Context], SearchSettings]
"""The settings of the searches, from the graph's state and the run's context."""


_TOLD = 5
"""How many of the passages that were found are told by name."""


class RetrieveNode(Runnable[Any, dict[str, Any]]):
    """Searches all that the run names, all queries side by side.

    What several sources find for a query is interleaved by rank, as scores of different sources do not compare. A
    search that fails or exceeds the deadline becomes a warning; what the others found is kept. Interrupts and
    cancellation pass through.

    Args:
        queries: the queries to search for; without any nothing is searched.
        keep: makes the state update of what was found.
        resources: what the graph was built with.
        settings: the settings of the searches; by default those of the context.
        name: the node's name in its graph.
        description: what the node does, in one line.
        noun: what is found, as progress names it.
        about: what progress is told of the step beside the searches, from the graph's state.
    """

    def __init__(
        self,
        queries: Queries,
        keep: Keep,
        resources: GraphResources,
        settings: Settings | None = None,
        *,
        name: str = "retrieve",
        description: str = "Search for evidence.",
        noun: str = "passage",
        about: Callable[[Any], ProgressData] | None = None,
    ) -> None:
        self.name = self.node = name
        self.description = description
        self.noun = noun
        self.about = about
        self.queries = queries
        self.keep = keep
        self.resources = resources
        self.settings: Settings = settings or (lambda _state, context: context.search_settings())

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """Search and return the state update."""
        queries, context = list(self.queries(input)), self.resources.settings(input)
        config = self.resources.traced(config, context)
        seconds = Budget.of(self.node, input, context).seconds_left()
        self._tell_start(input, queries)
        searched = self._searched(input, context) if queries else []
        if isinstance(searched, StepcraftError):
            return self._update(input, [], [[searched] * len(queries)])
        searches = [partial(_search, one, queries, config, seconds) for one in searched]
        if len(searches) == 1:
            return self._update(input, searched, [searches[0]()])
        return self._update(input, searched, [begun.result() for begun in list(map(in_thread, searches))])

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401 - the signature of Runnable
        """As `invoke`, without blocking the event loop."""
        queries, context = list(self.queries(input)), self.resources.settings(input)
        config = self.resources.traced(config, context)
        seconds = Budget.of(self.node, input, context).seconds_left()
        self._tell_start(input, queries)
        searched = self._searched(input, context) if queries else []
        if isinstance(searched, StepcraftError):
            return self._update(input, [], [[searched] * len(queries)])
        searches = (_asearch(one, queries, config, seconds) for one in searched)
        return self._update(input, searched, await asyncio.gather(*searches))

    def _searched(self, state: Mapping[str, Any], context: Context) -> list[Searched] | StepcraftError:
        try:
            return self.resources.searched.resolve(self.settings(state, context))
        except StepcraftError as failure:
            return failure

    def _update(
        self, state: Mapping[str, Any], searched: Sequence[Searched], outcomes: Sequence[list[Outcome]]
    ) -> dict[str, Any]:
        """The state update from the outcomes of each source, in the order of the queries."""
        names = [f"{one.named.label}: " for one in searched] if len(searched) > 1 else [""]
        found: list[list[Evidence]] = []
        failed: list[str] = []
        warnings: list[str] = []
        notes: list[str] = []
        for of_query in zip(*outcomes, strict=True):
            errors = [
                f"{self.node}: a search failed: {name}{_reason(outcome)}"
                for name, outcome in zip(names, of_query, strict=True)
                if isinstance(outcome, Exception)
            ]
            documents = _interleaved([[] if isinstance(one, Exception) else one for one in of_query])
            found.append([evidence_of(document) for document in documents])
            warnings += errors
            failed += errors if not documents else []
            notes += [str(note) for one in documents for note in one.metadata.get(NOTES, ())]
        found = distinct_ids([state.get("evidence") or [], *found])[1:]
        update = {**self.keep(state, found, failed), "warnings": [*warnings, *notes]}
        status: Status = "failed" if found and len(failed) >= len(found) else "finished"
        described = partial(self._told, state, found, failed, update["warnings"])
        tell(self.resources.method, self.node, status, described)
        return update

    def _tell_start(self, state: Mapping[str, Any], queries: Sequence[str]) -> None:
        def said() -> Said:
            what = quoted(queries[0]) if len(queries) == 1 else f"{len(queries)} queries"
            about = self.about(state) if self.about else ProgressData()
            return Said(f"Searching for {what}.", {**about, "queries": [*queries]})

        if queries:
            tell(self.resources.method, self.node, "started", said)

    def _told(
        self,
        state: Mapping[str, Any],
        found: Sequence[Sequence[Evidence]],
        failed: Sequence[str],
        warnings: list[str],
    ) -> Said:
        data = self.about(state) if self.about else ProgressData()
        if warnings:
            data["warnings"] = warnings
        if not found:
            return Said("There was nothing to search for.", data, skipped=True)
        passages = list({passage["id"]: passage for passages in found for passage in passages}.values())
        data["queries"] = list(self.queries(state))
        data["found"] = len(passages)
        data["ids"] = [passage["id"] for passage in passages[:_TOLD]]
        data["titles"] = [passage["title"] for passage in passages[:_TOLD] if passage["title"]]
        if passages:
            return Said(f"Found {counted(len(passages), self.noun)}.", data)
        if len(failed) >= len(found):
            data["reason"] = failed[0]
        return Said(failed[0] if failed else "Nothing was found.", data)


def _search(
    searched: Searched, queries: list[str], config: RunnableConfig | None, seconds: float | None
) -> list[Outcome]:
    """What each query finds, or why it finds nothing."""

    def search() -> list[Any]:
        return searched.retriever(searched.open()).batch(queries, config, return_exceptions=True)

    try:
        return _without_interrupts(within(seconds, search))
    except (TimeoutError, StepcraftError) as failure:
        return [failure] * len(queries)


async def _asearch(
    searched: Searched, queries: list[str], config: RunnableConfig | None, seconds: float | None
) -> list[Outcome]:
    """As `_search`, without blocking the event loop."""
    try:
        async with asyncio.timeout(seconds):
            retriever = searched.retriever(await searched.aopen())
            found: list[Any] = await retriever.abatch(queries, config, return_exceptions=True)
    except (TimeoutError, StepcraftError) as failure:
        return [failure] * len(queries)
    return _without_interrupts(found)


def _without_interrupts(outcomes: list[Outcome]) -> list[Outcome]:
    """The outcomes; `batch` returns an `interrupt()` in a retriever as one, so it is raised here."""
    for outcome in outcomes:
        if isinstance(outcome, GraphBubbleUp):
            raise outcome
    return outcomes


def _interleaved(found: Sequence[Sequence[Document]]) -> list[Document]:
    """The best of each source, then the second best of each, and so on."""
    longest = max(map(len, found), default=0)
    return [documents[rank] for rank in range(longest) for documents in found if rank < len(documents)]


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return "it took longer than the deadline allows"
    return without_secrets(" ".join(str(error).split()))[:300] or type(error).__name__


def wanted(question: str, resources_text: str) -> str:
    """What is searched for where a question or a goal has not been taken apart (AAG §3.2)."""
    return f"{question} using {resources_text}" if resources_text else question


def ranked(*lists: Sequence[Evidence]) -> list[Evidence]:
    """Each passage once, with its best score, best first."""
    best: dict[str, Evidence] = {}
    for passage in (passage for found in distinct_ids(lists) for passage in found):
        known = best.get(passage["id"])
        if known is None or known["score"] < passage["score"]:
            best[passage["id"]] = passage
    return sorted(best.values(), key=lambda passage: -passage["score"])


def distinct_ids(lists: Iterable[Sequence[Evidence]]) -> list[list[Evidence]]:
    """The lists, with ids that each stand for one text.

    Two sources may use the same id for different passages. The first one keeps it, and the others get a suffix
    that depends on their text alone, so that it is the same wherever the passage is found again.
    """
    texts: dict[str, str] = {}
    distinct: list[list[Evidence]] = []
    for found in lists:
        distinct.append([passage.copy() for passage in found])
        for passage in distinct[-1]:
            if texts.setdefault(passage["id"], passage["text"]) != passage["text"]:
                passage["id"] += f"-{_digest(passage['text'])[:8]}"
    return distinct


def evidence_of(document: Document) -> Evidence:
    """A passage from a retriever's document; what the document does not tell is empty, its score 0."""
    facts = document.metadata
    text = document.page_content
    evidence = Evidence(
        id=str(document.id or facts.get("id") or _digest(text)[:32]),
        title=str(facts.get("title") or ""),
        text=text,
        source=str(facts.get("source") or facts.get("url") or ""),
        score=round(float(facts.get("score") or facts.get("relevance_score") or 0.0), 4),
    )
    if isinstance(composed := facts.get("composed_of"), list):
        evidence["composed_of"] = [str(part) for part in composed]
    return evidence


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
