"""The settings of RAT, with the instructions of its nodes."""

from typing import Literal

from stepcraft.contexts.base import (
    CHECK_INSTRUCTIONS,
    WRITE_INSTRUCTIONS,
    Length,
    Name,
    PartQuerySettings,
    in_nodes,
    instructions,
)

FINISH_INSTRUCTIONS = """\
The text answers the question and has been checked. Give it the form that is asked for. Use what the
text says and nothing that it does not say, each thing once, for a reader who sees nothing else."""


class RatContext(PartQuerySettings):
    """The settings for a run of RAT (retrieval-augmented thoughts)."""

    check_last: bool = in_nodes(False, "begin")
    """Check the AI message that follows the last human message, instead of drafting an answer."""
    finish: Literal["text", "article", "code"] = in_nodes("text", "finish")
    """The form of the answer: the checked text itself, or, with one more call, an article or a
    program."""
    language: Name = in_nodes("Python", "finish")
    """Programming language for finish="code"."""
    length: Length = in_nodes("full", "draft")
    """The length of an answer that is drafted."""
    draft_instructions: str = instructions("draft", WRITE_INSTRUCTIONS)
    revise_instructions: str = instructions("revise", CHECK_INSTRUCTIONS)
    finish_instructions: str = instructions("finish", FINISH_INSTRUCTIONS)
