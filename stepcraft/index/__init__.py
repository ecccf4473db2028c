"""The index that memories, sources and rankings stand on: texts, payloads and vectors in SQLite."""

from stepcraft.index._file import recorded_settings
from stepcraft.index._rank import Hit
from stepcraft.index._rows import Changes, Entry
from stepcraft.index._vectors import Embedder, Matrix, aquery_vector, embedded, query_vector, unit_vectors
from stepcraft.index._words import cjk_words, query_words
from stepcraft.index.local import LocalIndex

__all__ = [
    "Changes",
    "Embedder",
    "Entry",
    "Hit",
    "LocalIndex",
    "Matrix",
    "aquery_vector",
    "cjk_words",
    "embedded",
    "query_vector",
    "query_words",
    "recorded_settings",
    "unit_vectors",
]
