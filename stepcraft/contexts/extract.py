"""The settings of the extraction of procedures from a document, with the instructions of its nodes."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from stepcraft.contexts.base import Context, in_nodes, prompt_of

EXTRACT_INSTRUCTIONS = """\
Find the tasks that the document teaches, and write a procedure for each."""

TRANSCRIPT_INSTRUCTIONS = """\
The document is the record of what an agent did. Write the procedure that reaches its goal again."""
"""What the node extract is told of a document of the kind "transcript"."""

VERIFY_INSTRUCTIONS = """\
Say whether somebody can reach the goal with the resources at hand and these steps alone."""


@dataclass(frozen=True)
class ExtractContext(Context, nodes=("extract", "verify")):
    """The settings of one extraction of procedures from a document.

    Raises:
        BadInput: A field is unknown, or a value has the wrong type or is out of bounds.
    """

    max_characters: Annotated[
        int,
        Field(
            ge=1_000,
            le=1_000_000,
            description="Length limit of a part of a document that is read in one call; longer documents are read by section.",
            json_schema_extra=in_nodes("extract"),
        ),
    ] = 40_000
    overlap: Annotated[
        int,
        Field(
            ge=0,
            le=100_000,
            description="Characters of the preceding part that a part of a long document is read with.",
            json_schema_extra=in_nodes("extract"),
        ),
    ] = 2_000
    strict: Annotated[
        bool,
        Field(
            description="Reject a procedure with a name, call, option or number that the document does not have."
        ),
    ] = False
    verify: Annotated[
        bool,
        Field(
            description="Ask a model of each procedure whether its output can be reached with its steps alone.",
            json_schema_extra=in_nodes("verify"),
        ),
    ] = False
    extract_instructions: Annotated[str, prompt_of("extract")] = EXTRACT_INSTRUCTIONS
    transcript_instructions: Annotated[str, prompt_of("extract")] = TRANSCRIPT_INSTRUCTIONS
    verify_instructions: Annotated[str, prompt_of("verify")] = VERIFY_INSTRUCTIONS
