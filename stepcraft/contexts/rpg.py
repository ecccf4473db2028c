"""The settings of RPG, with the instructions of its nodes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from stepcraft.contexts.base import Context, Name, Names, SearchSettings, in_nodes, prompt_of

PLAN_INSTRUCTIONS = """\
An answer to the question is written segment by segment, and you plan its next segment. The plans are those that were
made so far, and the text is what was written for them.
Name the topic of the next segment: one thing that the question asks for, or that has to be known to answer it, and
that the text does not say yet. Where the question can be read in several ways, each way is a topic of its own.
Whoever looks the topic up sees neither the question nor the text: name persons, places, works and things in full, as
the text found them out.
Do not answer the question, and do not plan anything again that was planned before."""

OUTLINE_INSTRUCTIONS = """\
An answer to the question is written from what is looked up, and you plan it before anything is written.
Say what kind of answer the question asks for: "short" where one fact answers it, "multihop" where one fact has to be
found out before it is known what to look up next, "long" where several things have to be told.
Then name the topics that are looked up: each is one thing that the question asks for, or that has to be known to answer
it, and together they leave out nothing that it asks, in the order in which it asks. What the same pages tell is one topic, not several. Where the question
can be read in several ways, each way is a topic.
For a short answer one topic is enough, and for a multihop one the first that has to be found out.
Whoever looks a topic up sees neither the question nor the other topics: name persons, places, works and things in full.
The titles, if there are any, are those of passages that a first search found; there may be others. Do not answer the
question."""

ANSWER_INSTRUCTIONS = """\
An answer to the question is written segment by segment. The text, if there is one, is the answer so far; the plan, if
there is one, is the topic of the segment that you write now; the evidence, if there is any, was looked up for it.
Write what the evidence says on the plan, in your own words, with the names, numbers, conditions, reasons and exceptions
that somebody who asks this question needs. Where it asks how something is done, say how: with the calls, settings and code
that it takes, and what goes wrong otherwise. Pass over what is about something else. What a passage says from the side of
one tool, product or case holds for that alone: say so, or leave it out. Where the evidence contradicts itself, say so and
give both. Say what a thing is where you first name it.
Repeat nothing that the text says. The plans, if there are any, are the topics of the other segments, which are written
beside yours: leave to them what is theirs. Do not speak of plans, segments or evidence."""

COMBINE_INSTRUCTIONS = """\
The text holds what was found out, piece by piece, to answer the question. Put the pieces together and give the final
answer to the question, and nothing that it does not ask for. Go by the text."""

FINISH_INSTRUCTIONS = """\
The text holds what was found out to answer the question, topic by topic, in the order in which it was looked up. Make it
one answer for somebody who reads nothing else.
Answer the parts of the question in the order in which it asks them, each completely and in one place. The first sentence
on a part answers it as it was asked, also where it asks whether or how things are connected. Begin without an
introduction; what has been said is not summed up. Draw every comparison that it asks for, side by side.
Say each thing once, in your own words. Keep the facts, numbers, conditions and code that bear on the question, and leave
out what is about something else. Pieces of code become one that fits together and runs as it stands, with nothing left to a
comment. What the text tells in one place is known, also where another place says that it was not found; of what the question
asks for and the text tells nowhere, say once and plainly that it is not known. Keep marked and unmarked facts in sentences
of their own.
Do not speak of the text, of topics or of looking up."""

CHECK_INSTRUCTIONS = """\
Each sentence of an answer names the evidence that it rests on. Check sentence by sentence whether that evidence bears it
out: whether somebody who knows nothing but the evidence would have to agree with all that the sentence says. Other words
for the same thing are borne out; a name, number, cause, order or comparison that the evidence does not give is not."""


_PAPER = {
    "order": "step",
    "search": "question",
    "context_sentences": 0,
    "grounding": "evidence",
    "segment_tokens": 100,
    "finish": False,
    "max_cycles": 3,
    "max_evidence_tokens": 800,
}
"""The settings of the paper's loop (RPG §4)."""


