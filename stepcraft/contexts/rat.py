"""The settings of RAT, with the instructions of its nodes."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from stepcraft.contexts.base import LONGEST_S, Context, Name, Names, SearchSettings, in_nodes, prompt_of
from stepcraft.text.sections import UNCHANGED

MAX_PARALLEL_STEPS = 8
"""Upper limit on the steps that run in parallel."""

DRAFT_INSTRUCTIONS = """\
Answer the question by thinking it through in writing, one thought after the other.
Each thought makes a claim of its own that can be looked up and found right or wrong, with the names, dates, numbers
or calls that it rests on, and brings the answer nearer. What the claim is about is named in full, not by "it" or
"they". Where you are not sure, write what you hold likeliest.
No thought repeats the question, says what will be done, or sums up what was said."""

SPLIT_INSTRUCTIONS = """\
Cut the text into thoughts: pieces that each make one claim and can be checked on their own. A heading stays with what
stands under it, and code stays in one piece. Change no word, and leave none out."""

TO_QUERY_INSTRUCTIONS = """\
An answer to the question is being written thought by thought, and each thought is looked up as soon as it stands.
The text is the answer so far; the thought is the part of it that is looked up now.
Write the one search query that would best show whether the thought is right: short and specific, with the names of
the persons, places, works or products in full, and with what is claimed of them as what is sought, not as known.
What the text says before the thought has been checked: where the thought contradicts it, ask about what the question
asks about, in the text's terms.
Whoever searches knows neither the question nor the text."""

REVISE_INSTRUCTIONS = f"""\
The text is the beginning of an answer to the question. Its last thought was looked up, and the evidence is what was
found. Correct what the evidence shows to be wrong, and add what the text lacks, the question needs and the evidence
gives. Evidence that is about something else shows nothing; where it is silent, the text stands.
What comes before the last thought has been checked: where the thought contradicts it, the thought is corrected. Where a
correction makes another sentence of the text wrong, correct that as well: in the end the text agrees with itself.
What stands in rest follows the text and is not yours to write: do not bring it forward, answer it or repeat it.
Leave all other words, the paragraphs and the headings as they are. Do not mention the evidence or the correction.
If nothing has to be corrected or added, reply {UNCHANGED}."""

FINISH_INSTRUCTIONS = """\
The text holds thoughts that lead to the answer to the question; they were checked one by one. Write for a reader who
sees nothing but your reply. Use what the text says and nothing that it does not say. Say nothing twice, and do not
speak of thoughts, steps or checks."""


@dataclass(frozen=True)
class RatContext(Context, nodes=("draft", "split", "to_query", "revise", "finish")):
    """The settings of one run of RAT (retrieval-augmented thoughts).

    Raises:
        BadInput: A field is unknown, or a value has the wrong type or is out of bounds.
    """

    retriever: Annotated[
        Name | Names | None,
        Field(
            description="The sources of evidence: corpus:docs/, web, memory, weaviate://…; one or several.",
            json_schema_extra=in_nodes("retrieve"),
        ),
    ] = None
    finish: Annotated[
        Literal["answer", "thoughts", "article", "code"],
        Field(
            description="The form of the answer; the thoughts themselves need no model call.",
            json_schema_extra=in_nodes("finish"),
        ),
    ] = "answer"
    language: Annotated[
        Name,
        Field(
            description='Programming language of the answer for finish="code".',
            json_schema_extra=in_nodes("draft", "finish"),
        ),
    ] = "Python"
    split: Annotated[
        Literal["paragraphs", "model"],
        Field(description="How the draft is split into thoughts.", json_schema_extra=in_nodes("split")),
    ] = "paragraphs"
    query: Annotated[
        Literal["model", "draft"],
        Field(
            description='Who writes the query; with "draft" the text so far is the query.',
            json_schema_extra=in_nodes("to_query"),
        ),
    ] = "model"
    query_from: Annotated[
        Literal["thought", "draft", "question"],
        Field(
            description="What is searched for: each thought (RAT), the draft once (CoT+RAG), the question once (RAG-1).",
            json_schema_extra=in_nodes("to_query", "split"),
        ),
    ] = "thought"
    causal: Annotated[
        bool,
        Field(
            description="Revise thought by thought; off, all searches are made at once and the draft is revised once.",
            json_schema_extra=in_nodes("revise"),
        ),
    ] = True
    revise_scope: Annotated[
        Literal["prefix", "thought"],
        Field(
            description="What a revision rewrites: the text so far (the paper), or the thought alone.",
            json_schema_extra=in_nodes("revise"),
        ),
    ] = "prefix"
    rewrite: Annotated[
        Literal["patch", "whole"],
        Field(
            description="What a revision of the text so far writes: the changed paragraphs alone, or the whole text (the paper).",
            json_schema_extra=in_nodes("revise"),
        ),
    ] = "patch"
    show_rest: Annotated[
        bool,
        Field(
            description="Show a revision the thoughts that follow, so that it does not repeat them.",
            json_schema_extra=in_nodes("revise"),
        ),
    ] = True
    passages_per_step: Annotated[
        int | None,
        Field(
            ge=1,
            le=50,
            description="Passages for each thought; by default 1 for thoughts and code, else 2.",
            json_schema_extra=in_nodes("retrieve"),
        ),
    ] = None
    max_retrievals: Annotated[
        int | None,
        Field(
            ge=1,
            description="Limit on the searches of a run; by default every thought is checked.",
            json_schema_extra=in_nodes("accept"),
        ),
    ] = None
    window: Annotated[
        Literal["auto"] | Annotated[int, Field(ge=1, le=MAX_PARALLEL_STEPS)],
        Field(
            description="Steps that run in parallel; the answer is the same as in strict order (1).",
            json_schema_extra=in_nodes("accept"),
        ),
    ] = "auto"
    step_deadline_s: Annotated[
        float | None,
        Field(
            gt=0,
            le=LONGEST_S,
            allow_inf_nan=False,
            description="Time limit of a step in seconds; a step that takes longer keeps its thought.",
            json_schema_extra=in_nodes("to_query", "retrieve", "revise"),
        ),
    ] = None
    draft_instructions: Annotated[str, prompt_of("draft")] = DRAFT_INSTRUCTIONS
    split_instructions: Annotated[str, prompt_of("split")] = SPLIT_INSTRUCTIONS
    to_query_instructions: Annotated[str, prompt_of("to_query")] = TO_QUERY_INSTRUCTIONS
    revise_instructions: Annotated[str, prompt_of("revise")] = REVISE_INSTRUCTIONS
    finish_instructions: Annotated[str, prompt_of("finish")] = FINISH_INSTRUCTIONS

    @property
    def step_limit_s(self) -> float | None:
        """Time limit of one step in seconds; None without a limit."""
        return self.step_deadline_s

    def search_settings(self) -> SearchSettings:
        """The sources; by default one passage for each thought in planning and code, else two (RAT §4)."""
        default = 1 if self.finish in {"thoughts", "code"} else 2
        return SearchSettings(retriever=self.retriever, k=self.passages_per_step or default)

    @property
    def program_language(self) -> str:
        """Programming language of the answer; "" where the answer is not a program."""
        return self.language if self.finish == "code" else ""
