"""The settings of RPG, with the instructions of its nodes."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from stepcraft.contexts.base import Context, Name, SearchSettings, prompt_of

PLAN_INSTRUCTIONS = """\
An answer to the question is written segment by segment, and you plan its next segment. The plans are those that were
made so far, and the text is what was written for them.
Name the topic of the next segment: one thing that the question asks for, or that has to be known to answer it, and
that the text does not say yet. Where the question can be read in several ways, each way is a topic of its own.
Whoever looks the topic up sees neither the question nor the text: name persons, places, works and things in full, as
the text found them out.
Do not answer the question, and do not plan anything again that was planned before."""

ANSWER_INSTRUCTIONS = """\
An answer to the question is written segment by segment. The text, if there is one, is the answer so far; the plan, if
there is one, is the topic of the segment that you write now; the evidence, if there is any, was looked up for it.
Write what the evidence says on the plan, as far as the question needs it, so that it follows on the text. Pass over
what in it is about something else, and add nothing that it does not say: what is known otherwise cannot be checked.
Without any evidence on the plan write only what you are sure of, in one sentence; if that is nothing, say what is not
known.
Repeat nothing that the text says. Do not speak of plans, segments or evidence."""

COMBINE_INSTRUCTIONS = """\
The text holds what was found out, piece by piece, to answer the question. Put the pieces together and give the final
answer to the question, and nothing that it does not ask for. Go by the text."""


@dataclass(frozen=True)
class RpgContext(Context):
    """The settings of one run of RPG (retrieve-plan-generate).

    Raises:
        BadInput: A field is unknown, or a value has the wrong type or is out of bounds.
    """

    temperature: Annotated[
        float | None,
        Field(
            ge=0,
            le=2,
            allow_inf_nan=False,
            description="Sampling temperature; null sends none, for models that accept none.",
        ),
    ] = 0.0
    retriever: Annotated[
        Name | list[Name] | None,
        Field(
            description="The sources of evidence: corpus:docs/, web, memory, weaviate://…; one or several."
        ),
    ] = None
    k: Annotated[int, Field(ge=1, le=100, description="Passages retrieved for the question.")] = 5
    max_cycles: Annotated[
        int, Field(ge=1, le=10, description="Limit on the segments; a short answer always has one.")
    ] = 3
    plan: Annotated[
        bool, Field(description="Plan each segment; off, the question is the plan of each segment.")
    ] = True
    retrieve: Annotated[
        bool, Field(description="Search for evidence; off, the model answers from what it knows.")
    ] = True
    select: Annotated[
        bool, Field(description="Select sentences for each plan; off, whole passages are shown.")
    ] = True
    reranker: Annotated[
        Name | None,
        Field(description="What scores sentences against a plan; by default words and vectors combined."),
    ] = None
    threshold: Annotated[
        float | None,
        Field(
            allow_inf_nan=False,
            description="Lowest score of a selected sentence; by default the threshold of the reranker.",
        ),
    ] = None
    max_evidence_tokens: Annotated[
        int, Field(ge=1, description="Token budget of the sentences selected for a segment.")
    ] = 800
    citations: Annotated[
        Literal["ids", "inline"],
        Field(
            description="Whether the passages are named for each segment, or each sentence cites them inline, like [1], as well."
        ),
    ] = "ids"
    plan_instructions: Annotated[str, prompt_of("plan")] = PLAN_INSTRUCTIONS
    answer_instructions: Annotated[str, prompt_of("answer")] = ANSWER_INSTRUCTIONS
    combine_instructions: Annotated[str, prompt_of("combine")] = COMBINE_INSTRUCTIONS

    def search_settings(self) -> SearchSettings:
        """The sources."""
        return SearchSettings(retriever=self.retriever, k=self.k)
