"""Update the draft with what was looked up (AAG §3.4, Update Response)."""

from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from stepcraft.contexts.base import Context
from stepcraft.errors import NoAnswer
from stepcraft.evidence import Evidence
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import asked_sections, prompt
from stepcraft.nodes.aag.answer import Answered
from stepcraft.nodes.aag.notes import notes_sections
from stepcraft.nodes.aag.steps import STEPS_FORMAT, answered, steps_of
from stepcraft.text.lists import numbered
from stepcraft.text.sections import section

INSTRUCTIONS = """\
Improve the steps of a procedure with what has been looked up since they were drafted: the notes, or the evidence.
Correct what it contradicts, and add steps or details that it shows to be missing for this goal. What it says of
another product, version or setting contradicts nothing.
What stands between [[ and ]] is what the writer doubted: settle it with what was looked up; where that is silent,
keep it if it is right as far as you know, and drop or mend it if it is not.
Leave every other step as it is, in its words. Add nothing that the goal does not need, and say nothing twice.
If there are no steps yet, write them.
Do not mention what was looked up, and write no [[ or ]] around doubts."""


class Reading(TypedDict):
    """What this node reads."""

    question: str
    at_hand: str
    draft: list[str]
    questions: list[Answered]
    knowledge: list[Evidence]


def ask(state: Reading, context: Context) -> list[BaseMessage]:
    """Goal, resources and draft first, what was looked up last."""
    sections = [
        *asked_sections("goal", state["question"], state["at_hand"]),
        section("steps", numbered(state["draft"])) if state["draft"] else "",
        *notes_sections(state["questions"], state["knowledge"]),
    ]
    return prompt(context.instructions("revise", INSTRUCTIONS), STEPS_FORMAT, "steps", sections)


def read(reply: str, _state: Reading, _context: Context) -> dict[str, Any]:
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


revise = model_node("revise", ask, read, fallback=keep_the_draft, shortens="knowledge")
