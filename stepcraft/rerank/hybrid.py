"""The default: words and vectors together, as the local index finds them."""

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stepcraft.index import Embedder, Entry, LocalIndex, Matrix, query_vector, unit_vectors
from stepcraft.models.embeddings import WordLlamaEmbedder
from stepcraft.rerank import Sentence
from stepcraft.text.clean import clean, stems

_ALPHA = 0.3
"""The weight of the vectors: on HotpotQA a little less than in a search for whole passages serves best."""


class HybridReranker:
    """Scores by the words that plan and sentence share, and by their vectors.

    Args:
        name: what it goes by.
        embedder: what makes the vectors; None for words alone.
        alpha: the weight of the vectors.
    """

    threshold = 0.13
    """Of HotpotQA's own ten passages it keeps 9 of 10 gold sentences, and of another question's nothing in 19 of 20."""

    def __init__(self, name: str, embedder: Embedder | None, alpha: float = _ALPHA) -> None:
        self.name = name
        self.embedder = embedder
        self.alpha = alpha if embedder else 0.0

    @property
    def waits(self) -> bool:
        """Whether the vectors come from elsewhere."""
        return not isinstance(self.embedder, WordLlamaEmbedder | None)

    def ready(self, sentences: Sequence[Sentence]) -> "HybridRanking":
        """The sentences in an index of their own.

        Raises:
            MemoryFailure: the embedder failed.
        """
        return HybridRanking(sentences, self.embedder, self.alpha)


class HybridRanking:
    """Sentences with their vectors, and their words in an index in memory."""

    def __init__(self, sentences: Sequence[Sentence], embedder: Embedder | None, alpha: float) -> None:
        self._alpha = alpha
        self._count = len(sentences)
        self._embedder = embedder if alpha and sentences else None
        texts = [one.titled for one in sentences]
        self._words = LocalIndex(":memory:", None)
        self._words.put([Entry(str(place), text, {}) for place, text in enumerate(texts)])
        self._vectors = _vectors(self._embedder, texts) if self._embedder else None
        self._having: defaultdict[str, list[int]] = defaultdict(list)
        for place, text in enumerate(texts):
            for stem in stems(text):
                self._having[stem].append(place)

    def scores(self, plan: str) -> list[float]:
        """One score a sentence: how well it fits beside the others, times how well the best of them fits at all.

        The index measures words by the best match, which a plan about something else has, too.

        Raises:
            MemoryFailure: the embedder failed.
        """
        if not self._count:
            return []
        words, cosines = self._by_words(plan), self._cosines(plan)
        best = self._alpha * max(0.0, cosines.max()) + (1 - self._alpha) * self._covered(plan)
        scores: list[float] = (best * (self._alpha * cosines + (1 - self._alpha) * words)).tolist()
        return scores

    def _by_words(self, plan: str) -> NDArray[np.float64]:
        scores = np.zeros(self._count)
        for place, score in self._words.scores(plan, alpha=0).items():
            scores[int(place)] = score
        return scores

    def _cosines(self, plan: str) -> NDArray[np.float64]:
        vector = query_vector(self._embedder, clean(plan)) if self._embedder else None
        if vector is None or self._vectors is None:
            return np.zeros(self._count)
        return (self._vectors @ vector).astype(np.float64)

    def _covered(self, plan: str) -> float:
        """The largest part of the plan's words that one sentence has, the rarer the more weight."""
        weights = {
            stem: math.log(1 + self._count / (1 + len(self._having.get(stem, ()))))
            for stem in sorted(stems(plan))
        }
        covered: defaultdict[int, float] = defaultdict(float)
        for stem, weight in weights.items():
            for place in self._having.get(stem, ()):
                covered[place] += weight
        return max(covered.values(), default=0.0) / (sum(weights.values()) or 1.0)


def _vectors(embedder: Embedder, texts: Sequence[str]) -> Matrix:
    """Unit vectors of shape (texts, dimensions), zeros where one is not finite; each text is embedded once."""
    place = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    vectors, finite = unit_vectors(embedder, list(place))
    vectors[~finite] = 0.0
    return vectors[[place[text] for text in texts]]
