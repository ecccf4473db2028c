"""The settings of a run: one pydantic model per graph, with its nodes' instructions as fields.

LangGraph converts the mapping in a run's context to this model, and Studio reads from its schema
which nodes a field belongs to. A context names models, memories and sources; objects are passed to
the function that builds the graph.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(min_length=1, max_length=2_000)]

UNCHANGED = "NO CHANGE"
"""The reply of a check that requests no changes."""


def in_nodes(default: Any, *nodes: str, **bounds: Any) -> Any:
    """Return a field that Studio shows with these nodes; `bounds` go to pydantic's Field."""
    return Field(default, json_schema_extra={"langgraph_nodes": [*nodes]}, **bounds)


def instructions(node: str, text: str) -> Any:
    """Return a field with a node's instructions, which Studio shows as its prompt."""
    return Field(
        text,
        min_length=1,
        max_length=50_000,
        description=f"Instructions of the node {node}.",
        json_schema_extra={"langgraph_nodes": [node], "langgraph_type": "prompt"},
    )


class Settings(BaseModel):
    """The settings that every graph has, all with defaults."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: Name | None = None
    """The chat model: a name for init_chat_model ("openai:gpt-5-mini"), or "extractive"."""
    node_models: dict[str, Name] = Field(default_factory=dict)
    """Different models for some nodes: {"critic": "openai:gpt-5"}."""
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    """Sampling temperature; by default none is sent."""
    seed: int | None = Field(default=None, ge=-(2**63), lt=2**63)
    """Sampling seed, for providers that accept one."""
    system_role: bool = True
    """Whether the models accept a system message; if not, its text is put at the beginning of the
    human message.
    """
    max_input_tokens: int | None = Field(default=None, ge=200)
    """Maximum length of a prompt in tokens; by default the limit in the model's profile."""
    max_calls: int | None = Field(default=None, ge=1)
    """Maximum number of model calls in a run, which then ends with the best answer so far. Retries
    and fallbacks inside a model that is passed in are not limited.
    """
    deadline_s: float | None = Field(default=None, gt=0, le=10_000_000, allow_inf_nan=False)
    """Seconds after which the run ends with the best answer so far."""


class SearchSettings(Settings):
    """The settings of graphs that search."""

    memory: Name | None = in_nodes(None, "retrieve")
    """The procedural memory, by the name under which the deployment registered it."""
    sources: list[Name] | None = in_nodes(None, "retrieve", max_length=100)
    """The sources of evidence, by their registered names; by default all of the graph's."""
    k: int = in_nodes(5, "retrieve", "agent", ge=1, le=50)
    """Number of passages that a search returns; a search for one statement in a draft returns one.
    """


CHECK_INSTRUCTIONS = """\
You check a text against evidence before it goes to a reader. The text is split into numbered parts.
The passages stand before the parts, or behind the part that they were found for. Every passage
counts for every part, its heading included, but only for the product, version and situation that it
is about.
Judge by the passages alone:
supported: a passage says the same, in whatever words. Leaving something out is not wrong. If
passages disagree, agreeing with one of them is enough.
contradicted: a passage says otherwise about a number, name, condition, exception or anything else.
not found: no passage says the same or otherwise, about all of it or about a detail.
What only leads over to the next sentence, or sums others up, has their verdict.
The reader sees the text alone: it does not mention evidence, passages or parts. That it says what
the documents do not say, or marks a name as "(unconfirmed)", is right where no passage says it."""

TO_QUERY_INSTRUCTIONS = """\
Each part of a text is looked up in a web search. Write one search query for each part that would
best show whether it is right: a few words that name persons, places, works and products in full,
with what is claimed of them as what is sought."""

NEEDS = """\
The answer has to let the person act without asking anybody: every name, command, value and place,
and the order; who may do it, which permission it takes and who grants that; what to check or save
before, and how to tell that each step worked; limits, exceptions, defaults, and what to leave
alone; how to undo it, and who should be told. Code must have all imports, defaults and types."""
"""The description of the reader's needs in the instructions for planning searches."""

