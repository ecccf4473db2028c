"""What the nodes that write steps share: the reply format, the state update, and the notes that they are shown."""

from collections.abc import Sequence
from typing import Any

from stepcraft.errors import UnreadableReply
from stepcraft.evidence import Evidence
from stepcraft.llm.prompt import evidence_sections
from stepcraft.nodes.aag.answer import Answered
from stepcraft.text.clean import without_markers
from stepcraft.text.lists import numbered, read_steps
from stepcraft.text.sections import NOT_SAID, section

STEPS_FORMAT = """\
A numbered list of the steps and nothing else: no title, no introduction, no closing remark, no headings.
Each step begins on a new line with its number and a full stop: "1. ...". Code of more than one line stands under its
step, between ``` fences. No lists within a step."""


def read_reply(reply: str) -> list[str]:
    """The steps that a reply lists, with their [[ ]] markers of doubt.

    Raises:
        UnreadableReply: There is no list in it.
    """
    steps = [step for step in read_steps(reply) if without_markers(step)]
    if not steps:
        raise UnreadableReply("there was no numbered list of steps in it.")
    return steps


def steps_update(steps: Sequence[str]) -> dict[str, Any]:
    """The state update for steps as a user sees them: without markers of doubt, as a list and as one text."""
    shown = [clean for step in steps if (clean := without_markers(step))]
    return {"steps": shown, "answer": numbered(shown)}


def notes_sections(questions: Sequence[Answered], knowledge: Sequence[Evidence]) -> list[str]:
    """The answers as "Q: …" and "A: …" (AAG §3.3), and the procedures that replace them without the answering step."""
    told = [asked for asked in questions if asked["answer"] and asked["answer"] != NOT_SAID]
    notes = "\n".join(f"Q: {asked['question']}\nA: {asked['answer']}" for asked in told)
    return [section("notes", notes) if notes else "", *evidence_sections(knowledge)]
