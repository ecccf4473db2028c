"""Convert passages in an index to documents."""

from langchain_core.documents import Document

from stepcraft.index import Hit

ALPHA = 0.4
"""The default weight of vectors when passages are ranked by words as well."""


def passage_of(hit: Hit, path: str = "") -> Document:
    """Return a document for a hit, whose entry has the title as its first line.

    Args:
        hit: The hit, with the title, path and place of the passage in its payload.
        path: The path to show; by default the stored one.
    """
    stored = hit.entry.payload
    title, source = str(stored["title"]), f"{path or stored['path']}{stored['place']}"
    metadata = {"title": title, "source": source, "score": hit.score}
    text = hit.entry.text.removeprefix(f"{title}\n")
    return Document(text, id=hit.entry.id, metadata=metadata)
