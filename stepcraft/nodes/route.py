"""Rewrite the last message as a standalone question and choose a graph for it, in one call."""

import re
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage

from stepcraft.contexts.chat import ChatContext, MethodName
from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import ModelNode
from stepcraft.llm.prompt import asked, prompt
from stepcraft.nodes.draft import end_if_late
from stepcraft.nodes.message import message_text
from stepcraft.text.clean import unfenced
from stepcraft.text.sections import Section

METHODS: Mapping[str, MethodName] = {
    "GOAL": "aag",
    "REASON": "rat",
    "QUESTION": "rpg",
    "TALK": "direct",
}
"""The graph that answers each kind of message."""
LONGEST_TURN = 1_200
"""The maximum number of characters shown per message; the rest is rarely referred to later."""
TURNS = 12
"""The number of messages shown before the last one."""

_FORMAT = """\
Two lines and nothing else: "KIND: " with one word, GOAL, REASON, QUESTION or TALK; then "QUESTION:
" with the message as it stands on its own."""
_KIND_WORDS = r"kind\W+(goal|reason|question|talk)\b"
_KIND = re.compile(_KIND_WORDS, re.IGNORECASE)
_QUESTION = re.compile(
    r"^[\s*_>#-]*question[*_]*[:\uff1a][*_\s]*+(?!kind[*_]*[:\uff1a])(.+?)"
    rf"(?=\n[\s*_>#-]*{_KIND_WORDS}\W*(?:\n|\Z)|\Z)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)


def ask(state: Any, settings: ChatContext) -> list[BaseMessage]:
    """Show the conversation and the last message."""
    sections = asked(state["task"])
    if turns := earlier(state):
        sections.insert(0, Section("conversation", "", "\n\n".join(turns)))
    return prompt(settings.route_instructions, _FORMAT, "route", sections)


def earlier(state: Mapping[str, Any]) -> list[str]:
    """Return the messages before the last human one, oldest first."""
    messages = list(state["messages"])
    while not isinstance(messages.pop(), HumanMessage):
        pass
    names = {"human": "Person", "ai": "Assistant"}
    spoken = [
        f"{names[each.type]}: {text[:LONGEST_TURN]}"
        for each in messages
        if each.type in names and (text := message_text(each).strip())
    ]
    return spoken[-TURNS:]


def read(reply: str, state: Any, settings: ChatContext) -> dict[str, Any]:
    """Return the graph and the standalone question, or the message itself if that was cut off."""
    reply = unfenced(reply)
    kind, question = _KIND.search(reply), _QUESTION.search(reply)
    if not kind or not (question or state.get("cut_off")):
        raise UnreadableReply("there were no lines KIND: and QUESTION: in it.")
    method = METHODS[kind[1].upper()] if settings.method == "auto" else settings.method
    text = question[1].strip() if question and not state.get("cut_off") else state["task"]
    return {"method": method, "asked": text}


def as_it_stands(state: Any, reason: str) -> dict[str, Any]:
    """Pass the message unchanged to the graph that the settings name, or else to RPG."""
    end_if_late(reason)
    method = state["settings"].get("method", "auto")
    return {"method": "rpg" if method == "auto" else method, "asked": state["task"]}


def nothing_to_decide(state: Any, settings: ChatContext) -> dict[str, Any] | None:
    """Skip the model if the settings name the graph and there is no earlier message."""
    if settings.method == "auto" or earlier(state):
        return None
    return {"method": settings.method, "asked": state["task"]}


route = ModelNode(
    "route",
    ask,
    read,
    as_it_stands,
    skip=nothing_to_decide,
    keep_back=lambda _settings: 1,
    started="Reading the message.",
    finished=lambda _state, update: f"{update['method'].upper()} answers: {update['asked']}",
)
