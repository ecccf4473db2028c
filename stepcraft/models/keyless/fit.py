"""How well one text fits another, by the words that they share."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from stepcraft.text.clean import terms

_ENDING = re.compile(r"(?:(?<=...)(?:ing|ed)|es|(?<!s)s|e)$")
_ALIKE = 0.6


@lru_cache(maxsize=2048)
def stems(text: str) -> frozenset[str]:
    """The words of a text without their commonest endings."""
    return frozenset(_ENDING.sub("", term) if len(term) > 4 else term for term in terms(text))


def weights(material: Sequence[str]) -> dict[str, float]:
    """The rarer a word is in the material, the more it weighs."""
    counts = Counter(stem for text in material for stem in stems(text))
    return {stem: math.log(1 + len(material) / count) for stem, count in counts.items()}


def weight(found: Iterable[str], weighing: Mapping[str, float]) -> float:
    """The weight of some words together, always summed in the same order."""
    return sum(weighing.get(stem, 0.0) for stem in sorted(found))


def fit(wanted: frozenset[str], text: str, weighing: Mapping[str, float]) -> float:
    """The weight of the wanted words that a text has; a long text needs more of them."""
    own = stems(text)
    return weight(wanted & own, weighing) / math.sqrt(4 + len(own))


def is_alike(text: str, others: Iterable[str]) -> bool:
    """Whether a text says little that one of the others does not say."""
    own = stems(text)
    return any(len(own & stems(other)) >= _ALIKE * min(len(own), len(stems(other))) for other in others)


def mentions(text: str, thing: str) -> bool:
    """Whether a text has at least half of the words that name a thing."""
    named = stems(thing)
    return 2 * len(named & stems(text)) >= len(named)


def place(text: str, steps: Sequence[str], weighing: Mapping[str, float]) -> int:
    """Where among the steps a text is best inserted: after the one that shares most with it, never at the end."""
    shared = [fit(stems(text), step, weighing) for step in steps]
    if not any(shared):
        return max(0, len(steps) - 1)
    return min(shared.index(max(shared)) + 1, max(1, len(steps) - 1))
