"""Select the sentences of all passages that a segment is written from (RPG §3.2)."""

import asyncio
import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig

from stepcraft.concurrency import SerialExecutor, in_thread, within
from stepcraft.contexts.rpg import RpgContext
from stepcraft.errors import SourceFailure
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budget, Budgeted
from stepcraft.llm.resources import GraphResources
from stepcraft.policy import Reference
from stepcraft.progress import Said, counted, quoted, tell
from stepcraft.rerank import Reranker, Sentence
from stepcraft.rerank.ready import Ready, ReadySentences
from stepcraft.rerank.resolve import resolve_reranker
from stepcraft.secrets import without_secrets
from stepcraft.segments import Segment, Selected
from stepcraft.text.clean import normalised, tokens


class Reading(Budgeted):
    """The input of this node."""

    plan: str
    signal: str
    question: str
    evidence: list[Evidence]
    segments: list[Segment]


class SelectNode(Runnable[Any, dict[str, Any]]):
    """Scores the sentences of all passages against the plan and keeps the best, in document order.

    A reranker that fails is replaced by the default one, and that by word matching alone. Nothing is selected before
    there is a plan.

    Args:
        resources: What the graph was built with, the reranker among it.

    Raises:
        BadInput: The reranker that the graph is built with cannot be used.
    """

    def __init__(self, resources: GraphResources) -> None:
        self.name = self.node = "select"
        self.description = "Select the sentences that fit the topic."
        self.resources = resources
        given = resources.reranker
        self._given = None if isinstance(given, str | None) else resolve_reranker(given)
        self._checked: dict[str | None, Reranker] = {}
        self._ready = ReadySentences()
        self._executor = SerialExecutor()

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401, ARG002 - the signature of Runnable
        """The selected sentences, and warnings.

        Raises:
            BadInput: The context names an unknown reranker.
        """
        context = RpgContext.current(input)
        if (known := _without_ranking(input, context)) is not None:
            return self._told(input, _update(known))
        return self._told(input, self.select(input, context, self._reranker(context)))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401, ARG002 - the signature of Runnable
        """As `invoke`, without blocking the event loop."""
        context = RpgContext.current(input)
        if (known := _without_ranking(input, context)) is not None:
            return self._told(input, _update(known))
        reranker = self._checked.get(context.reranker)
        if reranker is None:  # a run resumed in another process has not checked it; loading it blocks
            reranker = await asyncio.wrap_future(in_thread(partial(self._reranker, context)))
        work = partial(self.select, input, context, reranker)
        made = await (asyncio.wrap_future(in_thread(work)) if reranker.waits else self._executor.submit(work))
        return self._told(input, made)

    def _told(self, state: Reading, update: dict[str, Any]) -> dict[str, Any]:
        """The update, which is told."""
        tell(self.resources.method, self.node, "finished", lambda: _describe(state, update))
        return update

    def check(self, context: RpgContext) -> None:
        """Load the reranker of a run before its first model call.

        Raises:
            BadInput: There is no such reranker, or its package is not installed.
        """
        if context.retrieve and context.select:
            self._checked[context.reranker] = self._reranker(context)

    def prepare(self, evidence: Sequence[Evidence], context: RpgContext) -> None:
        """Split and embed the sentences in a thread of its own, while the first segment is planned."""
        if evidence and context.select:
            reranker = self._reranker(context)
            in_thread(lambda: self._ready.of(evidence, reranker))

    def _reranker(self, context: RpgContext) -> Reranker:
        """The reranker of the context, of the graph, or the default.

        Raises:
            BadInput: The context names a reranker that is unknown or not allowed.
        """
        if self._given and not context.reranker:
            return self._given
        if (named := context.reranker) and named != self.resources.reranker:
            self.resources.policy.check("reranker", named, [Reference("reranker", named)])
        return resolve_reranker(named or self.resources.reranker)

    def select(self, state: Reading, context: RpgContext, reranker: Reranker) -> dict[str, Any]:
        """The sentences for the plan, ranked by a reranker, or by a simpler one where it fails."""
        plan = state["plan"].strip() or state["question"]
        limit = Budget.of("select", state, context).seconds_left()
        used = [one["text"] for segment in state["segments"] for one in segment["sentences"]]
        warnings: list[str] = []
        for choice in (reranker, "hybrid", "words"):
            try:
                ranks = resolve_reranker(choice) if isinstance(choice, str) else choice
                seconds = limit if ranks.waits else None
                ready, scores = within(seconds, partial(self._scores, state, plan, ranks))
            except Exception as failure:
                name = without_secrets(choice if isinstance(choice, str) else choice.name)
                text = without_secrets(" ".join(str(failure).split()))[:200] or type(failure).__name__
                why = "it took longer than the deadline allows" if isinstance(failure, TimeoutError) else text
                warnings.append(
                    f"select: the reranker {name} failed, and the next best ranking was used: {why}"
                )
                continue
            least = ranks.threshold if context.threshold is None or warnings else context.threshold
            budget = context.max_evidence_tokens
            if context.paper:
                return _update(chosen(ready.sentences, scores, least, budget, used), warnings)
            # Where one sentence fits, others that nearly do are told apart by the model better than by the reranker.
            fill = least / 2 if context.threshold is None and least > 0 else least
            if max(scores, default=least) <= least:
                return _update([], warnings)
            around = context.context_sentences
            return _update(chosen_in_context(ready.sentences, scores, fill, budget, around), warnings)
        return _update([], warnings)

    def _scores(self, state: Reading, plan: str, reranker: Reranker) -> tuple[Ready, list[float]]:
        ready = self._ready.of(state["evidence"], reranker)
        scores = [float(score) for score in ready.ranking.scores(plan)] if ready.sentences else []
        if len(scores) != len(ready.sentences):
            raise SourceFailure(f"it gave {len(scores):,} scores for {len(ready.sentences):,} sentences")
        if any(math.isnan(score) or score == math.inf for score in scores):
            raise SourceFailure("it gave a score that is not finite")
        return ready, scores


