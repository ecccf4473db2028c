"""Passages of an index as documents."""

from langchain_core.documents import Document

from stepcraft.index import Hit


def passage_of(hit: Hit, source: str) -> Document:
    """Return a passage whose entry is its title and, on the lines that follow, its text."""
    title = str(hit.entry.payload["title"])
    metadata = {"title": title, "source": source, "score": hit.score}
    text = hit.entry.text.removeprefix(f"{title}\n")
    return Document(text, id=hit.entry.id, metadata=metadata)
