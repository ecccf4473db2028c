"""Apply the edits that the critic or a person asks for to the steps, and leave everything else as it is (AAG §3.5)."""

from typing import Any, Literal

from langchain_core.messages import BaseMessage

from stepcraft.contexts.aag import AagContext
from stepcraft.errors import UnreadableReply
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import asked_sections, prompt
from stepcraft.nodes.aag.answer import Answered
from stepcraft.nodes.aag.critic import Critique
from stepcraft.nodes.aag.steps import (
    PATCH_FORMAT,
    STEPS_FORMAT,
    changed_steps,
    notes_sections,
    read_changes,
    read_reply,
    steps_update,
)
from stepcraft.progress import Said, counted
from stepcraft.text.lists import numbered
from stepcraft.text.patch import StepChange
from stepcraft.text.sections import section

_WHOLE = f"""\
All the steps, the changed ones and the others; where steps refer to each other by number, the numbers follow.
{STEPS_FORMAT}"""


class Reading(Budgeted):
    """The input of this node."""

    question: str
    resources_text: str
    steps: list[str]
    edits: list[str]
    questions: list[Answered]
    knowledge: list[Evidence]
    critiques: list[Critique]


def ask(state: Reading, context: AagContext) -> list[BaseMessage]:
    """Show what is the same at every edit first (goal, resources, what was looked up), then the steps and the edits."""
    sections = [
        *asked_sections("goal", state["question"], state["resources_text"]),
        *notes_sections(state["questions"], state["knowledge"]),
        section("steps", numbered(state["steps"], code_at_margin=True)),
        section("edits", "\n".join(f"- {wish}" for wish in state["edits"])),
    ]
    if context.rewrite == "patch":
        return prompt(context.edit_instructions, PATCH_FORMAT, "patch", sections)
    return prompt(context.edit_instructions, _WHOLE, "steps", sections)


def read(reply: str, state: Reading, context: AagContext) -> dict[str, Any]:
    """The edited steps, and the changes with the critique that asked for them.

    Raises:
        UnreadableReply: There are no steps or changes in it, or not all changes can be applied.
    """
    if context.rewrite == "whole":
        return {**steps_update(read_reply(reply)), "critiques": _closed(state, "unverified")}
    steps, changes, problem = read_changes(reply, state["steps"])
    update = {**steps_update(steps), "critiques": _closed(state, "unverified", changes)}
    if problem:
        raise UnreadableReply(problem, update=update)
    return update


def keep_the_steps(state: Reading, _why: str) -> dict[str, Any]:
    """The steps as they were; the critique is marked as skipped."""
    return {"critiques": _closed(state, "skipped")}


def _closed(
    state: Reading, status: Literal["unverified", "skipped"], changes: list[StepChange] | None = None
) -> list[Critique]:
    """The critiques with the outcome of the last one, which `update_state` may have left out or replaced."""
    last = Critique(edits=state["edits"], status=status)
    if changes is not None:
        last["changes"] = changes
    is_open = bool(state["critiques"]) and state["critiques"][-1]["status"] == "open"
    return [*(state["critiques"][:-1] if is_open else state["critiques"]), last]


def describe(state: Reading, update: dict[str, Any]) -> Said:
    """How many steps were changed."""
    steps = update["steps"]
    changes = changed_steps(state["steps"], steps)
    return Said(
        f"Changed {counted(changes, 'step')}; there are {len(steps)} now.",
        {"steps": len(steps), "changes": changes},
    )


edit = model_node(
    "edit",
    ask,
    read,
    fallback=keep_the_steps,
    truncate_key="knowledge",
    description="Apply the edits of the critic, or of the person who reviews.",
    starts=lambda state: Said(f"Applying {counted(len(state['edits']), 'edit')}."),
    describe=describe,
)
