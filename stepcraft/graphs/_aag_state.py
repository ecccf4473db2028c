"""What AAG is given, what it is set to, what it hands on and what it gives back."""

import operator
from typing import Annotated, Any, NotRequired

from langgraph.channels import EphemeralValue
from typing_extensions import TypedDict

from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted, Usage
from stepcraft.nodes.aag import answer as answering
from stepcraft.nodes.aag import critic as criticism


class _Goal(TypedDict):
    question: str
    """The goal: what is to be reached."""


class Input(_Goal, total=False):
    """A goal, and the resources at hand."""

    resources: str | list[str]
    """What is at hand, as a comma-separated text or a list."""


class Output(TypedDict):
    """The procedure and how it came about."""

    answer: str
    """The steps as one numbered text."""
    steps: list[str]
    """What to do, in order."""
    questions: Annotated[list[answering.Answered], operator.add]
    """What was asked on the way, with its answer and the ids of the procedures that it came from."""
    evidence: list[Evidence]
    """The procedures that were used, with their best scores."""
    critiques: list[criticism.Critique]
    """What the critic asked for each time, and what became of it."""
    warnings: list[str]
    """What a reader of the answer should know of how it came about."""
    usage: Usage
    """Model calls and tokens, in all and by node."""


class State(Output, Budgeted):
    """All that the nodes of AAG hand to each other."""

    question: str
    """The goal."""
    resources: NotRequired[Annotated[Any, EphemeralValue]]
    """As they were given; a thread's next run does not find them."""
    resources_text: str
    """The resources as one text, "" if nothing was named."""
    draft: list[str]
    """The first steps, doubts between [[ and ]]."""
    queries: list[str]
    """The questions that are looked up."""
    found: list[list[Evidence]]
    """What was found for each of them."""
    knowledge: list[Evidence]
    """Without answers (NOAG): what was found for all of them."""
    edits: list[str]
    """What the critic asks for now."""
