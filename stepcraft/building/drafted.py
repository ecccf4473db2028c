"""What extraction makes of a document, as plain JSON."""

from typing_extensions import TypedDict

from stepcraft.memory.procedure import Content
from stepcraft.schema import described


@described
class Flagged(TypedDict):
    """A step with something that the document does not have."""

    step: int
    """The number of the step, from 1."""
    names: list[str]
    """The names, calls, options and numbers of the step that the document does not have."""


class Written(Content):
    """A procedure as a model wrote it, with the heading that it copied."""

    heading: str


@described
class Drafted(TypedDict):
    """A procedure that a document teaches."""

    output: str
    """What is reached."""
    input: str
    """What has to be there before, as a comma-separated text."""
    steps: list[str]
    """The steps in order."""
    heading: str
    """The heading under which it is taught; "" if it has none."""
    source: str
    """The document's source, with the heading as its fragment."""
    flagged: list[Flagged]
    """The steps with something that the document does not have."""


@described
class Rejected(TypedDict):
    """Something in a document that is no procedure, or a procedure that was not kept."""

    output: str
    """What it is about."""
    reason: str
    """Why it was rejected."""
    sentence: str
    """The sentence of the document that the reason rests on; "" if there is none."""
