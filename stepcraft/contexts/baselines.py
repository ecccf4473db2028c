"""The settings of the baselines, with the instructions of their nodes."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from stepcraft.contexts.base import Context, Name, Names, SearchSettings, in_nodes, prompt_of

DIRECT = "Answer the question from what you know. Be exact: give the names, numbers, calls and settings that matter."

FROM_EVIDENCE = """\
Answer the question. The evidence holds what was found on it; it may be on something else, in part or in whole.
Rely on the evidence where it speaks of what is asked, with its exact names, numbers, calls and settings; where it is
silent, say what you know. Do not mention the evidence."""

LIKE_EXAMPLES = """\
Answer the question. The evidence holds procedures for other goals, picked at random: they show how detailed a good
procedure is and what it looks like, not what to say. Where the question asks how something is done, write a procedure
like them; else answer it as it asks. Do not mention the examples."""

STEP_BY_STEP = """\
Answer the question from what you know. First think it through step by step in writing; then answer it for a reader
who sees the answer alone."""

AGENT_INSTRUCTIONS = """\
Answer the question. You may search before you answer, and search again where what you found is not enough: for each
thing that the question needs, one short and specific query that names it in full. Where a search finds nothing of use,
try other words once. When you know enough, answer; where the evidence is silent, say what you know. The answer goes to
a reader who sees it alone: do not mention searches or evidence."""


@dataclass(frozen=True)
class DirectContext(Context, nodes=("answer",)):
    """The settings of one run of the direct baseline.

    Raises:
        BadInput: A field is unknown, or a value has the wrong type or is out of bounds.
    """

    answer_instructions: Annotated[str, prompt_of("answer")] = DIRECT


@dataclass(frozen=True)
class CotContext(DirectContext, nodes=("answer",)):
    """The settings of one run of the chain-of-thought baseline.

    Raises:
        BadInput: A field is unknown, or a value has the wrong type or is out of bounds.
    """

    answer_instructions: Annotated[str, prompt_of("answer")] = STEP_BY_STEP


@dataclass(frozen=True)
class RagContext(DirectContext, nodes=("answer",)):
    """The settings of one run of RAG.

    Raises:
        BadInput: A field is unknown, or a value has the wrong type or is out of bounds.
    """

    retriever: Annotated[
        Name | Names | None,
        Field(
            description="The sources of evidence: corpus:docs/, web, memory, …; by default the memory.",
            json_schema_extra=in_nodes("retrieve"),
        ),
    ] = None
    memory: Annotated[
        Name | None,
        Field(
            description="The memory to search where no source is named; by default the bundled procedures.",
            json_schema_extra=in_nodes("retrieve"),
        ),
    ] = None
    k: Annotated[
        int,
        Field(ge=1, le=50, description="Passages a search returns.", json_schema_extra=in_nodes("retrieve")),
    ] = 5
    answer_instructions: Annotated[str, prompt_of("answer")] = FROM_EVIDENCE

    def search_settings(self) -> SearchSettings:
        """The sources where some are named, otherwise the memory."""
        return SearchSettings(memory=self.memory, retriever=self.retriever, k=self.k)


@dataclass(frozen=True)
class FewShotContext(DirectContext, nodes=("answer",)):
    """The settings of one run of the few-shot baseline.

    Raises:
        BadInput: A field is unknown, or a value has the wrong type or is out of bounds.
    """

    memory: Annotated[
        Name | None,
        Field(
            description="The memory that the examples are taken from: procedures.db, x.jsonl, …; by default the bundled procedures.",
            json_schema_extra=in_nodes("sample"),
        ),
    ] = None
    k: Annotated[
        int, Field(ge=1, le=50, description="Number of examples.", json_schema_extra=in_nodes("sample"))
    ] = 3
    seed: Annotated[
        int,
        Field(
            ge=-(2**63),
            lt=2**63,
            description="Seed of the random choice of examples.",
            json_schema_extra=in_nodes("sample"),
        ),
    ] = 0
    answer_instructions: Annotated[str, prompt_of("answer")] = LIKE_EXAMPLES

    def search_settings(self) -> SearchSettings:
        """The memory."""
        return SearchSettings(memory=self.memory, k=self.k)


@dataclass(frozen=True)
class ReactContext(RagContext, nodes=("agent", "answer")):
    """The settings of one run of the ReAct baseline.

    Raises:
        BadInput: A field is unknown, or a value has the wrong type or is out of bounds.
    """

    k: Annotated[
        int,
        Field(
            ge=1,
            le=50,
            description="Passages a search returns.",
            json_schema_extra=in_nodes("agent", "retrieve"),
        ),
    ] = 3
    max_searches: Annotated[
        int,
        Field(
            ge=1, le=50, description="Limit on the searches of a run.", json_schema_extra=in_nodes("agent")
        ),
    ] = 5
    agent_instructions: Annotated[str, prompt_of("agent")] = AGENT_INSTRUCTIONS
