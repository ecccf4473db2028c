"""Choose the passages for several queries together, by reciprocal rank fusion (Cormack 2009)."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import nlargest

from stepcraft.evidence import Evidence, key_of

CANDIDATES = 4
"""The number of candidates that each search returns, as a multiple of `k`."""
_SHARE = 0.3
"""The share of a passage's score that the passages before and after it get."""


def fused(
    found: Mapping[str, Sequence[Sequence[Evidence]]],
    k: int,
    beside: Callable[[Evidence], Iterable[Evidence]],
) -> dict[str, list[Evidence]]:
    """Return the best passages for all queries, each under the query that ranks it highest.

    The total is the number of distinct passages in all top-k results. Passages that several
    queries find come first, and so do their neighbours, because the answer is often spread over a
    few pages.

    Args:
        found: The results by query, one list per source, best first.
        k: The number of passages per search.
        beside: Returns the passages before and after a passage.
    """
    scores: dict[object, float] = defaultdict(float)
    best: dict[object, tuple[float, str, Evidence]] = {}

    def add(query: str, passage: Evidence, score: float) -> None:
        key = key_of(passage)
        scores[key] += score
        if key not in best or score > best[key][0]:
            best[key] = score, query, passage

    for query, lists in found.items():
        for passages in lists:
            for rank, passage in enumerate(passages):
                add(query, passage, 1 / (2 + rank) ** 2)
    count = len({key_of(it) for lists in found.values() for each in lists for it in each[:k]})
    for key in nlargest(count, scores, key=scores.__getitem__):
        score, (_, query, passage) = scores[key], best[key]
        for neighbour in beside(passage):
            add(query, neighbour, score * _SHARE)
    chosen: dict[str, list[Evidence]] = {query: [] for query in found}
    for key in nlargest(count, scores, key=scores.__getitem__):
        _, query, passage = best[key]
        chosen[query].append(passage)
    return chosen
