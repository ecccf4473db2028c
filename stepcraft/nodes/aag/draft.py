"""Draft the steps of a procedure (AAG §3.2).

With `examples=True`, as in the paper, the procedures for similar goals are examples to write from. With "auto" the model
writes from what it knows. Where it does not know what the goal is about, it drafts when the questions are asked, and takes
the facts from the procedures that were found for them and for the goal.
"""

from typing import Any, NotRequired

from langchain_core.messages import BaseMessage

from stepcraft.contexts.aag import (
    EXAMPLES_INSTRUCTIONS,
    FACTS_INSTRUCTIONS,
    KNOWLEDGE_INSTRUCTIONS,
    AagContext,
)
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import asked_sections, evidence_sections, prompt
from stepcraft.nodes.aag.answer import Answered
from stepcraft.nodes.aag.steps import STEPS_FORMAT, notes_sections, procedures, read_reply, steps_update
from stepcraft.progress import Said, counted
from stepcraft.text.clean import marked


class Reading(Budgeted):
    """The input of this node."""

    question: str
    resources_text: str
    evidence: list[Evidence]
    goal_evidence: NotRequired[list[str]]
    familiar: NotRequired[bool | None]
    questions: NotRequired[list[Answered]]
    knowledge: NotRequired[list[Evidence]]


def ask(state: Reading, context: AagContext) -> list[BaseMessage]:
    """Show the goal and the resources, and the similar procedures where they are needed; say what these are for."""
    sections = asked_sections("goal", state["question"], state["resources_text"])
    if context.examples is True:
        told = EXAMPLES_INSTRUCTIONS
        sections += evidence_sections(state["evidence"])
    elif state.get("familiar") or not state["evidence"]:
        told = KNOWLEDGE_INSTRUCTIONS
    else:
        told = FACTS_INSTRUCTIONS
        found = procedures(state["evidence"], state.get("goal_evidence", []), state.get("knowledge", []))
        sections += notes_sections(state.get("questions", []), found)
    return prompt(f"{context.draft_instructions}\n{told}", STEPS_FORMAT, "steps", sections)


def read(reply: str, _state: Reading, _context: AagContext) -> dict[str, Any]:
    """The draft with its markers of doubt; the same steps without them are the answer so far."""
    steps = read_reply(reply)
    return {"draft": steps, **steps_update(steps)}


def no_draft(_state: Reading, _why: str) -> dict[str, Any]:
    """An empty draft: the revision can still write the steps from what is looked up."""
    return {"draft": []}


def describe(_state: Reading, update: dict[str, Any]) -> Said:
    """How many steps there are, and how many of them hold a doubt."""
    steps = update["draft"]
    doubts = sum(bool(marked(step)) for step in steps)
    beside = f", {doubts} of them with doubts" if doubts else ""
    return Said(
        f"Wrote a draft of {counted(len(steps), 'step')}{beside}.", {"steps": len(steps), "doubts": doubts}
    )


draft = model_node(
    "draft",
    ask,
    read,
    fallback=no_draft,
    description="Draft the steps of the procedure.",
    starts=lambda _state: Said("Drafting the steps."),
    describe=describe,
)
