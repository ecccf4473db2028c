"""Convert passages in an index to documents."""

from langchain_core.documents import Document

from stepcraft.index import Hit


def passage_of(hit: Hit, source: str) -> Document:
    """Return a document for a hit, whose entry consists of the title and the text below it."""
    title = str(hit.entry.payload["title"])
    metadata = {"title": title, "source": source, "score": hit.score}
    text = hit.entry.text.removeprefix(f"{title}\n")
    return Document(text, id=hit.entry.id, metadata=metadata)
