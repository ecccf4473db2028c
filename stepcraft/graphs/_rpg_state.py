"""What RPG is given, what it is set to, what it hands on and what it gives back."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired

from langgraph.channels import EphemeralValue
from pydantic import Field
from typing_extensions import TypedDict

from stepcraft.contexts.base import Context, Name, prompt_of
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted, Usage
from stepcraft.nodes.rpg import answer as answering
from stepcraft.nodes.rpg import combine as combining
from stepcraft.nodes.rpg import plan as planning
from stepcraft.nodes.rpg.input_passages import Passage
from stepcraft.segments import Segment, Selected

Kind = Literal["long", "short", "multihop"]


@dataclass(frozen=True)
class RpgContext(Context):
    """What a caller may set for one run of RPG.

    Raises:
        BadInput: a value is out of its bounds or of another type.
    """

    temperature: Annotated[
        float | None,
        Field(
            ge=0,
            le=2,
            allow_inf_nan=False,
            description="Sampling temperature; null sends none, for models that take none.",
        ),
    ] = 0.0
    retriever: Annotated[
        Name | list[Name] | None,
        Field(
            description="Where evidence comes from: corpus:docs/, web, memory, weaviate://…; one or several."
        ),
    ] = None
    k: Annotated[
        int, Field(ge=1, le=100, description="How many passages are retrieved for the question.")
    ] = 5
    max_cycles: Annotated[
        int, Field(ge=1, le=10, description="The most segments; a short answer has one whatever this says.")
    ] = 3
    plan: Annotated[
        bool, Field(description="Plan each segment; off, the question itself is the plan of each.")
    ] = True
    retrieve: Annotated[
        bool, Field(description="Write from evidence; off, from what the model knows alone.")
    ] = True
    select: Annotated[
        bool, Field(description="Select sentences for each plan; off, all passages are shown whole.")
    ] = True
    reranker: Annotated[
        Name | None,
        Field(description="What scores sentences against a plan; by default words and vectors together."),
    ] = None
    threshold: Annotated[
        float | None,
        Field(
            allow_inf_nan=False,
            description="The least score of a sentence that is selected; by default what fits the reranker.",
        ),
    ] = None
    max_evidence_tokens: Annotated[
        int, Field(ge=1, description="How many tokens of sentences are selected for a segment.")
    ] = 800
    citations: Annotated[
        Literal["ids", "inline"],
        Field(description="Whether a segment names its passages, or each sentence cites them like [1], too."),
    ] = "ids"
    plan_instructions: Annotated[str, prompt_of("plan")] = planning.INSTRUCTIONS
    answer_instructions: Annotated[str, prompt_of("answer")] = answering.INSTRUCTIONS
    combine_instructions: Annotated[str, prompt_of("combine")] = combining.INSTRUCTIONS


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
