"""Draft the steps of a procedure from procedures for similar goals (AAG §3.2; the prompt of the RAG baseline)."""

from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.aag import EXAMPLES_INSTRUCTIONS, FACTS_INSTRUCTIONS, AagContext
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import asked_sections, evidence_sections, prompt
from stepcraft.nodes.aag.steps import STEPS_FORMAT, read_reply, steps_update


class Reading(Budgeted):
    """The input of this node."""

    question: str
    resources_text: str
    evidence: list[Evidence]


def ask(state: Reading, context: AagContext) -> list[BaseMessage]:
    """Show the goal, the resources and the similar procedures, and say what these are for."""
    sections = [
        *asked_sections("goal", state["question"], state["resources_text"]),
        *evidence_sections(state["evidence"]),
    ]
    evidence = FACTS_INSTRUCTIONS if context.examples == "auto" else EXAMPLES_INSTRUCTIONS
    return prompt(f"{context.draft_instructions}\n{evidence}", STEPS_FORMAT, "steps", sections)


def read(reply: str, _state: Reading, _context: AagContext) -> dict[str, Any]:
    """The draft with its markers of doubt; the same steps without them are the answer so far."""
    steps = read_reply(reply)
    return {"draft": steps, **steps_update(steps)}


def no_draft(_state: Reading, _why: str) -> dict[str, Any]:
    """An empty draft: the revision can still write the steps from what is looked up."""
    return {"draft": []}


draft = model_node("draft", ask, read, fallback=no_draft)
