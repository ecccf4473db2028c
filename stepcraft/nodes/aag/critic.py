"""Criticise the steps: ask for edits, or state that none is required (AAG §3.5)."""

from collections.abc import Sequence
from typing import Any, Literal, NotRequired

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from stepcraft.contexts.aag import AagContext
from stepcraft.errors import UnreadableReply
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import asked_sections, prompt
from stepcraft.nodes.aag.answer import Answered
from stepcraft.nodes.aag.names import CheckedName
from stepcraft.nodes.aag.steps import notes_sections, procedures
from stepcraft.progress import Said, counted
from stepcraft.schema import described
from stepcraft.text.clean import without_markers
from stepcraft.text.lists import numbered, read_bullets
from stepcraft.text.patch import StepChange
from stepcraft.text.sections import CONTENT, section

_FORMAT = f"""\
Either exactly the line
{CONTENT}
or a list of at most {{most}} edits, the most important first, each on one line that begins with "- ". Nothing else: no
praise, no summary, no rewritten list."""


@described
class Critique(TypedDict):
    """The edits that the critic, or a person in a review, asked for, and their outcome."""

    edits: list[str]
    """Empty when the critic is content; the reason of a person who rejected the steps."""
    status: Literal["content", "open", "unverified", "verified", "skipped"]
    """`open`: not applied; `unverified`: applied, and neither the critic nor a person has seen the result; `verified`:
    applied, and one of them has seen the result; `skipped`: could not be applied."""
    changes: NotRequired[list[StepChange]]
    """The changes of single steps by which the edits were applied; absent where all steps were written anew."""


class Reading(Budgeted):
    """The input of this node."""

    question: str
    resources_text: str
    steps: list[str]
    critiques: list[Critique]
    names: list[CheckedName]
    told: list[str]
    questions: list[Answered]
    evidence: list[Evidence]
    knowledge: list[Evidence]
    goal_evidence: list[str]


def ask(state: Reading, context: AagContext) -> list[BaseMessage]:
    """Show the goal, the resources, what to check against, the steps, and once each name that stands nowhere."""
    found = procedures(state["evidence"], state["goal_evidence"], state["knowledge"])
    sections = [
        *asked_sections("goal", state["question"], state["resources_text"]),
        *(notes_sections(state["questions"], found) if context.critic_evidence else []),
        section("steps", numbered(state["steps"])),
        section("names", "\n".join(new)) if (new := _unverified(state)) else "",
    ]
    form = _FORMAT.format(most=context.max_edits)
    return prompt(context.critic_instructions, form, "critique", sections)


def read(reply: str, state: Reading, context: AagContext) -> dict[str, Any]:
    """The bulleted edits, up to their limit. The phrase without any, or as the last line, means that the critic is content."""
    lines = [line for line in reply.splitlines() if line.strip()]
    edits = [edit for edit in map(without_markers, read_bullets(reply)) if edit and not _is_phrase(edit)]
    if lines and _is_phrase(lines[-1]):
        edits = []
    elif not edits and CONTENT not in reply.upper():
        raise UnreadableReply(f'there was neither a list of edits that begin with "- " nor {CONTENT} in it.')
    edits = edits[: context.max_edits]
    return {
        "edits": edits,
        "told": [*state["told"], *_unverified(state)],
        "critiques": [
            *seen(state["critiques"]),
            Critique(edits=edits, status="open" if edits else "content"),
        ],
    }


def seen(critiques: Sequence[Critique]) -> list[Critique]:
    """The critiques, where the result of their edits has been seen."""
    found = [past.copy() for past in critiques]
    for past in found:
        if past["status"] == "unverified":
            past["status"] = "verified"
    return found


def _unverified(state: Reading) -> list[str]:
    """The unverified names that the critic has not been told of."""
    return [
        name["name"] for name in state["names"] if not name["verified"] and name["name"] not in state["told"]
    ]


def _is_phrase(line: str) -> bool:
    return line.strip(" \t-*•_`'\".!#>").upper() == CONTENT


def no_critique(_state: Reading, _why: str) -> dict[str, Any]:
    """No edits: the steps stand without a critique."""
    return {"edits": []}


def describe(_state: Reading, update: dict[str, Any]) -> Said:
    """What the critic asks for."""
    edits = update["edits"]
    if edits:
        return Said(f"The critic asks for {counted(len(edits), 'edit')}.", {"edits": edits})
    return Said("The critic is content with the steps.", {"edits": []})


critic = model_node(
    "critic",
    ask,
    read,
    fallback=no_critique,
    description="Check the steps, and ask for edits.",
    starts=lambda state: Said(f"Checking {counted(len(state['steps']), 'step')}."),
    describe=describe,
)
