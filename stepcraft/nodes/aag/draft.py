"""Draft the steps of a procedure from procedures for similar goals (AAG §3.2, the RAG prompt)."""

from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from stepcraft.contexts.aag import AagContext
from stepcraft.evidence import Evidence
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import asked_sections, evidence_sections, prompt
from stepcraft.nodes.aag.steps import STEPS_FORMAT, answered, steps_of


class Reading(TypedDict):
    """What this node reads."""

    question: str
    resources_text: str
    evidence: list[Evidence]


def ask(state: Reading, context: AagContext) -> list[BaseMessage]:
    """The goal, the resources and the similar procedures."""
    sections = [
        *asked_sections("goal", state["question"], state["resources_text"]),
        *evidence_sections(state["evidence"]),
    ]
    return prompt(context.draft_instructions, STEPS_FORMAT, "steps", sections)


def read(reply: str, _state: Reading, _context: AagContext) -> dict[str, Any]:
    """The draft with its marks of doubt, and the same steps without them as the first answer."""
    steps = steps_of(reply)
    return {"draft": steps, **answered(steps)}


def no_draft(_state: Reading, _why: str) -> dict[str, Any]:
    """No draft: the revision may still write the steps from what is looked up."""
    return {"draft": []}


draft = model_node("draft", ask, read, fallback=no_draft)
