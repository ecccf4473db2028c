"""Shorten the passages of an answer to what a judge can read: what the answer cites and rests on stays longest."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from stepcraft.evidence import Evidence
from stepcraft.llm.prompt import titled
from stepcraft.nodes.rpg.select import chosen_in_context
from stepcraft.rerank.hybrid import HybridReranker
from stepcraft.rerank.ready import ReadySentences
from stepcraft.segments import Selected
from stepcraft.text.citations import marks
from stepcraft.text.clean import tokens

_AROUND = 1
"""How many sentences on each side of a chosen one are kept with it, where they fit."""
_SECTION = 12
"""Tokens around a passage in a prompt."""


def passage_tokens(evidence: Sequence[Evidence]) -> int:
    """An estimate of the tokens that passages take in a prompt."""
    return sum(tokens(titled(one)) + _SECTION for one in evidence)


def cited_ids(output: Mapping[str, Any]) -> set[str]:
    """The ids of the passages that an answer cites. RPG says itself which sentences cite what."""
    if "sentences" in output:
        return {id_ for one in output["sentences"] for id_ in one["evidence"]}
    evidence: list[Evidence] = output.get("evidence") or []
    cited = marks(str(output.get("answer") or ""))
    return {one["id"] for number, one in enumerate(evidence, 1) if number in cited}


def shortened(
    evidence: Sequence[Evidence], sentences: Sequence[str], cited: Collection[str], budget: int
) -> list[Evidence]:
    """Return the passages within a budget of tokens, in their order; gaps are marked with "…".

    Sentences of the passages that are cited are kept before those of others, and among them those that fit a sentence
    of the answer best, by words; each with its neighbours, where they fit. A passage of which nothing is left is left
    out. Passages that fit the budget stay as they are.

    Args:
        evidence: The passages.
        sentences: The sentences of the answer.
        cited: The ids of the passages that the answer cites.
        budget: An estimate of the tokens that they may take in a prompt.
    """
    if passage_tokens(evidence) <= budget:
        return list(evidence)
    passages: dict[str, Evidence] = {}
    for one in evidence:
        passages.setdefault(one["id"], one)
    ready = ReadySentences().of(evidence, HybridReranker("words", None))
    lengths = Counter(one.passage for one in ready.sentences)
    scores = [float(one.passage in cited) for one in ready.sentences]
    if scores:
        fits = [ready.ranking.scores(sentence) for sentence in sentences]
        scores = [score + max(own) for score, own in zip(scores, zip(*fits, strict=True), strict=True)]
    left = budget
    while left > 0:
        found: dict[str, list[Selected]] = {id_: [] for id_ in passages}
        for chosen in chosen_in_context(ready.sentences, scores, -1.0, left, _AROUND):
            found[chosen["passage"]].append(chosen)
        kept: list[Evidence] = [
            {**passages[id_], "text": _joined(own, lengths[id_])} for id_, own in found.items() if own
        ]
        excess = passage_tokens(kept) - budget
        if excess <= 0:
            return kept
        left -= excess
    return []


def _joined(kept: Sequence[Selected], count: int) -> str:
    """What is kept of a passage with so many sentences, with a mark for each gap."""
    text, following = "", 0
    for one in kept:
        gap = "\u2026 " if one["position"] > following else ""
        text += f"{' ' * bool(text)}{gap}{one['text']}"
        following = one["position"] + 1
    return f"{text} \u2026" if text and following < count else text
