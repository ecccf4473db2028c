"""Select the sentences of all passages that a segment is written from (RPG §3.2)."""

import asyncio
import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import TypedDict

from stepcraft.concurrency import SerialExecutor, in_thread, within
from stepcraft.contexts.rpg import RpgContext
from stepcraft.errors import SourceFailure, without_secrets
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budget
from stepcraft.llm.resources import GraphResources
from stepcraft.rerank import Reranker, Sentence
from stepcraft.rerank.ready import Ready, ReadySentences
from stepcraft.rerank.resolve import resolve_reranker
from stepcraft.segments import Segment, Selected
from stepcraft.text.clean import normalised, tokens


class Reading(TypedDict):
    """What this node reads."""

    plan: str
    question: str
    evidence: list[Evidence]
    segments: list[Segment]


class SelectNode(Runnable[Any, dict[str, Any]]):
    """Scores the sentences of all passages against the plan and keeps the best, in the order of the passages.

    A reranker that fails costs its ranking: the default one is used, and by words alone if that fails, too.

    Raises:
        BadInput: the reranker that the graph is built with cannot be used.
    """

    def __init__(self, build: GraphResources) -> None:
        self.name = "select"
        self.build = build
        self._given = None if isinstance(build.reranker, str | None) else resolve_reranker(build.reranker)
        self._checked: dict[str | None, Reranker] = {}
        self._ready = ReadySentences()
        self._line = SerialExecutor()

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401, ARG002 - the signature of Runnable
        """What is selected, and what went wrong.

        Raises:
            BadInput: the context names a reranker that there is not.
        """
        context = RpgContext.current()
        if not context.select:
            return _update(whole(input["evidence"], context.max_evidence_tokens))
        return self.selected(input, context, self._reranker(context))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401, ARG002 - the signature of Runnable
        """As `invoke`, off the event loop."""
        context = RpgContext.current()
        if not context.select:
            return _update(whole(input["evidence"], context.max_evidence_tokens))
        reranker = await self._known(context)

        def work() -> dict[str, Any]:
            return self.selected(input, context, reranker)

        return await (asyncio.wrap_future(in_thread(work)) if reranker.waits else self._line.submit(work))

    def check(self, context: RpgContext) -> None:
        """See before a run's first call that its reranker can be used, and load it.

        Raises:
            BadInput: there is no such reranker, or its package is not installed.
        """
        if context.retrieve and context.select:
            self._checked[context.reranker] = self._reranker(context)

    def prepare(self, evidence: Sequence[Evidence], context: RpgContext) -> None:
        """Make the sentences ready in a thread of its own, while the first segment is planned."""
        if evidence and context.select:
            reranker = self._reranker(context)
            in_thread(lambda: self._ready.of(evidence, reranker))

    def _reranker(self, context: RpgContext) -> Reranker:
        """The context's, then the one that the graph was built with, then the default."""
        named: str | None = context.reranker
        return self._given if self._given and not named else resolve_reranker(named or self.build.reranker)

    async def _known(self, context: RpgContext) -> Reranker:
        """The one that was checked when the run began; a run that is resumed elsewhere has to load it first."""
        name: str | None = context.reranker
        if name in self._checked:
            return self._checked[name]
        return await asyncio.to_thread(self._reranker, context)

    def selected(self, state: Reading, context: RpgContext, reranker: Reranker) -> dict[str, Any]:
        """What is selected for the plan of this state, by this reranker."""
        plan = state["plan"].strip() or state["question"]
        limit = Budget.of("select", state, context).seconds_left()
        wanted: float | None = context.threshold
        used = [one["text"] for segment in state["segments"] for one in segment["sentences"]]
        warnings: list[str] = []
        for choice in (reranker, "hybrid", "words"):
            try:
                ranks = resolve_reranker(choice) if isinstance(choice, str) else choice
                ready, scores = within(
                    limit if ranks.waits else None, partial(self._scored, state, plan, ranks)
                )
            except Exception as failure:
                warnings.append(_failed(choice if isinstance(choice, str) else choice.name, failure))
                continue
            least = ranks.threshold if wanted is None or warnings else wanted
            return _update(
                chosen(ready.sentences, scores, least, context.max_evidence_tokens, used), warnings
            )
        return _update([], warnings)

    def _scored(self, state: Reading, plan: str, reranker: Reranker) -> tuple[Ready, list[float]]:
        ready = self._ready.of(state["evidence"], reranker)
        scores = [float(score) for score in ready.ranking.scores(plan)] if ready.sentences else []
        if len(scores) != len(ready.sentences):
            raise SourceFailure(f"it gave {len(scores):,} scores for {len(ready.sentences):,} sentences")
        if any(math.isnan(score) or score == math.inf for score in scores):
            raise SourceFailure("it gave a score that is not finite")
        return ready, scores


def _update(selected: list[Selected], warnings: Sequence[str] = ()) -> dict[str, Any]:
    return {"selected": selected, "warnings": list(warnings)}


def _failed(name: str, failure: Exception) -> str:
    told = without_secrets(" ".join(str(failure).split()))[:200] or type(failure).__name__
    why = "it took longer than the deadline allows" if isinstance(failure, TimeoutError) else told
    return f"select: the reranker {name} failed, and the next best ranking was used: {why}"


def whole(evidence: Iterable[Evidence], budget: int) -> list[Selected]:
    """The passages as they are, in their order; the one that crosses the budget is cut."""
    kept: list[Selected] = []
    left = budget
    for passage in evidence:
        text = passage["text"].strip()
        if tokens(text) > left:
            text = _cut(text, 4 * left)
        if text:
            kept.append(Selected(passage=passage["id"], position=0, text=text, score=passage["score"]))
            left -= tokens(text)
    return kept


def _cut(text: str, size: int) -> str:
    """So many bytes of a text, with a mark; "" if that is nearly nothing."""
    mark = " \u2026"
    kept = (
        text.encode("utf-8", "replace")[: max(0, size - len(mark.encode()))]
        .decode("utf-8", "ignore")
        .rstrip()
    )
    return kept + mark if kept else ""


def chosen(
    sentences: Sequence[Sentence], scores: Sequence[float], least: float, budget: int, used: Iterable[str]
) -> list[Selected]:
    """The best above the threshold that fit the budget, in document order, none of them twice or used before."""
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


def _selected(sentence: Sentence, score: float) -> Selected:
    return Selected(
        passage=sentence.passage, position=sentence.position, text=sentence.text, score=round(score, 6)
    )
