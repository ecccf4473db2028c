"""What the nodes that write steps have in common: the form they ask for, and how the reply becomes state."""

from typing import Any

from stepcraft.errors import UnreadableReply
from stepcraft.text.clean import without_markers
from stepcraft.text.lists import numbered, read_steps

STEPS_FORMAT = """\
A numbered list of the steps and nothing else: no title, no introduction, no closing remark, no headings.
Each step begins on a new line with its number and a full stop: "1. ...". Code of more than one line stands under its
step, between ``` fences. No lists within a step."""


def steps_of(reply: str) -> list[str]:
    """The steps that the reply lists, as they were written.

    Raises:
        UnreadableReply: there is no list in it.
    """
    steps = [step for step in read_steps(reply) if without_markers(step)]
    if not steps:
        raise UnreadableReply("there was no numbered list of steps in it.")
    return steps


def answered(steps: list[str]) -> dict[str, Any]:
    """The state update for steps as a user may see them: without markers of doubt, and as one text."""
    shown = [clean for step in steps if (clean := without_markers(step))]
    return {"steps": shown, "answer": numbered(shown)}
