"""The passages of some pages that fit a query best."""

import uuid
from collections.abc import Sequence
from itertools import islice

from langchain_core.documents import Document

from stepcraft.index import Embedder, Entry, LocalIndex
from stepcraft.sources.web.readable import Page, Passage, passages

_ALPHA = 0.4
"""The weight of the vectors, as in a memory's search."""
_MOST = 500
"""How many passages of a page are ranked: a whole book would take seconds."""


def documents(query: str, pages: Sequence[Page], k: int, embedder: Embedder | None) -> list[Document]:
    """The k passages that fit best, as documents, best first."""
    found = {_id(passage): passage for page in pages for passage in islice(passages(page), _MOST)}
    index = LocalIndex(":memory:", embedder)
    try:
        # The title says what the passage is about, which the passage itself often does not.
        index.put([Entry(name, f"{one.title}\n{one.text}", {}) for name, one in found.items()])
        hits = index.search(query, k, alpha=_ALPHA)
    finally:
        index.close()
    return [_document(hit.entry.id, found[hit.entry.id], hit.score) for hit in hits]


def _id(passage: Passage) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{passage.url}\n{passage.title}\n{passage.text}"))


def _document(name: str, passage: Passage, score: float) -> Document:
    facts = {"title": passage.title, "source": passage.url, "score": score}
    return Document(page_content=passage.text, metadata=facts, id=name)
