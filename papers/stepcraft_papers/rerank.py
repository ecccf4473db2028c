"""The reranker that needs no key: the words and the vectors of plan and sentence together."""

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
from langchain_core.cross_encoders import BaseCrossEncoder
from numpy.typing import NDArray

from stepcraft.index import query_vector, unit_vectors
from stepcraft.models.embeddings import resolve_embeddings
from stepcraft.text.clean import clean, stems, terms

_ALPHA = 0.3
"""The weight of the vectors; on HotpotQA a little less than for whole passages is best."""
_K1, _B = 1.2, 0.75
"""The usual constants of BM25."""


class HybridReranker(BaseCrossEncoder):
    """A reranker by the words that plan and sentence share, and by their vectors.

    Args:
        embeddings: As `resolve_embeddings` takes them; "none" for words alone.
    """

    threshold = 0.13
    """Keeps 9 of 10 gold sentences of HotpotQA's ten passages, and none of another question's in 19
    of 20."""

    def __init__(self, embeddings: str | None = None) -> None:
        self._embedder: Callable[[], Any] = cache(partial(resolve_embeddings, embeddings))
        self._vectors = lru_cache(8)(unit_vectors)  # the same sentences meet several plans

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        """Return how well each fits beside the others, times how well the best fits at all.

        The second factor is needed because words count by the best match, which a plan about
        something else has, too.

        Args:
            text_pairs: The sentences, each behind the plan, which is the same for all.

        Raises:
            BadInput: There are no such embeddings.
            MemoryFailure: The embedder failed.
        """
        if not text_pairs:
            return []
        (plan, *_), texts = zip(*text_pairs, strict=True)
        ranks, covered = _words(stems(plan), texts)
        embedder = self._embedder()
        alpha = _ALPHA if embedder else 0.0
        vector = query_vector(embedder, clean(plan)) if embedder else None
        cosines = (
            np.zeros(len(texts)) if vector is None else self._vectors(embedder, texts) @ vector
        )
        best = alpha * max(0.0, float(cosines.max())) + (1 - alpha) * covered
        scores: list[float] = (best * (alpha * cosines + (1 - alpha) * ranks)).tolist()
        return scores


def _words(wanted: frozenset[str], texts: Sequence[str]) -> tuple[NDArray[np.float64], float]:
    """Return the BM25 of each text, scaled to the best, and the part of the plan that it has.

    The part is the largest sum of the rarities of words that one text has.
    """
    lengths = np.array([len(terms(text)) for text in texts])
    counts = [Counter(stem for term in terms(text) for stem in stems(term)) for text in texts]
    norms = _K1 * (1 - _B + _B * lengths / (lengths.mean() or 1.0))
    frequencies = np.array([[count[stem] for stem in sorted(wanted)] for count in counts], float)
    rarities = np.log(1 + len(texts) / (1 + np.count_nonzero(frequencies, axis=0)))
    ranks = frequencies * (_K1 + 1) / (frequencies + norms[:, np.newaxis]) @ rarities
    covered = (frequencies > 0) @ rarities
    return ranks / (ranks.max() or 1.0), float(covered.max() / (rarities.sum() or 1.0))
