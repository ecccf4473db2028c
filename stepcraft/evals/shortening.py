"""Shorten the passages of an answer to what a judge can read: what it rests on stays longest."""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from stepcraft.evidence import Evidence
from stepcraft.llm.prompt import passages
from stepcraft.text.citations import marks
from stepcraft.text.clean import stems, tokens
from stepcraft.text.sentences import passage_sentences

_SECTION = 12
"""Tokens around a passage in a prompt."""


def passage_tokens(evidence: Sequence[Evidence]) -> int:
    """Estimate the tokens that passages take in a prompt."""
    return sum(tokens(section.text) + _SECTION for section in passages(evidence) if section)


def cited_ids(output: Mapping[str, Any]) -> set[str]:
    """Return the ids of the passages that an answer cites; RPG names them by sentence."""
    if "sentences" in output:
        return {id_ for sentence in output["sentences"] for id_ in sentence["evidence"]}
    evidence: list[Evidence] = output.get("evidence") or []
    cited = marks(str(output.get("answer") or ""))
    return {passage["id"] for number, passage in enumerate(evidence, 1) if number in cited}


def shortened(
    evidence: Sequence[Evidence], sentences: Sequence[str], cited: Collection[str], budget: int
) -> list[Evidence]:
    """Return the passages within a budget of tokens, in their order; gaps are marked with "…".

    Sentences of the passages that are cited are kept before those of others, and among them those
    that fit a sentence of the answer best, by words; each with its neighbours, where they fit. A
    passage of which nothing is left is left out. Passages that fit the budget stay as they are.

    Args:
        evidence: The passages.
        sentences: The sentences of the answer.
        cited: The ids of the passages that the answer cites.
        budget: An estimate of the tokens that they may take in a prompt.
    """
    if passage_tokens(evidence) <= budget:
        return list(evidence)
    unique = {passage["id"]: passage for passage in reversed(evidence)}
    parts = {
        id_: passage_sentences(unique[id_]["text"])
        for id_ in dict.fromkeys(passage["id"] for passage in evidence)
    }
    places = [(id_, position) for id_, texts in parts.items() for position in range(len(texts))]
    fits = _fits([parts[id_][position] for id_, position in places], sentences)
    order = sorted(range(len(places)), key=lambda place: -fits[place] - (places[place][0] in cited))
    room = budget
    while room > 0:
        kept = _chosen([places[place] for place in order], parts, room)
        shown: list[Evidence] = [
            {**unique[id_], "text": _joined(texts, kept[id_])}
            for id_, texts in parts.items()
            if kept[id_]
        ]
        excess = passage_tokens(shown) - budget
        if excess <= 0:
            return shown
        room -= excess
    return []


def _fits(texts: Sequence[str], sentences: Sequence[str]) -> list[float]:
    """Return how much of the words of a sentence, rare ones above all, each text has at most."""
    words = [stems(text) for text in texts]
    count = Counter(word for text in words for word in text)
    weights = {word: math.log(1 + len(texts) / (1 + count[word])) for word in count}
    wanted = [stems(sentence) for sentence in sentences]
    totals = [sum(weights.get(word, 1.0) for word in each) or 1.0 for each in wanted]
    return [
        max(
            (
                sum(weights[word] for word in each & own) / total
                for each, total in zip(wanted, totals, strict=True)
            ),
            default=0.0,
        )
        for own in words
    ]


def _chosen(
    places: Sequence[tuple[str, int]], parts: Mapping[str, Sequence[str]], room: int
) -> dict[str, set[int]]:
    """Return the positions in each passage that fit the room, those of the first places first."""
    kept: dict[str, set[int]] = {id_: set() for id_ in parts}
    for id_, position in places:
        for near in (position, position - 1, position + 1):
            if 0 <= near < len(parts[id_]) and near not in kept[id_]:
                size = tokens(parts[id_][near])
                if size <= room:
                    kept[id_].add(near)
                    room -= size
    return kept


def _joined(texts: Sequence[str], kept: Collection[int]) -> str:
    """Return what is kept of a passage, with a mark for each gap."""
    pieces: list[str] = []
    following = 0
    for position in sorted(kept):
        pieces += ["\u2026"] * (position > following) + [texts[position]]
        following = position + 1
    return " ".join([*pieces, *["\u2026"] * (following < len(texts))])
