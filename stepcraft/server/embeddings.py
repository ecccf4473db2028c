"""The embeddings for a server's store (`store.index.embed`), without an API key or network.

The server loads this file by its path, so the module may also be loaded under another name.
"""

import re
import zlib
from importlib.util import find_spec

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from stepcraft.models.embeddings import WordLlamaEmbedder

DIMENSIONS = 256
"""The length of the vectors, `store.index.dims` in langgraph.json."""


class StoreEmbeddings(Embeddings):
    """The static embeddings of wordllama or, if it has no wheel for the platform, word counts.

    The asynchronous methods are inherited from LangChain and run in a thread, since loading the
    model reads files.

    Args:
        by_words: Whether the vectors count words; None means only if wordllama is not installed.
    """

    def __init__(self, *, by_words: bool | None = None) -> None:
        self._by_words = not find_spec("wordllama") if by_words is None else by_words

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector of 256 numbers per text."""
        if self._by_words:
            vectors = np.array([_words(text) for text in texts], np.float32).reshape(-1, DIMENSIONS)
        else:
            vectors = WordLlamaEmbedder().embed_documents(texts)
        rows: list[list[float]] = vectors.tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""
        return self.embed_documents([text])[0]


def _words(text: str) -> NDArray[np.float32]:
    """Return the word counts of a text, each at an index derived from the word's checksum."""
    vector = np.zeros(DIMENSIONS, np.float32)
    for word in re.findall(r"\w+", text.casefold()):
        vector[zlib.crc32(word.encode()) % DIMENSIONS] += 1
    return vector


embeddings = StoreEmbeddings()
"""For `store.index.embed` in langgraph.json."""
