"""Find the passages that fit each query (AAG §3.2, RAT §3.2).

The queries are those of the plan, then those of the parts of the draft.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from langchain_core.documents import Document
from langgraph.errors import GraphBubbleUp

from stepcraft.evidence import NOTES, Evidence
from stepcraft.llm.calls import Call, Calls, Node
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


class Retrieve(Node):
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

    async def run(self, state: Any, calls: Calls) -> dict[str, Any]:
        """Search and return the state update."""
        queries, settings = open_queries(state), self.resources.settings(state)
        if not queries:
            return {}
        self._announce(queries)
        limits = limits_of(state, settings)
        target = self.resources.target
        target_open = partial(target.open, settings, store_of_run())
        try:
            searched = (
                target_open()
                if target.is_open(settings)
                else await calls.function(target_open, limits.seconds_left())
            )
        except TimeoutError as failure:
            warning = (
                f"retrieve: nothing was searched, so its part is unchecked: {_reason(failure)}"
            )
            findings = [Finding(query=query, passages=[]) for query in queries]
            found = [*state["findings"], *findings]
            return {"findings": found, "warnings": [warning], "limits": limits}
        options = {"k": self._k(state, settings.k)}
        searches = [Call(each.retriever, query, options) for each in searched for query in queries]
        results = await calls.outcomes(searches, limits.seconds_left())
        for result in results:
            if isinstance(result, GraphBubbleUp):  # an `interrupt()` in a retriever
                raise result
        size = len(queries)
        outcomes = [results[place : place + size] for place in range(0, len(results), size)]
        return {**self._update(state, queries, searched, outcomes), "limits": limits}

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
        numbers = {passage["text"]: number for number, passage in enumerate(evidence, 1)}
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
                if document.page_content not in numbers:
                    evidence.append(_evidence(document, {passage["id"] for passage in evidence}))
                    numbers[document.page_content] = len(evidence)
                places.append(numbers[document.page_content])
                warnings += [str(note) for note in document.metadata.get(NOTES, ())]
            findings.append(Finding(query=query, passages=list(dict.fromkeys(places))))
        emit(
            self.resources.graph,
            NAME,
            f"Found {counted(len(evidence) - before, 'new passage')}.",
        )
        return {"evidence": evidence, "findings": findings, "warnings": warnings}


def open_queries(state: Mapping[str, Any]) -> list[str]:
    """Return the queries that have not been searched for.

    They are those of the parts, or before there are any, those of the plan.
    """
    queries = [part["query"] for part in state["parts"]] or state["queries"]
    done = {each["query"] for each in state["findings"]}
    return [query for query in dict.fromkeys(queries) if query and query not in done]


def _interleaved(outcomes: Sequence[Outcome]) -> list[Document]:
    """Return the best document of each source, then the second best of each, and so on."""
    lists = [outcome for outcome in outcomes if isinstance(outcome, list)]
    longest = max(map(len, lists), default=0)
    return [
        documents[rank] for rank in range(longest) for documents in lists if rank < len(documents)
    ]


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
    score = float(facts.get("score") or facts.get("relevance_score") or 0.0)
    return Evidence(
        id=f"{id_}-{digest[:8]}" if id_ in taken else id_,
        title=str(facts.get("title") or ""),
        text=text,
        source=str(facts.get("source") or facts.get("url") or ""),
        score=round(score, 4) if math.isfinite(score) else 0.0,
    )
