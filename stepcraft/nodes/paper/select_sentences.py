"""Select the sentences of all passages that a segment is written from (RPG §3.2)."""

import math
from collections.abc import Callable, Sequence
from functools import partial

from stepcraft.concurrency import within
from stepcraft.contexts.paper import RpgPaperContext
from stepcraft.llm.limits import limits_of
from stepcraft.llm.node import Update
from stepcraft.llm.resources import Resources
from stepcraft.nodes.paper.state import RpgPaperState, Selected
from stepcraft.rerank import Reranker, sentences_of
from stepcraft.secrets import without_secrets
from stepcraft.text.clean import tokens


def select_sentences(
    state: RpgPaperState, resources: Resources[RpgPaperContext], reranker: Callable[[], Reranker]
) -> Update:
    """Return the sentences that score best against the plan, within the budget, in document order.

    Without selection, and where the reranker fails, these are the whole passages.
    """
    settings = resources.settings(state)
    whole = [
        Selected(passage=each["id"], title=each["title"], text=each["text"], score=each["score"])
        for each in state["evidence"]
    ]
    if not (settings.select and whole):
        return {"selected": whole}
    ranks = reranker()
    threshold = ranks.threshold if settings.threshold is None else settings.threshold
    sentences = sentences_of(state["evidence"])
    places, budget = list[int](), settings.max_evidence_tokens
    try:
        seconds = limits_of(state).seconds_left(settings)
        scores = within(seconds, partial(ranks.scores, state["plans"][-1], sentences))
        _check_finite(scores)
        ranked = zip(scores, range(len(sentences)), strict=True)
        for score, place in sorted(ranked, key=lambda pair: -pair[0]):
            size = tokens(sentences[place].text)
            if score > threshold and size <= budget:
                places.append(place)
                budget -= size
    except Exception as failure:
        reason = without_secrets(f"{type(failure).__name__}: {failure}")[:300]
        warning = f"select: the reranker {ranks.name} failed, so whole passages are shown: {reason}"
        return {"selected": whole, "warnings": [warning]}
    selected = [
        Selected(passage=each.passage, title=each.title, text=each.text, score=float(scores[place]))
        for place, each in enumerate(sentences)
        if place in places
    ]
    return {"selected": selected}


def _check_finite(scores: Sequence[float]) -> None:
    if not all(score < math.inf for score in scores):  # -inf: a compressor left the sentence out
        raise ValueError("a score is not finite")
