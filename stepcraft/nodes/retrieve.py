"""Retrieve passages for the queries in the plan, then for the parts (AAG §3.2, RAT §3.2)."""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import zip_longest
from typing import Any, TypeGuard

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langgraph.errors import GraphBubbleUp

from stepcraft.errors import NoAnswer, StepcraftError
from stepcraft.evidence import NOTES, Evidence, key_of
from stepcraft.llm.calls import Call, Calls, Node
from stepcraft.llm.limits import TOO_LATE, RunLimits, limits_of
from stepcraft.llm.resources import Resources
from stepcraft.nodes.begin import store_of_run
from stepcraft.nodes.state import Finding, Part
from stepcraft.progress import counted, emit, quoted
from stepcraft.retrieval.fusion import CANDIDATES, fused
from stepcraft.retrieval.target import OpenedSource
from stepcraft.retriever import Source
from stepcraft.secrets import masked_line
from stepcraft.text.clean import stems

NAME = "retrieve"
LEAST_FIT = 1.0
"""The minimum length-normalised word overlap for adding a neighbouring passage."""


class Retrieve(Node):
    """Searches all of a run's sources for every query that has not been searched for yet.

    If a query is run on several sources, their results are interleaved by rank, because scores from
    different sources are not comparable. The passages for several planned queries are chosen
    together if `fuse` is set. A search that fails or exceeds the deadline becomes a warning. A
    query returns one passage if it is for a single statement, or if the draft was written from
    passages.
    Parts that are looked up statement by statement also get the neighbouring passage on the same
    page that shares the most words with them, since exceptions are often stated in the next
    section.

    Args:
        resources: The resources that the graph is built with.
        by_statement: Whether to look up parts statement by statement rather than as a whole. This
            has no effect if a model writes the queries.
        fuse: Whether to choose the passages for several planned queries together.
    """

    def __init__(
        self, resources: Resources[Any], *, by_statement: bool = False, fuse: bool = False
    ) -> None:
        self.name = NAME
        self.resources = resources
        self.by_statement = by_statement
        self.fuse = fuse

    async def run(self, state: Any, calls: Calls) -> dict[str, Any]:
        """Search and return the state update."""
        settings = self.resources.settings(state)
        queries = self._queries(state)
        if not queries:
            return {}
        limits = limits_of(state, settings)
        text = f"Running {len(queries)} searches."
        if len(queries) == 1:
            text = f"Searching for {quoted(queries[0])}."
        emit(self.resources.graph, NAME, text)
        passages = Passages(state, has_deadline=limits.ends_at is not None)
        sources = await self._sources(settings, passages, calls, limits)
        has_parts, parts = bool(state.get("parts")), pending_parts(state)
        by_statement = self.by_statement and not state["model_queries"]
        is_fused = self.fuse and len(queries) > 1 and not has_parts
        k = settings.k * CANDIDATES if is_fused else settings.k
        if parts and (by_statement or state["passages_seen"]):
            k = 1
        searches = [
            Call(source.retriever, query, {"k": k}) for query in queries for source in sources
        ]
        seconds = limits.seconds_left()
        if seconds and not has_parts:  # leave the other half for the draft
            seconds /= 2
        outcomes = iter(await calls.outcomes(searches, seconds))
        results = {
            query: passages.results([(source.label, next(outcomes)) for source in sources])
            for query in queries
        }
        _check_time(state, results, limits)
        with_neighbours = [each.retriever for each in sources if _knows_neighbours(each.retriever)]
        neighbours = partial(_beside, with_neighbours)
        chosen = {query: _interleaved(lists) for query, lists in results.items()}
        if is_fused:
            try:
                fusing = partial(fused, results, settings.k, neighbours)
                chosen = await calls.function(fusing, limits.seconds_left())
            except (TimeoutError, StepcraftError):  # the neighbours cannot be read
                chosen = fused(results, settings.k, lambda _: ())
        # Searches that failed in every source are not recorded as made.
        passages.failed -= results.keys()
        passages.failed |= {q for q, lists in results.items() if len(lists) < len(sources)}
        found = {query: chosen[query] for query, lists in results.items() if lists}
        for query, new in found.items():
            passages.add(query, new)
        if parts and by_statement and with_neighbours:
            best = partial(_best_beside, parts, found, passages, neighbours)
            with suppress(TimeoutError, StepcraftError):
                for query, passage in await calls.function(best, limits.seconds_left()):
                    passages.add(query, [passage])
        emit(self.resources.graph, NAME, f"Found {counted(passages.new, 'new passage')}.")
        return {**passages.update(), "limits": limits}

    async def _sources(
        self, settings: Any, passages: "Passages", calls: Calls, limits: RunLimits
    ) -> list[OpenedSource]:
        """Open the sources, or return none if it takes too long."""
        target = self.resources.target
        opening = partial(target.open, settings, store_of_run())
        if target.is_open(settings):
            return opening()
        try:
            return await calls.function(opening, limits.seconds_left())
        except TimeoutError as failure:
            passages.fail("", failure)
            return []

    def _queries(self, state: Mapping[str, Any]) -> list[str]:
        """Return the queries of the pending parts, or else of the plan, not searched for yet."""
        parts = pending_parts(state)
        wanted = (
            [query for part in parts for query in part["queries"]] if parts else state["queries"]
        )
        done = {"", *(each["query"] for each in state["findings"] if not each.get("failed"))}
        return [query for query in dict.fromkeys(wanted) if query not in done]


