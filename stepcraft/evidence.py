"""Evidence: a retrieved passage with its source, as plain JSON that survives any checkpointer."""

from typing import NotRequired

from typing_extensions import TypedDict


class Evidence(TypedDict):
    """A retrieved passage."""

    id: str
    """Names the passage in its memory or source."""
    title: str
    """What the passage is about: for a procedure, its output."""
    text: str
    """What a model reads."""
    source: str
    """Where it came from, "" if unknown."""
    score: float
    """How well it fits the query it was found with; higher is better, comparable within one memory."""
    composed_of: NotRequired[list[str]]
    """Where two procedures that follow from each other are offered as one: the ids of both, in order."""
