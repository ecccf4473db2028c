"""Criticise the steps: ask for edits, or say that none is required (AAG §3.5)."""

from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import ModelNode, Update
from stepcraft.llm.prompt import prompt
from stepcraft.text.lists import read_bullets
from stepcraft_papers.contexts import AagPaperContext
from stepcraft_papers.markers import without_markers
from stepcraft_papers.nodes.state import AagPaperState, Critique, Prompt, sections

CONTENT = "NO UPDATE REQUIRED"
"""The reply of a critic that finds nothing to change."""

_FORMAT = f"""\
Either exactly the line
{CONTENT}
or a list of edits, the most important first, each on one line that begins with "- ". Nothing else:
no praise, no summary, no rewritten list."""


def ask_for_edits(state: AagPaperState, settings: AagPaperContext) -> Prompt:
    """Show the goal, the resources and the steps."""
    material = sections(
        question=state["task"], resources=state["task_resources"], steps=state["answer"]
    )
    return prompt(settings.critic_instructions, _FORMAT, "critique", material)


def read_critique(reply: str, state: AagPaperState, _settings: AagPaperContext) -> Update:
    """Return the edits listed as bullets, or none if the reply or its last line is the phrase.

    Raises:
        UnreadableReply: There is neither a bullet nor the phrase in the reply.
    """
    *_, last = reply.strip().splitlines()
    bullets = [] if CONTENT in last.upper() else map(without_markers, read_bullets(reply))
    edits = [edit for edit in bullets if edit and CONTENT not in edit.upper()]
    if not edits and CONTENT not in reply.upper():
        raise UnreadableReply(
            f'there was neither a list of edits that begin with "- " nor {CONTENT}.'
        )
    seen = [
        {**each, "status": "verified"} if each["status"] == "unverified" else each
        for each in state["critiques"]
    ]
    return {"critiques": [*seen, Critique(edits=edits, status="open" if edits else "content")]}


criticise_steps = ModelNode(
    "critic",
    ask_for_edits,
    read_critique,
    lambda _state, _reason: {},
    started="Criticising the steps.",
)