class Passages:
    """The evidence collected for a run; search results are added to it."""

    def __init__(self, state: Mapping[str, Any], *, has_deadline: bool = False) -> None:
        self.has_deadline = has_deadline
        self.evidence: list[Evidence] = list(state["evidence"])
        self._findings = {each["query"]: each["passages"] for each in state["findings"]}
        self.failed = {each["query"] for each in state["findings"] if each.get("failed")}
        self._numbers = {key_of(passage): number for number, passage in enumerate(self.evidence, 1)}
        self._ids = {each["id"] for each in self.evidence}
        self._left_out = {_place(each) for each in self.evidence if not each["text"]}
        self._before = len(self.evidence)
        self._warnings: list[str] = []

    @property
    def new(self) -> int:
        """The number of passages added."""
        return len(self.evidence) - self._before

    def has(self, passage: Evidence) -> bool:
        """Return whether a passage is already among the evidence, or a person has left it out."""
        return key_of(passage) in self._numbers or self._is_left_out(passage)

    def fail(self, label: str, failure: Exception) -> None:
        """Add a failed search to the warnings."""
        name = f"{label}: " if label else ""
        reason = masked_line(failure) or type(failure).__name__
        if isinstance(failure, TimeoutError) and not str(failure):
            limit = "the deadline allows" if self.has_deadline else "it may"
            reason = f"it took longer than {limit}"
        self._warnings.append(
            f"retrieve: a search failed, so something may be unchecked: {name}{reason}"
        )

    def results(
        self, outcomes: Sequence[tuple[str, list[Document] | Exception]]
    ) -> list[list[Evidence]]:
        """Return each source's results for a query; a search that failed becomes a warning.

        Raises:
            GraphBubbleUp: A retriever called `interrupt`.
        """
        lists: list[list[Evidence]] = []
        for label, outcome in outcomes:
            if isinstance(outcome, GraphBubbleUp):
                raise outcome
            if isinstance(outcome, Exception):
                self.fail(label if len(outcomes) > 1 else "", outcome)
            else:
                lists.append([*map(_evidence, outcome)])
                for document in outcome:
                    self._warnings += map(str, document.metadata.get(NOTES, ()))
        return lists

    def add(self, query: str, passages: Iterable[Evidence]) -> None:
        """Add passages that were found for a query, except those that a person has left out.

        Passages without any text are not added, so that only a person can leave out a passage.
        """
        wanted = (each for each in passages if each["text"] and not self._is_left_out(each))
        new = [self.number(each) for each in wanted]
        numbers = [*self._findings.get(query, []), *new]
        self._findings[query] = list(dict.fromkeys(numbers))

    def number(self, passage: Evidence) -> int:
        """Return the number of a passage, adding it if it is new.

        If another passage already has its id, a suffix derived from its title, source and text is
        appended.
        """
        key = key_of(passage)
        if key not in self._numbers:
            if passage["id"] in self._ids:
                passage = _renamed(passage)
            self.evidence.append(passage)
            self._ids.add(passage["id"])
            self._numbers[key] = len(self.evidence)
        return self._numbers[key]

    def update(self) -> dict[str, Any]:
        """Return the state update."""
        return {
            "evidence": self.evidence,
            "findings": [
                Finding(query=query, passages=passages, failed=True)
                if query in self.failed
                else Finding(query=query, passages=passages)
                for query, passages in self._findings.items()
            ],
            "warnings": self._warnings,
        }

    def _is_left_out(self, passage: Evidence) -> bool:
        """Return whether a person has left a passage out, by setting its text to ""."""
        return not self._left_out.isdisjoint([_place(passage), _place(_renamed(passage))])


