"""Update the draft with what was looked up (AAG §3.4, Update Response)."""

from typing import Any, NotRequired

from langchain_core.messages import BaseMessage

from stepcraft.contexts.aag import AagContext
from stepcraft.errors import NoAnswer, UnreadableReply
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import asked_sections, prompt
from stepcraft.nodes.aag.answer import Answered
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
from stepcraft.text.sections import section


class Reading(Budgeted):
    """The input of this node."""

    question: str
    resources_text: str
    draft: list[str] | None
    familiar: NotRequired[bool | None]
    questions: list[Answered]
    knowledge: list[Evidence]


def ask(state: Reading, context: AagContext) -> list[BaseMessage]:
    """Show the goal, the resources and the draft first, and what was looked up last."""
    sections = [
        *asked_sections("goal", state["question"], state["resources_text"]),
        section("steps", numbered(state["draft"], code_at_margin=True)) if state["draft"] else "",
        *notes_sections(state["questions"], state["knowledge"]),
    ]
    if _is_patch(state, context):
        return prompt(context.revise_instructions, PATCH_FORMAT, "patch", sections)
    return prompt(context.revise_instructions, STEPS_FORMAT, "steps", sections)


def read(reply: str, state: Reading, context: AagContext) -> dict[str, Any]:
    """The revised steps.

    Raises:
        UnreadableReply: There are no steps or changes in it, or not all changes can be applied.
    """
    if not _is_patch(state, context):
        return steps_update(read_reply(reply))
    steps, _, problem = read_changes(reply, state["draft"] or [])
    if problem:
        raise UnreadableReply(problem, update=steps_update(steps))
    return steps_update(steps)


def _is_patch(state: Reading, context: AagContext) -> bool:
    """Whether only the changes are asked for; without a draft there is nothing to change."""
    return context.rewrite == "patch" and bool(state["draft"])


def keep_the_draft(state: Reading, why: str) -> dict[str, Any]:
    """The draft as the steps.

    Raises:
        NoAnswer: There is no draft.
    """
    if not state["draft"]:
        raise NoAnswer(f"no steps were written: {why}")
    return steps_update(state["draft"])


def skip_model(state: Reading, context: AagContext) -> dict[str, Any] | None:
    """No call where there is nothing to revise the draft with: nothing was asked, or it was written with the answers.

    Raises:
        NoAnswer: There is no draft.
    """
    asked = state["questions"] or state["knowledge"] or context.questions is True
    settled = state["draft"] and (state.get("familiar") is False or not asked)
    if context.questions and not settled:
        return None
    return keep_the_draft(state, "; ".join(state["warnings"][-1:]))


def describe(state: Reading, update: dict[str, Any]) -> Said:
    """How many steps were changed."""
    draft, steps = state["draft"] or [], update["steps"]
    if not draft:
        return Said(f"Wrote {counted(len(steps), 'step')}.", {"steps": len(steps)})
    changes = changed_steps(draft, steps)
    if changes:
        told = f"Changed {counted(changes, 'step')} of the draft; there are {len(steps)} now."
        return Said(told, {"steps": len(steps), "changes": changes})
    unasked = state.get("familiar") is False or not (state["questions"] or state["knowledge"])
    return Said(
        f"The draft of {counted(len(steps), 'step')} stands.",
        {"steps": len(steps), "changes": 0},
        skipped=unasked,
    )


revise = model_node(
    "revise",
    ask,
    read,
    fallback=keep_the_draft,
    skip_model=skip_model,
    truncate_key="knowledge",
    description="Revise the draft with what was looked up.",
    starts=lambda _state: Said("Revising the draft with what was looked up."),
    describe=describe,
)
