"""Judge the steps: edits, or nothing to change (AAG §3.5)."""

from typing import Any, Literal

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from stepcraft.contexts.aag import AagContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import asked_sections, prompt
from stepcraft.text.clean import without_markers
from stepcraft.text.lists import numbered, read_bullets
from stepcraft.text.sections import CONTENT, section

_FORMAT = f"""\
Either exactly the line
{CONTENT}
or a list of edits, each on one line that begins with "- ". Nothing else: no praise, no summary, no rewritten list."""


class Critique(TypedDict):
    """What the critic asked for, and what became of it."""

    edits: list[str]
    """Empty when the critic is content."""
    status: Literal["content", "open", "unverified", "verified", "skipped"]
    """`open`: not applied; `unverified`: applied, but the critic has not seen the result; `verified`: applied and
    seen; `skipped`: could not be applied."""


class Reading(TypedDict):
    """What this node reads."""

    question: str
    resources_text: str
    steps: list[str]
    critiques: list[Critique]


def ask(state: Reading, context: AagContext) -> list[BaseMessage]:
    """Goal, resources and the steps as they stand."""
    sections = [
        *asked_sections("goal", state["question"], state["resources_text"]),
        section("steps", numbered(state["steps"])),
    ]
    return prompt(context.critic_instructions, _FORMAT, "critique", sections)


def read(reply: str, state: Reading, _context: AagContext) -> dict[str, Any]:
    """The bulleted edits; none of them and the phrase, or the phrase as the last word, means content."""
    lines = [line for line in reply.splitlines() if line.strip()]
    if lines and _is_phrase(lines[-1]):
        return _judged(state, [])
    edits = [edit for edit in map(without_markers, read_bullets(reply)) if edit and not _is_phrase(edit)]
    if not edits and CONTENT not in reply.upper():
        raise UnreadableReply(f'there was neither a list of edits that begin with "- " nor {CONTENT} in it.')
    return _judged(state, edits)


def uncriticised(_state: Reading, _why: str) -> dict[str, Any]:
    """The steps stand as they are, without a judgement on them."""
    return {"edits": []}


def _is_phrase(line: str) -> bool:
    return line.strip(" \t-*•_`'\".!#>").upper() == CONTENT


def _judged(state: Reading, edits: list[str]) -> dict[str, Any]:
    seen = [
        {**past, "status": "verified"} if past["status"] == "unverified" else past
        for past in state["critiques"]
    ]
    return {
        "edits": edits,
        "critiques": [*seen, Critique(edits=edits, status="open" if edits else "content")],
    }


critic = model_node("critic", ask, read, fallback=uncriticised)