PLAN_INSTRUCTIONS = f"""\
A question is to be answered from a collection of documents by somebody who sees only what searches
find. {NEEDS}
List what has to be looked up for that: short search queries, each about one thing and naming it in
full, in the words that such documents use. If the question asks for one fact, list only the queries
that find this fact."""

LOOK_AGAIN_INSTRUCTIONS = f"""\
A question is to be answered from a collection of documents, and the passages are what the first
searches found. {NEEDS}
Go through the question part by part as the person who will write the answer. What of this do you
still miss? Which passage is cut off before its point, or points to another page, role, tool or file
that matters and has not been looked up? List searches for exactly these things: short queries, in
the words that such documents use. List none for what the passages already answer, and none that
only repeats an earlier search; where that found nothing of use, ask in other words."""

WRITE_INSTRUCTIONS = """\
Answer the question for the person who asked, as the most experienced colleague would who has the
documents at hand. The passages are what was found; some are about something else, and what a
passage says of one product, version or case applies to nothing else.
Begin with the answer itself: two or three sentences, or a small table, that settle each thing that
was asked. Then comes a section under a heading for each of these things, in the order of the
question, or in the order in which one does them. What is done is a numbered list in the order of
execution, one action each, in one or two sentences, with its exact command, call or place to click
and the check that shows that it worked. Choices, limits and defaults stand in a table. Sentences
are short, and nothing is said twice.
Rely on the passages for every name, number, command, option, permission, deadline and order, and
use all of them that this person meets: who may do it and who grants that, exceptions, what happens
if it is left out. Be definite: commit to what the passages say, and follow the more specific or the
newer one where two differ, naming the other in a few words. Where they are silent, say what is
certain from general knowledge as you would any other thing. That the documents do not say something
is worth a few words only where the person asked for exactly that. If the person cannot act without
a name that no passage gives, give the probable one with "(unconfirmed)" after it, or describe it,
with where to find it.
Care is in proportion to the risk: where a step changes or destroys something that others depend on,
say what to check or save before, how to tell that it worked, how to undo it and whom to tell; where
something can simply be run again, give it complete, and nothing more. The person knows of
documents, and not of passages or searches."""

LENGTHS = {
    "brief": "Be brief: at most 300 words, not counting code and commands, and fewer for a narrow "
    "question. Give what the person needs to act, the most important first. Leave out reasons, "
    "variants and side matter; where more would be needed, say in a few words what is left out.",
    "full": "Leave nothing out that the person needs, and leave out what changes nothing for them: "
    "side matter, variants, reasons, what goes without saying. Say each thing once. Beside code "
    "and commands 600 to 1,000 words are enough for most questions, and fewer for a narrow one.",
}
"""The writer's instructions about the length of the answer."""

Length = Literal["brief", "full"]


class CheckSettings(SearchSettings):
    """The settings of graphs that look up every part of a draft and correct it."""

    rounds: int = in_nodes(1, "revise", "critic", ge=1, le=5)
    """Maximum number of rounds of checks; each further round checks the parts that the last one
    changed.
    """


class LookSettings(CheckSettings):
    """The settings of graphs that run planned searches before they write."""

    looks: int = in_nodes(1, "look_again", ge=1, le=5)
    """Maximum number of rounds of searches before the draft: the planned searches come first, then
    searches for what is still missing.
    """
    max_queries: int = in_nodes(20, "plan", "to_query", "look_again", ge=1, le=30)
    """Maximum number of queries in each round of searches."""
    look_again_instructions: str = instructions("look_again", LOOK_AGAIN_INSTRUCTIONS)


class PartQuerySettings(CheckSettings):
    """The settings of graphs in which a model can write the queries for a part."""

    query: Literal["auto", "claims", "model"] = in_nodes("auto", "split", "to_query")
    """The queries used to look up a part: its statements (claims), one query written by the model
    (model), or the model's query for web searches and statements otherwise (auto).
    """
    scope: Literal["correct", "complete"] | None = in_nodes(None, "revise")
    """Whether the check only corrects what the evidence contradicts (correct), or also adds what
    the question asks for and the evidence contains (complete). By default, a draft passed to the
    graph is corrected, and one that the graph writes is completed.
    """
    to_query_instructions: str = instructions("to_query", TO_QUERY_INSTRUCTIONS)
