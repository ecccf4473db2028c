"""Find the passages that fit each query (AAG §3.2, RAT §3.2).

The queries are those of the plan, then those of the parts of the draft.
"""

import asyncio
import hashlib
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.documents import Document
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.errors import GraphBubbleUp

from stepcraft.concurrency import within
from stepcraft.errors import StepcraftError
from stepcraft.evidence import NOTES, Evidence
from stepcraft.llm.limits import limits_of
from stepcraft.llm.resources import Resources
from stepcraft.nodes.begin import store_of_run
from stepcraft.nodes.state import Finding
from stepcraft.progress import counted, emit, quoted
from stepcraft.retrieval.target import Searched
from stepcraft.secrets import without_secrets

Outcome = list[Document] | Exception
"""What one search found, or why it failed."""

NAME = "retrieve"
ALONE = 5
"""A question that is the only query before a draft has to find more than one of several."""


class Retrieve(Runnable[Any, dict[str, Any]]):
    """Searches all that the run names for every query that was not searched for yet, side by side.

    What several sources find for a query is interleaved by rank, as scores of different sources do
    not compare. A search that fails or exceeds the deadline becomes a warning; what the others
    found is kept.

    Args:
        resources: What the graph is built with.
        alone: Passages that a query finds at least where it is the only one before a draft.
    """

    def __init__(self, resources: Resources[Any], alone: int = ALONE) -> None:
        self.name = NAME
        self.resources = resources
        self.alone = alone

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:
        """Search and return the state update."""
        queries, settings = pending_queries(input), self.resources.settings(input)
        if not queries:
            return {}
        self._announce(queries)
        seconds = limits_of(input).seconds_left(settings)
        searched = self.resources.target.open(settings, store_of_run())
        k = self._k(input, settings.k)
        outcomes = [_search(each, queries, k, config, seconds) for each in searched]
        return self._update(input, queries, searched, outcomes)

    async def ainvoke(
        self, input: Any, config: RunnableConfig | None = None, **_: Any
    ) -> dict[str, Any]:
        """As `invoke`, without blocking the event loop."""
        queries, settings = pending_queries(input), self.resources.settings(input)
        if not queries:
            return {}
        self._announce(queries)
        seconds = limits_of(input).seconds_left(settings)
        searched = await asyncio.to_thread(self.resources.target.open, settings, store_of_run())
        k = self._k(input, settings.k)
        searches = [_asearch(each, queries, k, config, seconds) for each in searched]
        return self._update(input, queries, searched, await asyncio.gather(*searches))

    def _k(self, state: Mapping[str, Any], k: int) -> int:
        return max(k, self.alone) if not state["parts"] and len(state["queries"]) == 1 else k

    def _announce(self, queries: Sequence[str]) -> None:
        what = (
            quoted(queries[0])
            if len(queries) == 1
            else counted(len(queries), "query").replace("ys", "ies")
        )
        emit(self.resources.graph, NAME, f"Searching for {what}.")

    def _update(
        self,
        state: Mapping[str, Any],
        queries: Sequence[str],
        searched: Sequence[Searched],
        outcomes: Sequence[list[Outcome]],
    ) -> dict[str, Any]:
        labels = [f"{each.label}: " for each in searched] if len(searched) > 1 else [""]
        evidence: list[Evidence] = list(state["evidence"])
        numbers = {_key(passage): number for number, passage in enumerate(evidence, 1)}
        ids = {passage["id"] for passage in evidence}
        findings: list[Finding] = list(state["findings"])
        warnings, before = list[str](), len(evidence)
        for query, of_query in zip(queries, zip(*outcomes, strict=True), strict=True):
            for label, outcome in zip(labels, of_query, strict=True):
                if isinstance(outcome, Exception):
                    warnings.append(
                        "retrieve: a search failed, so its part is unchecked: "
                        f"{label}{_reason(outcome)}"
                    )
            places: list[int] = []
            for document in _interleaved(of_query):
                passage = _evidence(document, ids)
                if _key(passage) not in numbers:
                    evidence.append(passage)
                    ids.add(passage["id"])
                    numbers[_key(passage)] = len(evidence)
                places.append(numbers[_key(passage)])
                warnings += [str(note) for note in document.metadata.get(NOTES, ())]
            findings.append(Finding(query=query, passages=list(dict.fromkeys(places))))
        emit(
            self.resources.graph,
            NAME,
            f"Found {counted(len(evidence) - before, 'new passage')}.",
        )
        return {"evidence": evidence, "findings": findings, "warnings": warnings}


def pending_queries(state: Mapping[str, Any]) -> list[str]:
    """Return the queries that have not been searched for.

    They are those of the pending parts, or before there are any, those of the plan.
    """
    parts = [state["parts"][number - 1] for number in state.get("pending", ())]
    queries = [query for part in parts for query in part["queries"]] or state["queries"]
    done = {each["query"] for each in state["findings"]}
    return [query for query in dict.fromkeys(queries) if query and query not in done]


def _search(
    searched: Searched,
    queries: list[str],
    k: int,
    config: RunnableConfig | None,
    seconds: float | None,
) -> list[Outcome]:
    batch = partial(searched.retriever.batch, queries, config, return_exceptions=True, k=k)
    try:
        return _without_interrupts(within(seconds, batch))
    except (TimeoutError, StepcraftError) as failure:
        return [failure] * len(queries)


async def _asearch(
    searched: Searched,
    queries: list[str],
    k: int,
    config: RunnableConfig | None,
    seconds: float | None,
) -> list[Outcome]:
    try:
        async with asyncio.timeout(seconds):
            outcomes: list[Any] = await searched.retriever.abatch(
                queries, config, return_exceptions=True, k=k
            )
    except (TimeoutError, StepcraftError) as failure:
        return [failure] * len(queries)
    return _without_interrupts(outcomes)


def _without_interrupts(outcomes: list[Any]) -> list[Outcome]:
    """Raise an `interrupt()` in a retriever, which `batch` returns as an outcome."""
    for outcome in outcomes:
        if isinstance(outcome, GraphBubbleUp):
            raise outcome
    return outcomes


def _interleaved(outcomes: Sequence[Outcome]) -> list[Document]:
    """Return the best document of each source, then the second best of each, and so on."""
    lists = [outcome for outcome in outcomes if isinstance(outcome, list)]
    longest = max(map(len, lists), default=0)
    return [
        documents[rank] for rank in range(longest) for documents in lists if rank < len(documents)
    ]


def _key(passage: Evidence) -> tuple[str, str, str]:
    """Return what tells a passage from others: equal words of two places are two passages."""
    return passage["title"], passage["source"], passage["text"]


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return "it took longer than the deadline allows"
    return without_secrets(" ".join(str(error).split()))[:300] or type(error).__name__


def _evidence(document: Document, taken: set[str]) -> Evidence:
    """Return a passage of a document.

    An id that another passage has gets a suffix of the text's own.
    """
    facts, text = document.metadata, document.page_content
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    id_ = str(document.id or facts.get("id") or digest[:32])
    score = _number(facts.get("score") or facts.get("relevance_score"))
    return Evidence(
        id=f"{id_}-{digest[:8]}" if id_ in taken else id_,
        title=str(facts.get("title") or ""),
        text=text,
        source=str(facts.get("source") or facts.get("url") or ""),
        score=score,
    )


def _number(score: Any) -> float:
    """Return a score as a number; 0.0 where it is none."""
    try:
        number = float(score)
    except (TypeError, ValueError):
        return 0.0
    return round(number, 4) if math.isfinite(number) else 0.0
