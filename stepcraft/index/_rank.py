"""The ranking of an index, by words and vectors together."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepcraft.errors import BadInput
from stepcraft.index._rows import Entry
from stepcraft.text.clean import clean

_TIE = 1e-6
"""Scores closer than this count as equal: sums in another order differ by about a tenth of it."""


@dataclass(frozen=True)
class Hit:
    """An entry and how well it fits the query (higher is better, 1 is best)."""

    entry: Entry
    score: float


def fused(
    similarities: tuple[NDArray[np.int64], NDArray[np.float32]] | None,
    matches: NDArray[np.float64],
    alpha: float,
    k: int,
) -> list[tuple[int, float]]:
    """The k best (number, score) of alpha · cosine + (1 - alpha) · bm25 / best bm25, ties in order of number.

    Args:
        similarities: the numbers and the cosines of all rows, or None without vectors.
        matches: number and FTS5 rank (lower is better) of each row that matches by words, of shape (matches, 2).
        alpha: the weight of the cosine.
        k: how many at most.
    """
    order = np.argsort(matches[:, 0]) if len(matches) else np.empty(0, np.int64)
    matching = matches[order, 0].astype(np.int64)
    by_words = matches[order, 1] / matches[:, 1].min() if len(matches) else np.empty(0)
    if similarities is None:
        return _best(matching, by_words, k)
    numbers, cosines = similarities
    scores = alpha * cosines.astype(np.float64)
    if len(matching):
        scores[np.searchsorted(numbers, matching)] += (1 - alpha) * by_words
    return _best(numbers, scores, k)


def _best(numbers: NDArray[np.int64], scores: NDArray[np.float64], k: int) -> list[tuple[int, float]]:
    """The k best; `numbers` rise."""
    if len(scores) > k:
        least = np.partition(scores, len(scores) - k)[len(scores) - k]
        near = np.flatnonzero(scores >= least - _TIE)
        numbers, scores = numbers[near], scores[near]
    ranked = np.lexsort((numbers, -np.round(scores / _TIE)))[:k]
    return [(int(numbers[row]), float(scores[row])) for row in ranked]


def checked(query: str, k: int, alpha: float) -> str:
    """The query, cleaned.

    Raises:
        BadInput: k is below 1 or alpha not between 0 and 1.
    """
    if k < 1:
        raise BadInput(f"k must be at least 1, not {k}")
    if not 0 <= alpha <= 1:
        raise BadInput(f"alpha must be between 0 (words alone) and 1 (vectors alone), not {alpha}")
    return clean(query)
