"""Apply the critic's edits to the steps and leave the rest alone (AAG §3.5)."""

from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from stepcraft.contexts.aag import AagContext
from stepcraft.evidence import Evidence
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import asked_sections, prompt
from stepcraft.nodes.aag.answer import Answered
from stepcraft.nodes.aag.critic import Critique
from stepcraft.nodes.aag.notes import notes_sections
from stepcraft.nodes.aag.steps import STEPS_FORMAT, answered, steps_of
from stepcraft.text.lists import numbered
from stepcraft.text.sections import section


class Reading(TypedDict):
    """What this node reads."""

    question: str
    resources_text: str
    steps: list[str]
    edits: list[str]
    questions: list[Answered]
    knowledge: list[Evidence]
    critiques: list[Critique]


def ask(state: Reading, context: AagContext) -> list[BaseMessage]:
    """Goal, resources and what was looked up first; they are the same at every edit. Steps and edits last."""
    sections = [
        *asked_sections("goal", state["question"], state["resources_text"]),
        *notes_sections(state["questions"], state["knowledge"]),
        section("steps", numbered(state["steps"])),
        section("edits", "\n".join(f"- {wish}" for wish in state["edits"])),
    ]
    return prompt(context.edit_instructions, STEPS_FORMAT, "steps", sections)


def read(reply: str, state: Reading, _context: AagContext) -> dict[str, Any]:
    """The edited steps."""
    return {**answered(steps_of(reply)), **_closed(state, "unverified")}


def keep_the_steps(state: Reading, _why: str) -> dict[str, Any]:
    """The steps stand as they were; the critique is marked as skipped."""
    return _closed(state, "skipped")


def _closed(state: Reading, status: str) -> dict[str, Any]:
    *past, last = state["critiques"]
    return {"critiques": [*past, {**last, "status": status}]}


edit = model_node("edit", ask, read, fallback=keep_the_steps, truncate_key="knowledge")
