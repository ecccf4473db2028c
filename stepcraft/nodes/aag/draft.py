"""Draft the steps of a procedure from procedures for similar goals (AAG §3.2, the RAG prompt)."""

from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from stepcraft.contexts.base import Context
from stepcraft.evidence import Evidence
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import asked_sections, evidence_sections, prompt
from stepcraft.nodes.aag.steps import STEPS_FORMAT, answered, steps_of

INSTRUCTIONS = """\
You write procedures for people who will follow them to the letter.
Write the steps that reach the goal with the resources at hand, in the order in which they are done.
The evidence holds procedures that were written for similar goals, the most similar first. Carry over what serves
this goal, with its exact names, calls, settings and amounts; change what differs; leave out the rest. Where the
evidence is silent, write what you know.
Each step is one action, in one to three sentences beside its code, concrete enough to be done without asking back.
Use every resource that the goal needs. Do not repeat the goal or the resources as a step.
Where you are not sure that a step, or part of one, is right for this goal, put it between [[ and ]]."""


class Reading(TypedDict):
    """What this node reads."""

    question: str
    at_hand: str
    evidence: list[Evidence]


def ask(state: Reading, context: Context) -> list[BaseMessage]:
    """The goal, the resources and the similar procedures."""
    sections = [
        *asked_sections("goal", state["question"], state["at_hand"]),
        *evidence_sections(state["evidence"]),
    ]
    return prompt(context.instructions("draft", INSTRUCTIONS), STEPS_FORMAT, "steps", sections)


def read(reply: str, _state: Reading, _context: Context) -> dict[str, Any]:
    """The draft with its marks of doubt, and the same steps without them as the first answer."""
    steps = steps_of(reply)
    return {"draft": steps, **answered(steps)}


def no_draft(_state: Reading, _why: str) -> dict[str, Any]:
    """No draft: the revision may still write the steps from what is looked up."""
    return {"draft": []}


draft = model_node("draft", ask, read, fallback=no_draft)
