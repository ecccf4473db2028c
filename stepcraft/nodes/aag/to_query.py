"""Ask the questions whose answers are looked up before the steps are revised (AAG §3.3, query generation)."""

import re
from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.aag import AagContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import asked_sections, prompt
from stepcraft.text.lists import read_lines

_FORMAT = """\
A line OUTLINE, and under it the outline. Then a line QUESTIONS, and under it exactly {count} questions, each on
one line that begins with its number. Nothing after the last question."""

_HEADING = re.compile(r"^[^\w\n]*+questions?[^\w\n]*+$", re.IGNORECASE | re.MULTILINE)


class Reading(Budgeted):
    """The input of this node."""

    question: str
    resources_text: str


def ask(state: Reading, context: AagContext) -> list[BaseMessage]:
    """Show the goal and the resources; the format states the number of questions."""
    sections = asked_sections("goal", state["question"], state["resources_text"])
    form = _FORMAT.format(count=context.n_questions)
    return prompt(context.to_query_instructions, form, "questions", sections)


def read(reply: str, _state: Reading, context: AagContext) -> dict[str, Any]:
    """The first N lines under the heading; without a heading, the first N lines that end in a question mark."""
    *_, below = _HEADING.split(reply)
    lines = read_lines(below)
    if below == reply:
        lines = [line for line in lines if line.endswith(("?", "？"))]
    if not lines:
        raise UnreadableReply("there was no line QUESTIONS with questions under it.")
    return {"queries": lines[: context.n_questions]}


def only_the_goal(state: Reading, _why: str) -> dict[str, Any]:
    """The goal as the only question."""
    return {"queries": [state["question"]]}


to_query = model_node("to_query", ask, read, fallback=only_the_goal)
