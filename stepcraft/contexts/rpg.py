"""The settings of RPG, with the instructions of its nodes."""

from typing import Literal

from stepcraft.contexts.base import (
    CHECK_INSTRUCTIONS,
    PLAN_INSTRUCTIONS,
    WRITE_INSTRUCTIONS,
    Length,
    LookSettings,
    PartQuerySettings,
    in_nodes,
    instructions,
)

SHORT_INSTRUCTIONS = """\
Find out the answer to the question. The evidence holds what was found on its parts; some of it may
be about something else. Write what has to be found out, one fact a paragraph, in full sentences
that name persons, places, works and things in full; a fact that the evidence does not have is named
by all that is known of it, and what is missing is said in words that a search would find. Then
write a last paragraph "Answer:" with the answer alone: a name, a number, a date, yes or no, and no
sentence. Where the evidence is silent, answer from what you know."""

MARKS = """\
Directly behind the words that a passage supports, within the sentence if it supports only a piece
of it, put its id in square brackets, such as [p2], or [p2][p5] for two passages, but not in code;
keep the marks that are there. What no passage supports has no mark."""


class RpgContext(PartQuerySettings, LookSettings):
    """The settings for a run of RPG (retrieve-plan-generate)."""

    kind: Literal["auto", "long", "short"] = in_nodes("auto", "plan", "generate")
    """The form of the answer: long, a short fact (short), or the form that the plan chooses for the
    question (auto).
    """
    length: Length = in_nodes("full", "generate")
    """The length of a long answer."""
    looks: int = in_nodes(2, "look_again", ge=1, le=5)
    """Maximum number of rounds of searches before the draft: the planned searches come first, then
    searches for what is still missing.
    """
    plan_instructions: str = instructions("plan", PLAN_INSTRUCTIONS)
    long_instructions: str = instructions("generate", WRITE_INSTRUCTIONS)
    short_instructions: str = instructions("generate", SHORT_INSTRUCTIONS)
    revise_instructions: str = instructions("revise", CHECK_INSTRUCTIONS)
