"""What extraction makes of a document, as plain JSON."""

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from stepcraft.schema import described


@described
class Flagged(TypedDict):
    """A step with something that the document does not have."""

    step: int
    """The number of the step, from 1."""
    names: list[str]
    """The names, calls, options and numbers of the step that the document does not have."""


class Content(TypedDict):
    """What a procedure says."""

    # pydantic takes the texts below attributes for a class of its own alone, not for its heirs.
    output: Annotated[str, Field(description="What is reached.")]
    input: Annotated[
        str, Field(description="What has to be there before, as a comma-separated text.")
    ]
    steps: Annotated[list[str], Field(description="The steps in order.")]


class Written(Content):
    """A procedure as a model wrote it."""

    heading: Annotated[
        str, Field(description='The heading under which it is taught; "" if it has none.')
    ]


@described
class Drafted(Written):
    """A procedure that a document teaches."""

    source: str
    """The document's source, with the heading as its fragment."""
    flagged: list[Flagged]
    """The steps with something that the document does not have."""
    verified: bool | None
    """Whether a reader can reach the output by the steps alone; None where no model was asked."""
    missing: str
    """What that reader could not do; "" if nothing."""


@described
class Rejected(TypedDict):
    """Something in a document that is no procedure, or a procedure that was not kept."""

    output: str
    """What it is about."""
    reason: str
    """Why it was rejected."""
    sentence: str
    """The sentence of the document that the reason rests on; "" if there is none."""
