"""The default: words and vectors together, as the local index ranks them."""

from collections.abc import Sequence

from stepcraft.index import Embedder, Entry, LocalIndex
from stepcraft.rerank import Sentence

ALPHA = 0.4
"""The weight of the vectors."""


class HybridReranker:
    """Scores by the words that plan and sentence share and by their vectors.

    Args:
        name: what it goes by.
        embedder: what makes the vectors; None for words alone.
        alpha: the weight of the vectors.
    """

    threshold = 0.2

    def __init__(self, name: str, embedder: Embedder | None, alpha: float = ALPHA) -> None:
        self.name = name
        self.embedder = embedder
        self.alpha = alpha if embedder else 0.0

    def ready(self, sentences: Sequence[Sentence]) -> "HybridRanking":
        """The sentences in an index of their own."""
        return HybridRanking(self, sentences)


class HybridRanking:
    """Sentences in an index in memory."""

    def __init__(self, reranker: HybridReranker, sentences: Sequence[Sentence]) -> None:
        self.alpha = reranker.alpha
        self.count = len(sentences)
        self.index = LocalIndex(":memory:", reranker.embedder)
        self.index.put([Entry(str(place), one.titled, {}) for place, one in enumerate(sentences)])

    def scores(self, plan: str) -> list[float]:
        """One score a sentence, 1 at best; 0 for one that shares nothing with the plan."""
        scores = [0.0] * self.count
        for hit in self.index.search(plan, max(1, self.count), alpha=self.alpha):
            scores[int(hit.entry.id)] = hit.score
        return scores
