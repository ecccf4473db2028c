"""The state keys shared by the nodes of RAT, RPG and AAG."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired

from langchain_core.messages import AnyMessage
from langgraph.channels import EphemeralValue
from langgraph.graph.message import add_messages
from pydantic import Field
from typing_extensions import TypedDict

from stepcraft.evidence import Evidence
from stepcraft.llm.usage import RunState, Usage, add_usage, add_warnings
from stepcraft.schema import described
from stepcraft.text.edits import Change

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
    """The input of a graph: a question, or messages.

    Every key except `messages` belongs to a single run and is removed after its first node.
    """

    question: Question
    messages: Messages


class Finding(TypedDict):
    """The passages that a query found."""

    query: str
    passages: list[int]
    """The numbers of the passages in the evidence, starting at 1."""
    failed: NotRequired[bool]
    """Whether a source failed, so that the next round searches for the query again."""


class Part(TypedDict):
    """A part of the draft, which is checked and changed as a unit."""

    text: str
    queries: list[str]
    """The queries used to look it up; empty until the model has written one."""


Verdict = Literal["supported", "contradicted", "not found"]


@described
class Check(TypedDict):
    """A verdict on a statement in the draft, based on the evidence."""

    round: int
    """The round of checks, starting at 1."""
    part: int
    """The number of the part that contains the statement, starting at 1."""
    statement: int
    """The number of the statement in its part, from 1, or 0 if the part was judged as a whole."""
    text: str
    """The statement as it was checked: a sentence, or the whole part."""
    words: str
    """The quoted words to which the verdict applies, or "" if it applies to the whole statement.
    """
    verdict: Verdict
    """`supported`: the evidence says the same. `contradicted`: it says otherwise. `not found`: it
    does not say."""
    evidence: list[str]
    """The ids of the passages on which the verdict is based."""


@described
class Revision(TypedDict):
    """A change that a check made to one part of the draft."""

    round: int
    """The round of checks, starting at 1."""
    part: int
    """The number of the part, starting at 1."""
    before: str
    """The text of the part before the changes."""
    after: str
    """The text of the part after the changes."""
    evidence: list[str]
    """The ids of the passages that contradict the part, or else of those that only its new text
    cites, or else of those found for it.
    """


@described
class Answer(TypedDict):
    """The output of every graph."""

    # Pydantic uses attribute docstrings only for the class itself; subclasses do not inherit
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
    """The conversation including the answer, if messages were passed in."""


class CheckState(Answer, RunState):
    """The state of a graph that looks up and corrects every part of a draft."""

    task: str
    """The question, or the goal."""
    task_resources: NotRequired[str]
    """The resources available for a goal, as a single string."""
    queries: list[str]
    """The queries made before the draft is written, including the question."""
    findings: list[Finding]
    """The results of each query."""
    first_draft: str
    """The draft as it was written or passed in, before any checks."""
    parts: list[Part]
    """The parts of the current text; empty until the draft is split."""
    pending: list[int]
    """The numbers of the parts still to be checked in this round."""
    changes: list[Change]
    """The changes requested by this round's check."""
    checks: list[Check]
    """The verdicts on the statements in the draft, by round and part."""
    revisions: list[Revision]
    """The changes that were made, by part and round."""
    passages_seen: int
    """The number of passages, counting from the first, that the writer of the draft saw; 0 if the
    draft was passed in or if some passages were left out of the writer's prompt.
    """
    rounds: int
    """The number of completed rounds of checks."""
    model_queries: bool
    """Whether the model writes the queries for the parts."""
    scope: Literal["correct", "complete"]
    """Whether the check only corrects the draft or also completes it."""
    judges_statements: bool
    """Whether verdicts are given on each statement rather than on each part."""


class LookState(CheckState):
    """The state of a graph that runs the searches in its plan before it writes."""

    looks_left: int
    """The number of search rounds that are still allowed before the draft."""


def passages_of(state: Mapping[str, Any], queries: Sequence[str]) -> list[int]:
    """Return the numbers of the passages found by the given queries, without duplicates."""
    by_query = {each["query"]: each["passages"] for each in state["findings"]}
    return list(dict.fromkeys(number for query in queries for number in by_query.get(query, ())))
