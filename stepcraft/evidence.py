"""Evidence: a retrieved passage with its source, as plain JSON that any checkpointer can store."""

from typing_extensions import TypedDict

from stepcraft.schema import described

NOTES = "stepcraft_notes"
"""The metadata key for a source's notes about a search, which become warnings. They are stored in
the first document that the search returns.
"""


@described
class Evidence(TypedDict):
    """A retrieved passage."""

    id: str
    """Identifies the passage in its memory or source."""
    title: str
    """What the passage is about; for a procedure, its output."""
    text: str
    """The text that is shown to the model."""
    source: str
    """Where the passage comes from, such as a path or a URL; "" if unknown."""
    score: float
    """How well the passage matches its query; higher is better. Scores are comparable within one
    memory or source.
    """


def key_of(passage: Evidence) -> tuple[str, str, str]:
    """Return the key of a passage; the same text with two titles or sources is two passages."""
    return passage["title"], passage["source"], passage["text"]
