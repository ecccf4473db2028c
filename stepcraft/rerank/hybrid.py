"""The default reranker: words and vectors together, by the local index."""

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stepcraft.index import Embedder, Entry, LocalIndex, query_vector, unit_vectors
from stepcraft.models.embeddings import WordLlamaEmbedder
from stepcraft.rerank import Sentence
from stepcraft.text.clean import clean, stems

_ALPHA = 0.3
"""The weight of the vectors; on HotpotQA a little less than for whole passages is best."""


class HybridReranker:
    """A reranker by the words that plan and sentence share, and by their vectors.

    Args:
        name: its name in warnings and traces.
        embedder: the embedding model; None for words alone.
        alpha: the weight of the vectors, 0 to 1.
    """

    threshold = 0.13
    """It keeps 9 of 10 gold sentences of HotpotQA's ten passages, and none of another question's in 19 of 20."""

    def __init__(self, name: str, embedder: Embedder | None, alpha: float = _ALPHA) -> None:
        self.name = name
        self.embedder = embedder
        self.alpha = alpha if embedder else 0.0

    @property
    def waits(self) -> bool:
        """Whether the vectors are made by a remote or large model."""
        return not isinstance(self.embedder, WordLlamaEmbedder | None)

    def ready(self, sentences: Sequence[Sentence]) -> "HybridRanking":
        """Index the sentences and embed them.

        Raises:
            MemoryFailure: the embedder failed.
        """
        return HybridRanking(sentences, self.embedder, self.alpha)


class HybridRanking:
    """Sentences with their vectors, and their words in an index in memory."""

    def __init__(
        self, sentences: Sequence[Sentence], embedder: Embedder | None, alpha: float
    ) -> None:
        self._alpha = alpha
        self._count = len(sentences)
        self._embedder = embedder if alpha and sentences else None
        texts = [one.titled for one in sentences]
        self._words = LocalIndex(":memory:", None)
        self._words.put([Entry(str(place), text, {}) for place, text in enumerate(texts)])
        self._stemmed: defaultdict[str, list[int]] = defaultdict(list)
        for place, text in enumerate(texts):
            for stem in stems(text):
                self._stemmed[stem].append(place)
        self._vectors = None
        if self._embedder:
            unique = {text: place for place, text in enumerate(dict.fromkeys(texts))}
            vectors, finite = unit_vectors(self._embedder, list(unique))
            vectors[~finite] = 0.0
            self._vectors = vectors[[unique[text] for text in texts]]

    def scores(self, plan: str) -> list[float]:
        """Return one score a sentence: how well it fits beside the others, times how well the best fits at all.

        The second factor is needed because the index measures words by the best match, which a plan about something
        else has, too.

        Raises:
            MemoryFailure: the embedder failed.
        """
        if not self._count:
            return []
        words = np.zeros(self._count)
        for place, score in self._words.scores(plan, alpha=0).items():
            words[int(place)] = score
        cosines = self._cosines(plan)
        best = self._alpha * max(0.0, cosines.max()) + (1 - self._alpha) * self._coverage(plan)
        scores: list[float] = (best * (self._alpha * cosines + (1 - self._alpha) * words)).tolist()
        return scores

    def _cosines(self, plan: str) -> NDArray[np.float64]:
        vector = query_vector(self._embedder, clean(plan)) if self._embedder else None
        if vector is None or self._vectors is None:
            return np.zeros(self._count)
        return (self._vectors @ vector).astype(np.float64)

    def _coverage(self, plan: str) -> float:
        """Return the largest part of the plan's words, weighted by their rarity, that one sentence has."""
        covered: defaultdict[int, float] = defaultdict(float)
        total = 0.0
        for stem in sorted(stems(plan)):
            places = self._stemmed.get(stem, ())
            weight = math.log(1 + self._count / (1 + len(places)))
            total += weight
            for place in places:
                covered[place] += weight
        return max(covered.values(), default=0.0) / (total or 1.0)
