"""Texts, JSON payloads and vectors in one SQLite file, searched by words and vectors together.

This is our own code because no maintained library combines FTS5's BM25 and exact cosine similarity
in one ranking over a single file; SQLite and NumPy do the work. Memories, corpora and the rerankers
are built on it.
"""

from stepcraft.index._file import DamagedIndex, Entry, recorded_embeddings
from stepcraft.index._refusals import refusals
from stepcraft.index._vectors import (
    Embedder,
    Hit,
    Matrix,
    embedded,
    query_vector,
    unit_vectors,
)
from stepcraft.index.groups import Complete, GroupedIndex, in_group
from stepcraft.index.local import COPY, MOST_RESULTS, LocalIndex, check_recorded, check_search

__all__ = [
    "COPY",
    "MOST_RESULTS",
    "Complete",
    "DamagedIndex",
    "Embedder",
    "Entry",
    "GroupedIndex",
    "Hit",
    "LocalIndex",
    "Matrix",
    "check_recorded",
    "check_search",
    "embedded",
    "in_group",
    "query_vector",
    "recorded_embeddings",
    "refusals",
    "unit_vectors",
]
