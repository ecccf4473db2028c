"""Ask what should be looked up before the steps are settled (AAG §3.3, query generation)."""

import re
from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from stepcraft.contexts.aag import AagContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import asked_sections, prompt
from stepcraft.text.lists import read_lines

_FORMAT = """\
A line OUTLINE, and under it the outline. Then a line QUESTIONS, and under it exactly {count} questions, each on
one line that begins with its number. Nothing after the last question."""

_HEADING = re.compile(r"^\W*questions?\W*$", re.IGNORECASE | re.MULTILINE)


class Reading(TypedDict):
    """What this node reads."""

    question: str
    resources_text: str


def ask(state: Reading, context: AagContext) -> list[BaseMessage]:
    """The goal and the resources; the format says how many questions."""
    reply_format = _FORMAT.format(count=_count(context))
    sections = asked_sections("goal", state["question"], state["resources_text"])
    return prompt(context.to_query_instructions, reply_format, "questions", sections)


def read(reply: str, _state: Reading, context: AagContext) -> dict[str, Any]:
    """The first N lines under the heading; without a heading, of the lines that end in a question mark."""
    *_, below = _HEADING.split(reply)
    lines = read_lines(below)
    if below == reply:
        lines = [line for line in lines if line.endswith(("?", "？"))]
    if not lines:
        raise UnreadableReply("there was no line QUESTIONS with questions under it.")
    return {"queries": lines[: _count(context)]}


def _count(context: AagContext) -> int:
    return context.n_questions


def only_the_goal(state: Reading, _why: str) -> dict[str, Any]:
    """The goal itself as the only question."""
    return {"queries": [state["question"]]}


to_query = model_node("to_query", ask, read, fallback=only_the_goal)
