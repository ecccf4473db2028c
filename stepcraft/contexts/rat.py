"""The settings of RAT, with the instructions of its nodes."""

from typing import Literal

from stepcraft.contexts.base import (
    CHECK_INSTRUCTIONS,
    Name,
    PartQuerySettings,
    in_nodes,
    instructions,
)

DRAFT_INSTRUCTIONS = """\
Answer the question for a reader who sees nothing but your answer. Write paragraphs with blank lines
between them, and code in fenced blocks. Each paragraph makes claims of its own that can be looked
up, with the exact names, numbers, calls and settings; none repeats the question, announces what
follows or sums up. Answer every part of the question.
The evidence, where there is any, is what a first search found; some of it may be about something
else. Rely on it where it speaks of what is asked; where it is silent, say what you know, and write
"(to be looked up)" behind a name or value that you are not sure of. Do not speak of evidence or
searches."""

FINISH_INSTRUCTIONS = """\
The text answers the question and has been checked. Give it the form that is asked for. Use what the
text says and nothing that it does not say, each thing once, for a reader who sees nothing else."""


class RatContext(PartQuerySettings):
    """The settings of one run of RAT (retrieval-augmented thoughts)."""

    check_last: bool = in_nodes(False, "begin")
    """Check the AI message that follows the last human message, instead of drafting an answer."""
    finish: Literal["text", "article", "code"] = in_nodes("text", "finish")
    """The form of the answer: the checked text itself, or, with one more call, an article or a
    program."""
    language: Name = in_nodes("Python", "finish")
    """Programming language for finish="code"."""
    draft_instructions: str = instructions("draft", DRAFT_INSTRUCTIONS)
    revise_instructions: str = instructions("revise", CHECK_INSTRUCTIONS)
    finish_instructions: str = instructions("finish", FINISH_INSTRUCTIONS)
