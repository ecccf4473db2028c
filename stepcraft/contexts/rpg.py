"""The settings of RPG, with the instructions of its nodes."""

from typing import Literal

from stepcraft.contexts.base import (
    CHECK_INSTRUCTIONS,
    PLAN_INSTRUCTIONS,
    PartQuerySettings,
    in_nodes,
    instructions,
)

LONG_INSTRUCTIONS = """\
Answer the question for a reader who sees nothing but your answer. The evidence holds what was found
on its parts; some of it may be about something else, and what a passage says of one product,
version or case holds for that alone.
Rely on the evidence where it speaks of what is asked, with its exact names, numbers, calls and
settings. Answer every part of the question in the order in which it asks, each completely and in
one place, with code where it asks how something is done. Where the evidence is silent, say what you
know, and write "(to be looked up)" behind a name or value that you are not sure of. Where passages
contradict each other, name both. Do not speak of evidence or passages."""

SHORT_INSTRUCTIONS = """\
Find out the answer to the question. The evidence holds what was found on its parts; some of it may
be about something else. Write what has to be found out, one fact a paragraph, in full sentences
that name persons, places, works and things in full; a fact that the evidence does not have is named
by all that is known of it, and what is missing is said in words that a search would find. Then
write a last paragraph "Answer:" with the answer alone: a name, a number, a date, yes or no, and no
sentence. Where the evidence is silent, answer from what you know."""

MARKS = """\
Put the id of the passage that supports a statement behind it in square brackets, such as [p2], or
[p2][p5] for two passages; keep the marks that are there. A statement that no passage supports has
no mark."""


class RpgContext(PartQuerySettings):
    """The settings of one run of RPG (retrieve-plan-generate)."""

    kind: Literal["auto", "long", "short"] = in_nodes("auto", "plan", "generate")
    """The form of the answer: long, a short fact, or as the plan finds the question to ask for."""
    max_queries: int = in_nodes(8, "plan", ge=1, le=20)
    """Limit on the queries that are planned."""
    plan_instructions: str = instructions("plan", PLAN_INSTRUCTIONS)
    long_instructions: str = instructions("generate", LONG_INSTRUCTIONS)
    short_instructions: str = instructions("generate", SHORT_INSTRUCTIONS)
    revise_instructions: str = instructions("revise", CHECK_INSTRUCTIONS)
