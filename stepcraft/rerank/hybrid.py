"""The reranker that needs no key: the words and the vectors of plan and sentence together."""

import math
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from stepcraft.index import Embedder, query_vector, unit_vectors
from stepcraft.rerank import Sentence
from stepcraft.text.clean import clean, stems, terms

_ALPHA = 0.3
"""The weight of the vectors; on HotpotQA a little less than for whole passages is best."""
_K1, _B = 1.2, 0.75
"""The usual constants of BM25."""


class HybridReranker:
    """A reranker by the words that plan and sentence share, and by their vectors.

    Args:
        name: Its name in warnings and traces.
        embedder: The embedding model; None for words alone.
    """

    threshold = 0.13
    """Keeps 9 of 10 gold sentences of HotpotQA's ten passages, and none of another question's in 19
    of 20."""

    def __init__(self, name: str, embedder: Embedder | None) -> None:
        self.name = name
        self.embedder = embedder
        self._vectors = lru_cache(8)(self._embedded)  # the same sentences meet several plans

    def scores(self, plan: str, sentences: Sequence[Sentence]) -> list[float]:
        """Return how well each fits beside the others, times how well the best fits at all.

        The second factor is needed because words count by the best match, which a plan about
        something else has, too.

        Raises:
            MemoryFailure: The embedder failed.
        """
        if not sentences:
            return []
        texts = tuple(sentence.titled for sentence in sentences)
        words, covered = _words(stems(plan), texts)
        vector = query_vector(self.embedder, clean(plan)) if self.embedder else None
        alpha = _ALPHA if self.embedder else 0.0
        cosines = np.zeros(len(texts)) if vector is None else self._vectors(texts) @ vector
        best = alpha * max(0.0, float(cosines.max())) + (1 - alpha) * covered
        scores: list[float] = (best * (alpha * cosines + (1 - alpha) * words)).tolist()
        return scores

    def _embedded(self, texts: tuple[str, ...]) -> NDArray[np.float32]:
        assert self.embedder  # noqa: S101 - called with an embedder alone
        return unit_vectors(self.embedder, list(texts))


def _words(wanted: frozenset[str], texts: Sequence[str]) -> tuple[NDArray[np.float64], float]:
    """Return the BM25 of each text, scaled to the best, and the part of the plan that it has.

    The part is the largest sum of the rarities of words that one text has.
    """
    lengths = [len(terms(text)) for text in texts]
    mean = sum(lengths) / len(lengths) or 1.0
    counts = [Counter(stem for term in terms(text) for stem in stems(term)) for text in texts]
    ranks, covered = np.zeros(len(texts)), np.zeros(len(texts))
    total = 0.0
    for stem in sorted(wanted):
        frequencies = np.array([count[stem] for count in counts], float)
        rarity = math.log(1 + len(texts) / (1 + np.count_nonzero(frequencies)))
        norm = _K1 * (1 - _B + _B * np.array(lengths) / mean)
        ranks += rarity * frequencies * (_K1 + 1) / (frequencies + norm)
        covered += rarity * (frequencies > 0)
        total += rarity
    return ranks / (ranks.max() or 1.0), float(covered.max()) / (total or 1.0)
