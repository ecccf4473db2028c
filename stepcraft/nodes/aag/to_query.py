"""Ask what should be looked up before the steps are settled (AAG §3.3, query generation)."""

import re
from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from stepcraft.contexts.base import Context
from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import asked_sections, prompt
from stepcraft.text.lists import read_lines

INSTRUCTIONS = """\
Somebody is about to write a procedure for the goal, with the resources at hand.
First outline the steps that it will need, a few words each.
Then ask the questions whose answers would help most to get these steps right. They are answered from a memory of
procedures for other goals in the same field, so ask how a part of the work is done in general ("How is ... set up?",
"How does one ...?"), neither how the whole goal is reached nor for a detail that only this goal has.
Each question is about another part of the work, asks one thing in one short sentence, and stands on its own: it
names what it is about. Begin with the part where a mistake is likeliest."""

_FORMAT = """\
A line OUTLINE, and under it the outline. Then a line QUESTIONS, and under it exactly {count} questions, each on
one line that begins with its number. Nothing after the last question."""

_HEADING = re.compile(r"^\W*questions?\W*$", re.IGNORECASE | re.MULTILINE)


class Reading(TypedDict):
    """What this node reads."""

    question: str
    at_hand: str


def ask(state: Reading, context: Context) -> list[BaseMessage]:
    """The goal and the resources; the format says how many questions."""
    reply_format = _FORMAT.format(count=_count(context))
    sections = asked_sections("goal", state["question"], state["at_hand"])
    return prompt(context.instructions("to_query", INSTRUCTIONS), reply_format, "questions", sections)


def read(reply: str, _state: Reading, context: Context) -> dict[str, Any]:
    """The first N lines under the heading; without a heading, of the lines that end in a question mark."""
    *_, below = _HEADING.split(reply)
    lines = read_lines(below)
    if below == reply:
        lines = [line for line in lines if line.endswith(("?", "？"))]
    if not lines:
        raise UnreadableReply("there was no line QUESTIONS with questions under it.")
    return {"queries": lines[: _count(context)]}


def _count(context: Context) -> int:
    return getattr(context, "n_questions", 4)


def only_the_goal(state: Reading, _why: str) -> dict[str, Any]:
    """The goal itself as the only question."""
    return {"queries": [state["question"]]}


to_query = model_node("to_query", ask, read, fallback=only_the_goal)
