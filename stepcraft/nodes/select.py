"""Select the sentences of all passages that a segment is written from (RPG §3.2)."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from typing_extensions import TypedDict

from stepcraft.context import Context
from stepcraft.evidence import Evidence
from stepcraft.models.embeddings import resolve_embeddings
from stepcraft.nodes._build import Build
from stepcraft.nodes._fit import tokens
from stepcraft.rerank import Sentence
from stepcraft.rerank.hybrid import HybridReranker
from stepcraft.segments import Segment, Selected
from stepcraft.sentences import passage_sentences
from stepcraft.text import normalised
from stepcraft.threads import Line


class Reading(TypedDict):
    """What this node reads."""

    plan: str
    question: str
    evidence: list[Evidence]
    segments: list[Segment]


class SelectNode(Runnable[Any, dict[str, Any]]):
    """Scores the sentences of all passages against the plan and keeps the best, in the order of the passages."""

    def __init__(self, build: Build) -> None:
        self.name = "select"
        self.build = build
        self._line = Line()

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401, ARG002 - the signature of Runnable
        """What is selected, and what went wrong."""
        return self._selected(input, self.build.context.current())

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> dict[str, Any]:  # noqa: A002, ANN401, ARG002 - the signature of Runnable
        """As `invoke`, off the event loop."""
        context = self.build.context.current()
        return await self._line.made(lambda: self._selected(input, context))

    def _selected(self, state: Reading, context: Context) -> dict[str, Any]:
        budget: int = getattr(context, "max_evidence_tokens", 2000)
        if not getattr(context, "select", True):
            return {"selected": whole(state["evidence"], budget), "warnings": []}
        sentences = [
            Sentence(passage["id"], position, passage["title"], text)
            for passage in state["evidence"]
            for position, text in enumerate(passage_sentences(passage["text"]))
        ]
        reranker = HybridReranker("hybrid", resolve_embeddings())
        scores = reranker.ready(sentences).scores(state["plan"] or state["question"]) if sentences else []
        threshold = getattr(context, "threshold", None)
        least = reranker.threshold if threshold is None else threshold
        used = {one["text"] for segment in state["segments"] for one in segment["sentences"]}
        return {"selected": chosen(sentences, scores, least, budget, used), "warnings": []}


def whole(evidence: Iterable[Evidence], budget: int) -> list[Selected]:
    """The passages as they are, in their order; the one that crosses the budget is cut."""
    kept: list[Selected] = []
    left = budget
    for passage in evidence:
        text = passage["text"].strip()
        if tokens(text) > left:
            text = text.encode("utf-8", "replace")[: 4 * left].decode("utf-8", "ignore").rstrip()
        if text:
            kept.append(Selected(passage=passage["id"], position=0, text=text, score=passage["score"]))
        left -= tokens(text)
    return kept


def chosen(
    sentences: Sequence[Sentence], scores: Sequence[float], least: float, budget: int, used: Iterable[str]
) -> list[Selected]:
    """The best above the threshold that fit the budget, in document order, none of them twice or used before."""
    seen = {normalised(text) for text in used}
    kept: list[int] = []
    left = budget
    for place in sorted(range(len(sentences)), key=lambda place: -scores[place]):
        text = sentences[place].text
        if scores[place] < least or math.isnan(scores[place]):
            break
        if normalised(text) in seen or tokens(text) > left:
            continue
        seen.add(normalised(text))
        kept.append(place)
        left -= tokens(text)
    return [_selected(sentences[place], scores[place]) for place in sorted(kept)]


def _selected(sentence: Sentence, score: float) -> Selected:
    return Selected(
        passage=sentence.passage, position=sentence.position, text=sentence.text, score=round(score, 4)
    )
