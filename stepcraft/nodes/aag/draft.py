"""Draft the steps of a procedure (AAG §3.2).

With `examples=True`, as in the paper, the procedures for similar goals are examples to write from. With "auto" the model
writes from what it knows and is shown only names out of the procedures. Where it knows too little of these, it declines,
and drafts when the questions are answered, with the procedures and the answers as facts.
"""

from typing import Any, NotRequired

from langchain_core.messages import BaseMessage

from stepcraft.contexts.aag import (
    EXAMPLES_INSTRUCTIONS,
    FACTS_INSTRUCTIONS,
    KNOWLEDGE_INSTRUCTIONS,
    UNFAMILIAR_INSTRUCTIONS,
    AagContext,
)
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import asked_sections, evidence_sections, prompt
from stepcraft.nodes.aag.answer import Answered
from stepcraft.nodes.aag.steps import STEPS_FORMAT, notes_sections, procedures, read_reply, steps_update
from stepcraft.text.names import names_in
from stepcraft.text.sections import UNFAMILIAR, section

_SHOWN = 8
"""How many names of each procedure are shown to a model that writes from what it knows."""

_OR_DECLINE = f"""\
{STEPS_FORMAT}
Instead, if you do not know what the procedure is about: the line {UNFAMILIAR} alone."""


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
    """Show the goal, the resources, and the similar procedures or names out of them."""
    asked = asked_sections("goal", state["question"], state["resources_text"])
    evidence = procedures(state["evidence"], state.get("goal_evidence", []), state.get("knowledge", []))
    if context.examples is True:
        told, sections, form = [EXAMPLES_INSTRUCTIONS], evidence_sections(evidence), STEPS_FORMAT
    elif state.get("familiar") is False:
        told, sections, form = (
            [FACTS_INSTRUCTIONS],
            notes_sections(state.get("questions", []), evidence),
            STEPS_FORMAT,
        )
    elif evidence:
        told, form = [KNOWLEDGE_INSTRUCTIONS, UNFAMILIAR_INSTRUCTIONS], _OR_DECLINE
        names = [name for passage in evidence for name in list(names_in([passage["text"]]))[:_SHOWN]]
        sections = [section("names", "\n".join(dict.fromkeys(names)))] if names else []
    else:
        told, sections, form = [KNOWLEDGE_INSTRUCTIONS], [], STEPS_FORMAT
    return prompt("\n".join([context.draft_instructions, *told]), form, "steps", [*asked, *sections])


def read(reply: str, state: Reading, context: AagContext) -> dict[str, Any]:
    """The draft with its markers of doubt; the same steps without them are the answer so far.

    Where the model declines, nothing but that.
    """
    may_decline = context.examples == "auto" and state.get("familiar") is not False
    first, *_ = reply.strip().splitlines() or [""]
    if may_decline and first.strip(" \t-*_`'\".#").upper() == UNFAMILIAR:
        return {"familiar": False}
    steps = read_reply(reply)
    return {"draft": steps, **steps_update(steps)}


def no_draft(_state: Reading, _why: str) -> dict[str, Any]:
    """An empty draft: the revision can still write the steps from what is looked up."""
    return {"draft": []}


draft = model_node("draft", ask, read, fallback=no_draft)
