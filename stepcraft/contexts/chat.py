"""The settings of the chat, with the instructions of its first model call."""

from typing import Any, Literal

from pydantic import Field

from stepcraft.contexts.base import SearchSettings, in_nodes, instructions

MethodName = Literal["aag", "rat", "rpg", "direct", "rag", "react"]
"""The graphs that can answer a message."""

ROUTE_INSTRUCTIONS = """\
Somebody talks with an assistant. The question is their last message; the conversation, where there
is one, is what was said before it. Do not answer the message; prepare it for those who will answer
it and do not see the conversation.
KIND is GOAL if the message asks how something is done that takes several steps: a procedure to
follow. It is REASON if it takes thinking, calculating or code rather than looking up, QUESTION if
it asks anything else, and TALK if it asks nothing: a greeting, thanks, a remark.
QUESTION is the message as it can be understood without the conversation: put in what it takes from
the conversation ("it", "the second one", "and in Go?"), leave out greetings around what it asks,
and leave all else as it is."""


class ChatContext(SearchSettings):
    """The settings for one message in a chat."""

    method: Literal["auto", MethodName] = in_nodes("auto", "route")
    """Which graph answers. With auto: AAG for a goal, RAT for a question that needs reasoning, RPG
    for any other question, and the model alone for a message that asks nothing.
    """
    method_settings: dict[str, Any] = Field(default_factory=dict)
    """Further settings for the graph that answers, such as {"rounds": 1}."""
    route_instructions: str = instructions("route", ROUTE_INSTRUCTIONS)
