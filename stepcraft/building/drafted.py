"""The results of extracting procedures from a document, as plain JSON."""

from typing_extensions import TypedDict

from stepcraft.memory.procedure import Content
from stepcraft.schema import described


@described
class Flagged(TypedDict):
    """A step with names or numbers that are not in the document."""

    step: int
    """The number of the step, starting at 1."""
    names: list[str]
    """The names, calls, options and numbers in the step that are not in the document."""


class Written(Content):
    """A procedure as a model wrote it, with the heading that the model copied."""

    heading: str


@described
class Drafted(TypedDict):
    """A procedure that a document teaches."""

    output: str
    """What the procedure achieves."""
    input: str
    """What it requires, separated by commas."""
    steps: list[str]
    """The steps in order."""
    heading: str
    """The heading under which it is taught, or "" if there is none."""
    source: str
    """The document's source, with the heading as its fragment."""
    flagged: list[Flagged]
    """The steps with names or numbers that are not in the document."""


@described
class Rejected(TypedDict):
    """Something in a document that is not a procedure, or a procedure that was not kept."""

    output: str
    """What it is about."""
    reason: str
    """Why it was rejected."""
    sentence: str
    """The sentence in the document that the reason is based on, or "" if there is none."""
