"""The settings of the chat, with the instructions of its first model call."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from stepcraft.contexts.base import Context, Name, Names, prompt_of

MethodName = Literal["aag", "rat", "rpg", "direct", "cot", "rag", "few_shot", "react"]
"""The graphs that may answer a message."""

AUTO: Mapping[str, MethodName] = {"GOAL": "aag", "HOPS": "rpg", "OTHER": "rat", "TALK": "direct"}
"""What `method="auto"` chooses for each kind of message."""

ROUTE_INSTRUCTIONS = """\
Somebody talks with an assistant. The question is their last message; the conversation, where there is one, is what was
said before it. Do not answer the message; prepare it for those who will answer it and do not see the conversation. Write
the lines that reply_format asks for, and no others:
KIND is GOAL if the message asks how something is done that takes several steps: a procedure to follow. It is HOPS if a
fact has to be found first to know what to look for next, or if things are compared of which each has to be looked up. It
is OTHER if the message asks anything else, and TALK if it asks nothing: a greeting, thanks, a remark.
QUESTION is the message as it can be understood without the conversation: put in what it takes from the conversation
("it", "the second one", "and in Go?"), leave out greetings and thanks around what it asks, and leave all else as it is,
with its names, numbers and code."""


@dataclass(frozen=True)
class ChatContext(Context, nodes=("route",)):
    """The settings of one message of a chat.

    Raises:
        BadInput: A field is unknown, or a value has the wrong type or is out of bounds.
    """

    method: Annotated[
        Literal["auto", MethodName],
        Field(
            description="Who answers: a method or a baseline, or (auto) AAG a goal, RPG a question of several hops, RAT "
            "any other, and the model alone what is no question.",
            json_schema_extra={"langgraph_nodes": ["route"]},
        ),
    ] = "auto"
    memory: Annotated[
        Name | None,
        Field(
            description="The procedural memory: procedures.db, x.jsonl, store: …; by default the bundled procedures.",
            json_schema_extra={"langgraph_nodes": ["aag", "rag", "few_shot", "react"]},
        ),
    ] = None
    embeddings: Annotated[
        Name | None,
        Field(
            description='The embedding model: "wordllama", "none" (search by words alone), or as init_embeddings names it.',
            json_schema_extra={"langgraph_nodes": ["aag"]},
        ),
    ] = None
    retriever: Annotated[
        Name | Names | None,
        Field(
            description="The sources of evidence: corpus:docs/, web, memory, weaviate://…; one or several.",
            json_schema_extra={"langgraph_nodes": ["aag", "rat", "rpg", "rag", "react"]},
        ),
    ] = None
    k: Annotated[
        int | None,
        Field(
            ge=1,
            le=50,
            description="Passages or procedures of a search; by default that of the method.",
            json_schema_extra={"langgraph_nodes": ["aag", "rat", "rpg", "rag", "few_shot", "react"]},
        ),
    ] = None
    settings: Annotated[
        dict[str, Any],
        Field(
            description='Further settings of the method: {"critic": false}. With method=auto each goes to the methods '
            "that have it.",
            json_schema_extra={"default": {}, "langgraph_nodes": [*get_args(MethodName)]},
        ),
    ] = field(default_factory=dict)
    route_instructions: Annotated[str, prompt_of("route")] = ROUTE_INSTRUCTIONS
