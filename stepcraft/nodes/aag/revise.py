"""Update the draft with what was looked up (AAG §3.4, Update Response)."""

from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from stepcraft.contexts.aag import AagContext
from stepcraft.errors import NoAnswer
from stepcraft.evidence import Evidence
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import asked_sections, prompt
from stepcraft.nodes.aag.answer import Answered
from stepcraft.nodes.aag.notes import notes_sections
from stepcraft.nodes.aag.steps import STEPS_FORMAT, answered, steps_of
from stepcraft.text.lists import numbered
from stepcraft.text.sections import section


class Reading(TypedDict):
    """What this node reads."""

    question: str
    resources_text: str
    draft: list[str]
    questions: list[Answered]
    knowledge: list[Evidence]


def ask(state: Reading, context: AagContext) -> list[BaseMessage]:
    """Goal, resources and draft first, what was looked up last."""
    sections = [
        *asked_sections("goal", state["question"], state["resources_text"]),
        section("steps", numbered(state["draft"])) if state["draft"] else "",
        *notes_sections(state["questions"], state["knowledge"]),
    ]
    return prompt(context.revise_instructions, STEPS_FORMAT, "steps", sections)


def read(reply: str, _state: Reading, _context: AagContext) -> dict[str, Any]:
    """The revised steps."""
    return answered(steps_of(reply))


def keep_the_draft(state: Reading, why: str) -> dict[str, Any]:
    """The draft stands as it is.

    Raises:
        NoAnswer: there is none.
    """
    if not state["draft"]:
        raise NoAnswer(f"no steps were written: {why}")
    return {}


revise = model_node("revise", ask, read, fallback=keep_the_draft, truncate_key="knowledge")
