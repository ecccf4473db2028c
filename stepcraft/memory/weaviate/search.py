"""Searches in a collection of Weaviate."""

from dataclasses import dataclass
from typing import Any, Literal

from weaviate.classes.query import HybridFusion, MetadataQuery

from stepcraft.errors import BadInput
from stepcraft.index import query_words
from stepcraft.memory.protocol import ALPHA, Found
from stepcraft.memory.weaviate.objects import procedure_of
from stepcraft.memory.weaviate.schema import CONTENT, SEARCHED

_PROPERTIES, _WORDS = list(CONTENT), list(SEARCHED)
_DISTANCE, _SCORE = MetadataQuery(distance=True), MetadataQuery(score=True)


@dataclass(frozen=True)
class Search:
    """What is asked: one of the client's queries, and what is handed to it."""

    query: Literal["near_vector", "hybrid", "bm25"]
    arguments: dict[str, Any]

    def of(self, objects: Any) -> Any:  # noqa: ANN401 - the sync collection or the async one
        """The client's reply; with an async client, what is to be awaited for it."""
        return getattr(objects.query, self.query)(
            **self.arguments,
            return_properties=_PROPERTIES,
            return_metadata=_DISTANCE if self.query == "near_vector" else _SCORE,
        )

    def found(self, reply: Any) -> list[Found]:  # noqa: ANN401 - the client's classes for it are private
        """The procedures of a reply, best first."""
        hits = [(procedure_of(str(hit.uuid), hit.properties), hit.metadata) for hit in reply.objects]
        if self.query == "near_vector":
            return [Found(kept, 1 - (told.distance or 0)) for kept, told in hits if kept]
        best = max((told.score or 0 for _, told in hits), default=0) or 1
        scale = best if self.query == "bm25" else 1
        return [Found(kept, (told.score or 0) / scale) for kept, told in hits if kept]


def search_for(query: str, vector: list[float] | None, k: int, alpha: float) -> Search | None:
    """The search for the k procedures that fit best: by vectors, by words (scaled to the best), or by both.

    None where there is nothing to search for.
    """
    words = "" if alpha == 1 and vector is not None else " ".join(query_words(query))
    if vector is not None and not words:
        return Search("near_vector", {"near_vector": vector, "limit": k})
    asked = {"query": words, "limit": k, "query_properties": _WORDS}
    if vector is not None:
        both = {"vector": vector, "alpha": alpha, "fusion_type": HybridFusion.RELATIVE_SCORE}
        return Search("hybrid", asked | both)
    return Search("bm25", asked) if words else None


def weight_of(k: int, alpha: float | None) -> float:
    """The weight of the vectors.

    Raises:
        BadInput: k is below 1, or alpha not between 0 and 1.
    """
    weight = ALPHA if alpha is None else alpha
    if k < 1 or not 0 <= weight <= 1:
        raise BadInput(f"k must be at least 1 and alpha between 0 and 1, not {k} and {alpha}")
    return weight
