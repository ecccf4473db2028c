"""Evidence: a retrieved passage with its source, as plain JSON that any checkpointer can store."""

from typing_extensions import TypedDict

from stepcraft.schema import described

NOTES = "stepcraft_notes"
"""The metadata key of a search's first document under which a source puts notes for readers about
the search.
"""


@described
class Evidence(TypedDict):
    """A retrieved passage."""

    id: str
    """Identifies the passage in its memory or source."""
    title: str
    """What the passage is about; for a procedure, its output."""
    text: str
    """What the model reads."""
    source: str
    """Where the passage comes from, such as a path or a URL; "" if unknown."""
    score: float
    """How well it fits its query; higher is better. Scores are comparable within one memory or
    source."""
