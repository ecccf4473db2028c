"""What RPG is given, what it is set to, what it hands on and what it gives back."""

from typing import Annotated, Any, Literal, NotRequired

from langgraph.channels import EphemeralValue
from typing_extensions import TypedDict

from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted, Usage
from stepcraft.nodes.rpg.input_passages import Passage
from stepcraft.segments import Segment, Selected

Kind = Literal["long", "short", "multihop"]


class Input(TypedDict):
    """A question, and how it is to be answered."""

    question: str
    """What is to be answered."""
    kind: NotRequired[Kind]
    """An answer of several segments (the default), a short one, or a short one that takes several steps."""
    passages: NotRequired[list[str | Passage]]
    """What it is to be answered from; then nothing is searched."""


class Output(TypedDict):
    """The answer and how it came about."""

    answer: str
    plans: list[str]
    """The topics of the segments, in order."""
    segments: list[Segment]
    """What was written for each plan, and the sentences it was written from."""
    evidence: list[Evidence]
    """The passages of those sentences, in the order of their first use: [1] is the first of them."""
    warnings: list[str]
    """What a reader of the answer should know of how it came about."""
    usage: Usage
    """Model calls and tokens, in all and by node."""


class State(Output, Budgeted):
    """All that the nodes of RPG hand to each other; until the end `evidence` is all that may be selected from."""

    question: str
    """What is to be answered."""
    kind: NotRequired[Annotated[Any, EphemeralValue]]
    """As it was given; a thread's next run does not find it."""
    passages: NotRequired[Annotated[Any, EphemeralValue]]
    """As they were given; a thread's next run does not find them."""
    task: Kind
    """How the question is answered."""
    given: bool
    """Whether the passages were given, so that nothing is searched."""
    plan: str
    """The topic of the segment that is under way."""
    signal: str
    """What the planner replied instead of a topic, "" if it gave one."""
    selected: list[Selected]
    """The sentences for the segment that is under way."""
