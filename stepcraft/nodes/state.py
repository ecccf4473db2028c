"""The keys of the state that the nodes of RAT, RPG and AAG share."""

import operator
from collections.abc import Mapping
from typing import Annotated, Any, NotRequired

from langchain_core.messages import AnyMessage
from langgraph.channels import EphemeralValue
from langgraph.graph.message import add_messages
from pydantic import Field
from typing_extensions import TypedDict

from stepcraft.evidence import Evidence
from stepcraft.llm.usage import RunState, Usage, add_usage, add_warnings
from stepcraft.schema import described
from stepcraft.text.changes import Change

Messages = Annotated[
    list[AnyMessage],
    Field(description="The conversation; the last human message is the question."),
    add_messages,
]

Question = Annotated[
    str,
    Field(description="The question; without one, it is the last human message."),
    EphemeralValue,
]


@described
class QuestionInput(TypedDict, total=False):
    """A question, or messages.

    Every key but `messages` belongs to one run, and is gone after its first node.
    """

    question: Question
    messages: Messages


class Finding(TypedDict):
    """What a query found."""

    query: str
    passages: list[int]
    """The numbers of the passages among the evidence, from 1."""


class Part(TypedDict):
    """A part of the draft: what is looked up and changed as one."""

    text: str
    query: str
    """What it is looked up by; "" until the model has written a query."""


@described
class Revision(TypedDict):
    """What a check changed in one part of the draft."""

    round: int
    """The round of checks, from 1."""
    part: int
    """The number of the part, from 1."""
    before: str
    """Its text before the changes."""
    after: str
    """Its text after them."""
    evidence: list[str]
    """The ids of the passages that were found for it."""


@described
class Answer(TypedDict):
    """What every graph returns."""

    # pydantic takes the texts below attributes for this class alone, not for those that inherit
    # them.
    answer: Annotated[str, Field(description="The answer.")]
    evidence: Annotated[
        list[Evidence], Field(description="The passages or procedures that were found.")
    ]
    warnings: Annotated[
        list[str],
        Field(
            description="Failed steps, reached limits, "
            "and what else a reader of the answer should know."
        ),
        add_warnings,
    ]
    usage: Annotated[
        Usage, Field(description="Model calls and tokens, in total and by node."), add_usage
    ]
    messages: NotRequired[Messages]
    """The conversation with the answer, where messages came in."""


class CheckState(Answer, RunState):
    """The state of a graph that looks up every part of a draft and changes what is wrong."""

    task: str
    """The question, or the goal."""
    task_resources: NotRequired[str]
    """What is at hand for a goal, as one text."""
    queries: list[str]
    """What is looked up before the draft is written, the question among it."""
    findings: list[Finding]
    """What each query found."""
    first_draft: str
    """The draft as it was written or came in, before the checks."""
    parts: list[Part]
    """The parts of the text as it stands; empty until the draft is split."""
    changes: Annotated[list[Change], operator.add]
    """The changes that the check of this round asks for."""
    revisions: list[Revision]
    """The changes that were made, by part and round."""
    rounds: int
    """The rounds of checks that are done."""
    model_queries: bool
    """Whether the model writes the queries of the parts."""


def passages_of(state: Mapping[str, Any], query: str) -> list[int]:
    """Return the numbers of the passages that a query found."""
    return next((each["passages"] for each in state["findings"] if each["query"] == query), [])
