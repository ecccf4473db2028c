"""Update the draft with what was looked up (AAG §3.4, Update Response)."""

from stepcraft.llm.node import ModelNode
from stepcraft.llm.prompt import prompt
from stepcraft_papers.contexts import AagPaperContext
from stepcraft_papers.nodes.answer_question import looked_up
from stepcraft_papers.nodes.draft_steps import STEPS_FORMAT, read_plain
from stepcraft_papers.nodes.state import AagPaperState, Prompt, sections


def ask_for_update(state: AagPaperState, settings: AagPaperContext) -> Prompt:
    """Show the goal, the resources and the marked draft, followed by what was looked up."""
    material = sections(
        question=state["task"], resources=state["task_resources"], steps=state["first_draft"]
    )
    material += looked_up(state, settings)
    return prompt(settings.revise_instructions, STEPS_FORMAT, "steps", material)


update_steps = ModelNode(
    "revise",
    ask_for_update,
    read_plain,
    lambda _state, _reason: {},
    started="Updating the draft with what was looked up.",
)
