"""Say whether the model knows what a goal is about, so that it can draft from its own knowledge (AAG, `examples="auto"`).

Examples make a model that knows the domain write less than it knows; one that does not know it needs them.
"""

from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.aag import AagContext
from stepcraft.errors import UnreadableReply
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import asked_sections, prompt
from stepcraft.progress import Said
from stepcraft.text.names import names_in
from stepcraft.text.sections import FAMILIAR, UNFAMILIAR, section

_FORMAT = f"One word, and nothing else: {FAMILIAR} or {UNFAMILIAR}."

_SHOWN = 8
"""How many names of each procedure are shown."""


class Reading(Budgeted):
    """The input of this node."""

    question: str
    resources_text: str
    evidence: list[Evidence]


def ask(state: Reading, context: AagContext) -> list[BaseMessage]:
    """Show the goal, the resources, and names out of the similar procedures."""
    names = [name for passage in state["evidence"] for name in list(names_in([passage["text"]]))[:_SHOWN]]
    sections = [
        *asked_sections("goal", state["question"], state["resources_text"]),
        section("names", "\n".join(dict.fromkeys(names))) if names else "",
    ]
    return prompt(context.assess_instructions, _FORMAT, "familiarity", sections)


def read(reply: str, _state: Reading, _context: AagContext) -> dict[str, Any]:
    """Whether the model knows what the goal is about."""
    words = reply.upper().replace("*", " ").replace(".", " ").split()
    if (UNFAMILIAR in words) == (FAMILIAR in words):
        raise UnreadableReply(f"there was neither {FAMILIAR} nor {UNFAMILIAR} alone in it.")
    return {"familiar": FAMILIAR in words}


def no_verdict(_state: Reading, _why: str) -> dict[str, Any]:
    """The draft is written from what is found."""
    return {"familiar": False}


def describe(_state: Reading, update: dict[str, Any]) -> Said:
    """What the model said of itself."""
    if update["familiar"]:
        return Said("The model knows what the goal is about.", {"familiar": True})
    return Said(
        "The model does not know what the goal is about, so the draft is written from what is found.",
        {"familiar": False},
    )


assess = model_node(
    "assess",
    ask,
    read,
    fallback=no_verdict,
    reserve_calls=lambda _state: 1,
    description="Ask whether the model knows what the goal is about.",
    starts=lambda _state: Said("Asking whether the model knows what the goal is about."),
    describe=describe,
)
