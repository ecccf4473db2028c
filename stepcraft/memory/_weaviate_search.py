"""Searches in a collection of Weaviate."""

from weaviate.classes.query import HybridFusion

from stepcraft.index import query_words
from stepcraft.memory._weaviate_objects import SCORE, Objects, procedure_of
from stepcraft.memory._weaviate_schema import CONTENT, SEARCHED
from stepcraft.memory.store import Found


def found(objects: Objects, query: str, vector: list[float] | None, k: int, alpha: float) -> list[Found]:
    """The k procedures that fit best: by vectors, by words (scaled to the best), or by both."""
    words = " ".join(query_words(query))
    if vector is not None and (alpha == 1 or not words):
        hits = objects.query.near_vector(
            vector, limit=k, return_properties=list(CONTENT), return_metadata=SCORE
        ).objects
        scored = [(hit, 1 - (hit.metadata.distance or 0)) for hit in hits]
    elif vector is not None:
        hits = objects.query.hybrid(
            words,
            vector=vector,
            alpha=alpha,
            limit=k,
            query_properties=list(SEARCHED),
            fusion_type=HybridFusion.RELATIVE_SCORE,
            return_properties=list(CONTENT),
            return_metadata=SCORE,
        ).objects
        scored = [(hit, hit.metadata.score or 0.0) for hit in hits]
    elif words:
        hits = objects.query.bm25(
            words,
            query_properties=list(SEARCHED),
            limit=k,
            return_properties=list(CONTENT),
            return_metadata=SCORE,
        ).objects
        best = max((hit.metadata.score or 0 for hit in hits), default=0) or 1
        scored = [(hit, (hit.metadata.score or 0) / best) for hit in hits]
    else:
        scored = []
    best_first = ((procedure_of(str(hit.uuid), hit.properties), score) for hit, score in scored)
    return [Found(procedure, score) for procedure, score in best_first if procedure]