@dataclass(frozen=True)
class RpgContext(Context, nodes=("outline", "plan", "answer", "combine", "check")):
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
        Name | Names | None,
        Field(
            description="The sources of evidence: corpus:docs/, web, memory, weaviate://…; one or several.",
            json_schema_extra=in_nodes("retrieve"),
        ),
    ] = None
    k: Annotated[
        int,
        Field(
            ge=1,
            le=100,
            description="Passages retrieved for the question.",
            json_schema_extra=in_nodes("retrieve"),
        ),
    ] = 5
    paper: Annotated[
        bool,
        Field(
            description="The loop of the paper: one search for the question, each plan after the last segment, short segments from the selected sentences alone, no finish.",
            json_schema_extra=in_nodes("retrieve", "plan", "select", "answer", "combine"),
        ),
    ] = False
    order: Annotated[
        Literal["auto", "outline", "step"],
        Field(
            description="Plan all topics in one call and write their segments in parallel (outline), or each topic after the last segment (step); auto is outline for long answers.",
            json_schema_extra=in_nodes("outline", "plan"),
        ),
    ] = "auto"
    search: Annotated[
        Literal["plan", "question"],
        Field(
            description="What is searched for: the question and each plan, or the question alone.",
            json_schema_extra=in_nodes("retrieve"),
        ),
    ] = "plan"
    context_sentences: Annotated[
        int,
        Field(
            ge=0,
            le=10,
            description="Sentences shown before and after each selected one, with the opening of its passage.",
            json_schema_extra=in_nodes("select"),
        ),
    ] = 1
    grounding: Annotated[
        Literal["open", "evidence"],
        Field(
            description="Where the evidence is silent: add what the model is sure of, in sentences without a mark (open), or say what was not found (evidence).",
            json_schema_extra=in_nodes("answer", "combine"),
        ),
    ] = "open"
    segment_tokens: Annotated[
        int,
        Field(
            ge=20,
            le=2_000,
            description="Length limit of a segment of a long answer in tokens, beside code.",
            json_schema_extra=in_nodes("answer"),
        ),
    ] = 400
    finish: Annotated[
        bool,
        Field(
            description="Write one answer from the segments of a long answer; off, they are joined.",
            json_schema_extra=in_nodes("combine"),
        ),
    ] = True
    check: Annotated[
        Literal["off", "flag", "mend"],
        Field(
            description="One more call checks whether each sentence is borne out by what it cites: mark those that are not (flag), or rewrite or drop them (mend).",
            json_schema_extra=in_nodes("check"),
        ),
    ] = "off"
    max_cycles: Annotated[
        int,
        Field(
            ge=1,
            le=10,
            description="Limit on the segments; a short answer always has one.",
            json_schema_extra=in_nodes("outline", "plan"),
        ),
    ] = 4
    plan: Annotated[
        bool,
        Field(
            description="Plan each segment; off, the question is the plan of each segment.",
            json_schema_extra=in_nodes("outline", "plan"),
        ),
    ] = True
    retrieve: Annotated[
        bool,
        Field(
            description="Search for evidence; off, the model answers from what it knows.",
            json_schema_extra=in_nodes("retrieve"),
        ),
    ] = True
    select: Annotated[
        bool,
        Field(
            description="Select sentences for each plan; off, whole passages are shown.",
            json_schema_extra=in_nodes("select"),
        ),
    ] = True
    reranker: Annotated[
        Name | None,
        Field(
            description="What scores sentences against a plan; by default words and vectors combined.",
            json_schema_extra=in_nodes("select"),
        ),
    ] = None
    threshold: Annotated[
        float | None,
        Field(
            ge=-1_000,
            le=1_000,
            allow_inf_nan=False,
            description="Lowest score of a selected sentence; by default the threshold of the reranker.",
            json_schema_extra=in_nodes("select"),
        ),
    ] = None
    max_evidence_tokens: Annotated[
        int,
        Field(
            ge=1,
            description="Token budget of the sentences selected for a segment.",
            json_schema_extra=in_nodes("select"),
        ),
    ] = 1_200
    citations: Annotated[
        Literal["ids", "inline"],
        Field(
            description="Whether the passages are named for each segment, or each sentence cites them inline, like [1], as well.",
            json_schema_extra=in_nodes("answer", "combine", "trace"),
        ),
    ] = "ids"
    outline_instructions: Annotated[str, prompt_of("outline")] = OUTLINE_INSTRUCTIONS
    plan_instructions: Annotated[str, prompt_of("plan")] = PLAN_INSTRUCTIONS
    answer_instructions: Annotated[str, prompt_of("answer")] = ANSWER_INSTRUCTIONS
    combine_instructions: Annotated[str, prompt_of("combine")] = COMBINE_INSTRUCTIONS
    finish_instructions: Annotated[str, prompt_of("combine")] = FINISH_INSTRUCTIONS
    check_instructions: Annotated[str, prompt_of("check")] = CHECK_INSTRUCTIONS

    def preset(self) -> Mapping[str, Any]:
        """The settings of the paper's loop."""
        return _PAPER if self.paper else {}

    @property
    def marks(self) -> bool:
        """Whether the model marks each sentence with the evidence that it rests on; the paper's loop does not."""
        return self.citations == "inline" or not self.paper

    def search_settings(self) -> SearchSettings:
        """The sources."""
        return SearchSettings(retriever=self.retriever, k=self.k)
