"""The state keys of the papers' graphs."""

import operator
from typing import Annotated, Literal, TypeAlias

from langchain_core.messages import BaseMessage
from langgraph.channels import EphemeralValue
from typing_extensions import TypedDict

from stepcraft.llm.usage import RunState
from stepcraft.nodes.draft import shown_passages
from stepcraft.nodes.state import Answer, Finding, Part, QuestionInput, passages_of
from stepcraft.nodes.trace import TracedSentence
from stepcraft.schema import described
from stepcraft.text.sections import Section
from stepcraft_papers.contexts import Kind

Prompt: TypeAlias = list[BaseMessage]


class PaperState(Answer, RunState, QuestionInput):
    """The keys that the papers' graphs share."""

    task: str
    """The question, or the goal."""
    parts: list[Part]
    """Always empty; searches are kept in `queries` instead."""
    queries: list[str]
    """The current search queries."""
    findings: list[Finding]
    """The results of each query."""


def sections(**texts: str) -> list[Section]:
    """Return a section for each text that is not empty."""
    return [Section(name, "", text.strip()) for name, text in texts.items() if text.strip()]


def passages_found(state: PaperState) -> list[int]:
    """Return the numbers of the passages found for the queries, unless omitted from prompts."""
    numbers = {number for query in state["queries"] for number in passages_of(state, [query])}
    return [number for number in shown_passages(state) if number in numbers]


@described
class ThoughtRevision(TypedDict):
    """The outcome for one thought."""

    step: int
    """The number of the thought, from 1."""
    query: str
    """The search queries, one per line."""
    evidence: list[str]
    """The ids of the passages that were found."""
    before: str
    """The text so far, with the thought at its end."""
    after: str
    """The same text after the revision."""
    skipped: str
    """The reason why the thought was not checked, or "" if it was."""


class RatPaperState(PaperState):
    """The state of the paper's RAT."""

    first_draft: str
    thoughts: list[str]
    """The thoughts into which the draft was split."""
    step: int
    """The number of the thought that is being looked up, from 1."""
    thought: str
    """That thought as it was drafted."""
    text: str
    """The text so far: the revised thoughts, followed by that thought."""
    reason: str
    """The reason if no search was made for it or its search failed, or else ""."""
    revisions: list[ThoughtRevision]


@described
class Selected(TypedDict):
    """A sentence that was selected for a plan (RPG §3.2)."""

    passage: str
    """The id of its passage among the evidence."""
    title: str
    """The title of the passage."""
    text: str
    """The sentence."""
    score: float
    """How well it fits the plan; higher is better."""


@described
class Segment(TypedDict):
    """One part of an answer."""

    plan: str
    """The topic that was planned for it."""
    sentences: list[Selected]
    """The sentences it was written from, in the order of the passages and within each passage."""
    text: str
    """The text of the segment."""
    evidence: list[str]
    """The ids of the passages that contain its sentences, in order and without duplicates."""
    unsupported: bool
    """Whether it was written without evidence because no sentence fitted well enough."""


@described
class RpgPaperInput(QuestionInput, total=False):
    """A question, or messages."""

    kind: Annotated[Kind, EphemeralValue]
    """The form of the answer; the setting with this name takes precedence."""


class RpgPaperState(PaperState, RpgPaperInput):
    """The state of the paper's RPG."""

    form: Kind
    plans: list[str]
    """The plans so far; the last one is for the segment that is written next."""
    complete: bool
    """Whether nothing more has to be looked up; if there is no plan, nothing at all."""
    selected: list[Selected]
    """The sentences for the last plan."""
    segments: list[Segment]
    sentences: list[TracedSentence]


@described
class Answered(TypedDict):
    """A question that was looked up."""

    question: str
    """The question."""
    answer: str
    """The answer, or "" if the procedures do not contain one."""
    evidence: list[str]
    """The ids of the procedures that were found for it."""


@described
class Critique(TypedDict):
    """The edits that the critic asked for, and their outcome."""

    edits: list[str]
    """The edits asked for; empty if the critic is content."""
    status: Literal["content", "open", "unverified", "verified", "skipped"]
    """`open`: not applied; `unverified`: applied, and the critic has not seen the result;
    `verified`: applied, and the critic has seen the result; `skipped`: could not be applied."""


class AagPaperState(PaperState):
    """The state of the paper's AAG."""

    resources: Annotated[str | list[str], EphemeralValue]
    task_resources: str
    first_draft: str
    """The drafted steps, with `[[ ]]` around the parts that their writer doubts."""
    steps: list[str]
    """The current steps, without these marks."""
    questions: Annotated[list[Answered], operator.add]
    critiques: list[Critique]