def _place(passage: Evidence) -> tuple[str, str, str]:
    """Return the key of a passage, ignoring its text."""
    return passage["id"], passage["title"], passage["source"]


def _renamed(passage: Evidence) -> Evidence:
    """Return a passage with a suffix on its id, which another passage has."""
    suffix = _digest("\0".join(key_of(passage)))[:8]
    return {**passage, "id": f"{passage['id']}-{suffix}"}


def _check_time(state: Mapping[str, Any], results: Mapping[str, Any], limits: RunLimits) -> None:
    """End a run that has no draft if a search failed and the deadline has passed.

    The searches are then repeated if the run is resumed.

    Raises:
        NoAnswer: The run ends.
    """
    if not (state.get("first_draft") or all(results.values())) and limits.seconds_left() == 0:
        raise NoAnswer(f"nothing was written: {TOO_LATE}")


def pending_parts(state: Mapping[str, Any]) -> list[Part]:
    """Return the parts that are still to be checked, or none before there is a draft."""
    return [state["parts"][number - 1] for number in state.get("pending", ())]


def _knows_neighbours(retriever: BaseRetriever) -> TypeGuard[Source]:
    return isinstance(retriever, Source) and type(retriever).beside is not Source.beside


def _beside(sources: Sequence[Source], passage: Evidence) -> list[Evidence]:
    """Return the passages before and after a passage, if its source knows them."""
    return [_evidence(each) for source in sources for each in source.beside(passage["id"])]


def _best_beside(
    parts: Sequence[Part],
    found: Mapping[str, Sequence[Evidence]],
    passages: Passages,
    neighbours: Callable[[Evidence], list[Evidence]],
) -> list[tuple[str, Evidence]]:
    """Return, for each part, the neighbouring passage that shares the most words with it.

    Each passage is paired with one of its part's queries.

    Args:
        parts: The parts.
        found: The passages that this step has found, by query.
        passages: All passages of the run, which are not added again.
        neighbours: Returns the passages before and after a passage.
    """
    chosen: list[tuple[str, Evidence]] = []
    for part in parts:
        queries = [query for query in part["queries"] if query in found]
        by_id = {passage["id"]: passage for query in queries for passage in found[query]}
        near = [each for passage in by_id.values() for each in neighbours(passage)]
        fit = partial(_fit, stems(part["text"]))
        best = max((each for each in near if not passages.has(each)), key=fit, default=None)
        if best and fit(best) >= LEAST_FIT:
            chosen.append((queries[0], best))
    return chosen


def _fit(words: frozenset[str], passage: Evidence) -> float:
    """Return how many of the given words a passage has, in proportion to its length."""
    terms = stems(f"{passage['title']} {passage['text']}")
    return len(words & terms) / math.sqrt(5 + len(terms))


def _interleaved(lists: Sequence[list[Evidence]]) -> list[Evidence]:
    """Return the best passage from each source, then the second best from each, and so on."""
    return [passage for rank in zip_longest(*lists) for passage in rank if passage]


def _evidence(document: Document) -> Evidence:
    """Return a document as a passage."""
    facts, text = document.metadata, document.page_content
    return Evidence(
        id=str(document.id or facts.get("id") or _digest(text)[:32]),
        title=str(facts.get("title") or ""),
        text=text,
        source=str(facts.get("source") or facts.get("url") or ""),
        score=_score(facts.get("score", facts.get("relevance_score"))),
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _score(score: Any) -> float:
    """Return a score as a number, or 0.0 if it is not one."""
    try:
        number = float(score)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return round(number, 4) if math.isfinite(number) else 0.0
