"""Apply the edits of the critic, and leave everything else as it is (AAG §3.5)."""

from stepcraft.llm.node import ModelNode, Update
from stepcraft.llm.prompt import prompt
from stepcraft.text.lists import numbered
from stepcraft_papers.contexts import AagPaperContext
from stepcraft_papers.nodes.answer_question import looked_up
from stepcraft_papers.nodes.draft_steps import STEPS_FORMAT, read_plain
from stepcraft_papers.nodes.state import AagPaperState, Prompt, sections

_FORMAT = f"""\
All the steps, the changed ones and the others; where steps refer to each other by number, the
numbers follow.
{STEPS_FORMAT}"""


def ask_to_edit(state: AagPaperState, settings: AagPaperContext) -> Prompt:
    """Show what all edits have in common first, then the steps and the edits."""
    material = sections(question=state["task"], resources=state["task_resources"])
    material += looked_up(state, settings)
    material += sections(
        steps=numbered(state["steps"], code_at_margin=True),
        edits="\n".join(f"- {edit}" for edit in state["critiques"][-1]["edits"]),
    )
    return prompt(settings.edit_instructions, _FORMAT, "steps", material)


def read_edited(reply: str, state: AagPaperState, settings: AagPaperContext) -> Update:
    """Return all the steps, marked as not yet seen by the critic."""
    return {**read_plain(reply, state, settings), **_closed(state, "unverified")}


def _closed(state: AagPaperState, status: str) -> Update:
    *before, last = state["critiques"]
    return {"critiques": [*before, {**last, "status": status}]}


edit_steps = ModelNode(
    "edit",
    ask_to_edit,
    read_edited,
    lambda state, _reason: _closed(state, "skipped"),
    started="Applying the edits.",
)
