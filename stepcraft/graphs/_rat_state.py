"""What RAT is given, what it is set to, what it hands on and what it gives back."""

import operator
from typing import Annotated

from typing_extensions import TypedDict

from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted, Usage
from stepcraft.nodes.rat.accept import Revision
from stepcraft.nodes.rat.step import Result


class Input(TypedDict):
    """A question."""

    question: str
    """What is to be answered."""


class Output(TypedDict):
    """The answer and how it came about."""

    answer: str
    draft: str
    """What was written before anything was looked up."""
    revisions: list[Revision]
    """What became of each thought."""
    evidence: list[Evidence]
    """The passages that were found, with their best scores."""
    warnings: list[str]
    """What a reader of the answer should know of how it came about."""
    usage: Usage
    """Model calls and tokens, in all and by node."""


class State(Output, Budgeted):
    """All that the nodes of RAT hand to each other."""

    question: str
    """What is to be answered."""
    thoughts: list[str]
    """The draft cut into pieces that are checked one by one."""
    text: str
    """The thoughts that were checked, as they are by now."""
    done: int
    """How many thoughts were checked."""
    width: int
    """How many steps the next round makes side by side."""
    retrievals: int
    """How many searches were made for steps that were taken."""
    query: str
    """Where all is looked up at once: the queries."""
    found: list[Evidence] | None
    """And what they found; None until then."""
    results: Annotated[list[Result], operator.add]
    """What the steps of this round gave."""
