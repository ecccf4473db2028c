"""Select the sentences from which a segment is written, out of all passages (RPG §3.2)."""

import math
from collections.abc import Sequence
from functools import partial

from langchain_core.cross_encoders import BaseCrossEncoder

from stepcraft.concurrency import within
from stepcraft.llm.limits import limits_of
from stepcraft.llm.node import Update
from stepcraft.llm.resources import Resources
from stepcraft.secrets import without_secrets
from stepcraft.text.clean import tokens
from stepcraft.text.sentences import passage_sentences
from stepcraft_papers.contexts import RpgPaperContext
from stepcraft_papers.nodes.state import RpgPaperState, Selected
from stepcraft_papers.rerank import HybridReranker

_MAX_TITLE = 200
"""The maximum number of title characters that are scored along with each sentence."""


def select_sentences(
    state: RpgPaperState, resources: Resources[RpgPaperContext], reranker: BaseCrossEncoder
) -> Update:
    """Return the sentences that score best against the plan, within the budget, in document order.

    A sentence is scored together with the title of its passage, which says what it is about. If
    selection is off or the reranker fails, the whole passages are returned instead.
    """
    settings = resources.settings(state)
    whole = [
        Selected(passage=each["id"], title=each["title"], text=each["text"], score=each["score"])
        for each in state["evidence"]
    ]
    if not (settings.select and whole):
        return {"selected": whole}
    threshold = settings.threshold
    if threshold is None:
        threshold = reranker.threshold if isinstance(reranker, HybridReranker) else 0.0
    sentences: list[Selected] = [
        {**passage, "text": text}
        for passage in whole
        for text in passage_sentences(passage["text"])
    ]
    pairs = [
        (state["plans"][-1], f"{each['title'][:_MAX_TITLE]}\n{each['text']}".strip())
        for each in sentences
    ]
    places, budget = list[int](), settings.max_evidence_tokens
    try:
        seconds = limits_of(state, settings).seconds_left()
        scores = within(seconds, partial(reranker.score, pairs))
        _check_finite(scores)
        ranked = zip(scores, range(len(sentences)), strict=True)
        for score, place in sorted(ranked, key=lambda pair: -pair[0]):
            size = tokens(sentences[place]["text"])
            if score > threshold and size <= budget:
                places.append(place)
                budget -= size
    except Exception as failure:
        reason = without_secrets(f"{type(failure).__name__}: {failure}")[:300]
        name = type(reranker).__name__
        warning = f"select: the reranker {name} failed, so whole passages are shown: {reason}"
        return {"selected": whole, "warnings": [warning]}
    selected: list[Selected] = [
        {**sentence, "score": float(scores[place])}
        for place, sentence in enumerate(sentences)
        if place in places
    ]
    return {"selected": selected}


def _check_finite(scores: Sequence[float]) -> None:
    if not all(score < math.inf for score in scores):
        raise ValueError("a score is not finite")