def _describe(state: Reading, update: dict[str, Any]) -> Said:
    plan, sentences = state["plan"], len(update["selected"])
    if not plan:
        return Said("There is no topic to select sentences for.", skipped=True)
    if sentences:
        told = f"Selected {counted(sentences, 'sentence')} on {quoted(plan)}."
        return Said(told, {"topic": plan, "sentences": sentences})
    return Said(f"No sentence fits {quoted(plan)}.", {"topic": plan, "sentences": 0})


def _without_ranking(state: Reading, context: RpgContext) -> list[Selected] | None:
    """What is selected where no ranking is needed; None where one is."""
    if state.get("signal") or not state["plan"]:
        return []
    return None if context.select else whole(state["evidence"], context.max_evidence_tokens)


def _update(selected: list[Selected], warnings: Sequence[str] = ()) -> dict[str, Any]:
    return {"selected": selected, "warnings": list(warnings)}


def whole(evidence: Iterable[Evidence], budget: int) -> list[Selected]:
    """Whole passages in their order, up to a budget of tokens; the passage that crosses it is cut and marked."""
    mark = " \u2026"
    kept: list[Selected] = []
    left = budget
    for passage in evidence:
        text = passage["text"].strip()
        if tokens(text) > left:
            size = max(0, 4 * left - len(mark.encode()))
            start = text.encode("utf-8", "replace")[:size].decode("utf-8", "ignore").rstrip()
            text = start + mark if start else ""
        if text:
            kept.append(Selected(passage=passage["id"], position=0, text=text, score=passage["score"]))
            left -= tokens(text)
    return kept


_SHORT_PASSAGE = 150
"""Passages of at most so many tokens are shown whole."""


def chosen_in_context(
    sentences: Sequence[Sentence], scores: Sequence[float], least: float, budget: int, around: int
) -> list[Selected]:
    """The best sentences above a score with what they need to be understood, within a budget of tokens.

    A sentence brings its neighbours and the opening of its passage; a short passage comes whole.
    """
    places: dict[str, list[int]] = {}
    for place, one in enumerate(sentences):
        places.setdefault(one.passage, []).append(place)
    lengths = {name: sum(sentences[place].tokens for place in own) for name, own in places.items()}
    kept: set[int] = set()
    left = budget
    fitting = [place for place, score in enumerate(scores) if score > least]
    for place in sorted(fitting, key=lambda place: -scores[place]):
        name = sentences[place].passage
        own = places[name]
        near = own
        if around and lengths[name] > _SHORT_PASSAGE:
            at = own.index(place)
            near = [own[0], *own[max(0, at - around) : at + around + 1]]
        for needed in [place, *near] if around else [place]:
            if needed not in kept and sentences[needed].tokens <= left:
                kept.add(needed)
                left -= sentences[needed].tokens
    return [_selected(sentences[place], scores[place]) for place in sorted(kept)]


def _selected(sentence: Sentence, score: float) -> Selected:
    return Selected(
        passage=sentence.passage, position=sentence.position, text=sentence.text, score=round(score, 6)
    )


def chosen(
    sentences: Sequence[Sentence], scores: Sequence[float], least: float, budget: int, used: Iterable[str]
) -> list[Selected]:
    """The best sentences above a score that fit a budget of tokens, in document order, without repetitions."""
    seen = {normalised(text) for text in used}
    kept: list[int] = []
    left = budget
    fitting = [place for place, score in enumerate(scores) if score > least]
    for place in sorted(fitting, key=lambda place: -scores[place]):
        one = sentences[place]
        if not left:
            break
        if one.tokens <= left and one.folded not in seen:
            seen.add(one.folded)
            kept.append(place)
            left -= one.tokens
    return [_selected(sentences[place], scores[place]) for place in sorted(kept)]
