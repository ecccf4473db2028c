"""What RAT is given, what it is set to, what it hands on and what it gives back."""

import operator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from stepcraft.contexts.base import Context, Name, prompt_of
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted, Usage
from stepcraft.nodes.rat import draft as drafting
from stepcraft.nodes.rat import finish as finishing
from stepcraft.nodes.rat import revise as revision
from stepcraft.nodes.rat import split as splitting
from stepcraft.nodes.rat import to_query as querying
from stepcraft.nodes.rat.accept import WIDEST, Revision
from stepcraft.nodes.rat.step import Result


@dataclass(frozen=True)
class RatContext(Context):
    """What a caller may set for one run of RAT.

    Raises:
        BadInput: a value is out of its bounds or of another type.
    """

    retriever: Annotated[
        Name | list[Name] | None,
        Field(
            description="Where evidence comes from: corpus:docs/, web, memory, weaviate://…; one or several."
        ),
    ] = None
    finish: Annotated[
        Literal["answer", "thoughts", "article", "code"],
        Field(description="What is made of the revised thoughts; the thoughts themselves take no call."),
    ] = "answer"
    language: Annotated[Name, Field(description='The programming language where finish is "code".')] = (
        "Python"
    )
    split: Annotated[
        Literal["paragraphs", "model"], Field(description="How the draft is cut into thoughts.")
    ] = "paragraphs"
    query: Annotated[
        Literal["model", "draft"],
        Field(description='Who writes the query; with "draft" the text so far is itself the query.'),
    ] = "model"
    query_from: Annotated[
        Literal["thought", "draft", "question"],
        Field(
            description="What is looked up: each thought (RAT), the draft once (CoT+RAG), the question once (RAG-1)."
        ),
    ] = "thought"
    causal: Annotated[
        bool,
        Field(description="Revise thought by thought; off, all is looked up at once and revised once."),
    ] = True
    revise_scope: Annotated[
        Literal["prefix", "thought"],
        Field(
            description="What a revision rewrites: all of the text so far (the paper), or the thought alone."
        ),
    ] = "prefix"
    show_rest: Annotated[
        bool,
        Field(description="Show a revision the thoughts still to come, so that it does not repeat them."),
    ] = True
    passages_per_step: Annotated[
        int | None,
        Field(
            ge=1, le=50, description="Passages for each thought; by default 1 in planning and code, else 2."
        ),
    ] = None
    max_retrievals: Annotated[
        int | None, Field(ge=1, description="The most thoughts that are looked up; by default every one.")
    ] = None
    window: Annotated[
        Literal["auto"] | Annotated[int, Field(ge=1, le=WIDEST)],
        Field(description="Steps that work ahead side by side; the answer is that of strict order (1)."),
    ] = "auto"
    step_deadline_s: Annotated[
        float | None,
        Field(
            gt=0,
            allow_inf_nan=False,
            description="Seconds after which a step is given up and its thought kept.",
        ),
    ] = None
    draft_instructions: Annotated[str, prompt_of("draft")] = drafting.INSTRUCTIONS
    split_instructions: Annotated[str, prompt_of("split")] = splitting.INSTRUCTIONS
    to_query_instructions: Annotated[str, prompt_of("to_query")] = querying.INSTRUCTIONS
    revise_instructions: Annotated[str, prompt_of("revise")] = revision.INSTRUCTIONS
    finish_instructions: Annotated[str, prompt_of("finish")] = finishing.INSTRUCTIONS


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
