"""What AAG is given, what it is set to, what it hands on and what it gives back."""

import operator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired

from langgraph.channels import EphemeralValue
from pydantic import Field
from typing_extensions import TypedDict

from stepcraft.contexts.base import Context, Name, prompt_of
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted, Usage
from stepcraft.nodes.aag import answer as answering
from stepcraft.nodes.aag import critic as criticism
from stepcraft.nodes.aag import draft as drafting
from stepcraft.nodes.aag import edit as editing
from stepcraft.nodes.aag import revise as revision
from stepcraft.nodes.aag import to_query as querying


@dataclass(frozen=True)
class AagContext(Context):
    """What a caller may set for one run of AAG.

    Raises:
        BadInput: a value is out of its bounds or of another type.
    """

    memory: Annotated[
        Name | None,
        Field(
            description="The procedures to learn from: procedures.db, x.jsonl, store: …; by default the bundled ones."
        ),
    ] = None
    embeddings: Annotated[
        Name | None,
        Field(
            description='How texts are compared: "wordllama", "none" (by words alone), or as init_embeddings names it.'
        ),
    ] = None
    alpha: Annotated[
        float | None,
        Field(
            ge=0,
            le=1,
            description="Weight of the vectors in a search: 1 only vectors (the paper), 0 only words.",
        ),
    ] = None
    k: Annotated[int, Field(ge=1, le=50, description="Procedures retrieved for each query.")] = 3
    compose: Annotated[
        bool,
        Field(
            description="Offer the draft two procedures as one where the first yields what the second needs."
        ),
    ] = False
    answer_from: Annotated[
        Literal["memory", "memory+source"],
        Field(description="What the questions are answered from: procedures alone, or passages beside them."),
    ] = "memory"
    retriever: Annotated[
        Name | list[Name] | None,
        Field(
            description='Where the passages come from with answer_from="memory+source": corpus:docs/, web, …'
        ),
    ] = None
    n_questions: Annotated[
        int, Field(ge=1, le=20, description="Questions asked before the draft is revised (N).")
    ] = 4
    max_updates: Annotated[int, Field(ge=0, le=20, description="The most times that edits are applied.")] = 3
    questions: Annotated[bool, Field(description="Ask questions and revise; off is the ablation NOQG.")] = (
        True
    )
    answers: Annotated[
        bool,
        Field(description="Answer the questions; off (NOAG), their procedures are the context themselves."),
    ] = True
    critic: Annotated[bool, Field(description="Criticise and edit; off is the ablation NOCR.")] = True
    draft_instructions: Annotated[str, prompt_of("draft")] = drafting.INSTRUCTIONS
    to_query_instructions: Annotated[str, prompt_of("to_query")] = querying.INSTRUCTIONS
    answer_instructions: Annotated[str, prompt_of("answer")] = answering.INSTRUCTIONS
    revise_instructions: Annotated[str, prompt_of("revise")] = revision.INSTRUCTIONS
    critic_instructions: Annotated[str, prompt_of("critic")] = criticism.INSTRUCTIONS
    edit_instructions: Annotated[str, prompt_of("edit")] = editing.INSTRUCTIONS


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
    at_hand: str
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
