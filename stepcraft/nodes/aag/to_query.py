"""Ask the questions whose answers are looked up before the steps are revised (AAG §3.3, query generation)."""

import re
from collections.abc import Mapping
from typing import Any, NotRequired

from langchain_core.messages import BaseMessage

from stepcraft.contexts.aag import AagContext
from stepcraft.errors import UnreadableReply
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import asked_sections, evidence_sections, prompt
from stepcraft.progress import Said, counted
from stepcraft.text.clean import marked
from stepcraft.text.lists import numbered, read_lines
from stepcraft.text.names import unused
from stepcraft.text.sections import section

_FORMAT = """\
A line OUTLINE, and under it an outline of the steps that the procedure will need, a few words each. Then a line
QUESTIONS, and under it exactly {count} questions, each on one line that begins with its number. Nothing after the last
question."""

_FOR_DOUBTS = """\
The steps are drafted already. Ask one question for each of the doubts, in their order: so that its answer says what
stands in the place of the doubt, or how the name is used. Do not ask about anything else."""
_DOUBTS_FORMAT = """\
A line QUESTIONS, and under it one question for each doubt, {count} in all, each on one line that begins with its
number. Nothing after the last question."""

_FOR_GAPS = """\
The procedure will be written from the evidence, which holds procedures for similar goals, by somebody who knows nothing
else of these products. Ask about what it leaves open: how the parts of this goal that it does not show are done. Ask
nothing that it answers."""
_GAPS_FORMAT = """\
A line QUESTIONS, and under it one to {count} questions, each on one line that begins with its number. Nothing after the
last question."""

_HEADING = re.compile(r"^[^\w\n]*+questions?[^\w\n]*+$", re.IGNORECASE | re.MULTILINE)


class Reading(Budgeted):
    """The input of this node."""

    question: str
    resources_text: str
    draft: NotRequired[list[str] | None]
    familiar: NotRequired[bool | None]
    evidence: NotRequired[list[Evidence]]


def doubts_of(state: Mapping[str, Any], context: AagContext) -> list[str]:
    """What the draft doubts, and the names in goal and resources that it leaves out; as many as may be asked about."""
    draft = state.get("draft") or []
    doubted = [doubt for step in draft for doubt in marked(step)]
    missing = unused(state["question"], state["resources_text"], "\n".join(draft)) if draft else []
    return list(dict.fromkeys([*doubted, *missing]))[: context.n_questions]


def ask(state: Reading, context: AagContext) -> list[BaseMessage]:
    """Show the goal and the resources, and the draft with its doubts or, where it was declined, the evidence.

    The format states the number of questions.
    """
    sections = asked_sections("goal", state["question"], state["resources_text"])
    if state.get("familiar") is False:
        form = _GAPS_FORMAT.format(count=context.n_questions)
        sections += evidence_sections(state.get("evidence", []))
        return prompt(f"{context.to_query_instructions}\n{_FOR_GAPS}", form, "questions", sections)
    doubts = _asked_about(state, context)
    if not doubts:
        form = _FORMAT.format(count=context.n_questions)
        return prompt(context.to_query_instructions, form, "questions", sections)
    sections += [
        section("steps", numbered(state.get("draft") or [])),
        section("doubts", "\n".join(f"- {doubt}" for doubt in doubts)),
    ]
    form = _DOUBTS_FORMAT.format(count=len(doubts))
    return prompt(f"{context.to_query_instructions}\n{_FOR_DOUBTS}", form, "questions", sections)


def _asked_about(state: Reading, context: AagContext) -> list[str]:
    return doubts_of(state, context) if context.questions == "auto" else []


def read(reply: str, state: Reading, context: AagContext) -> dict[str, Any]:
    """The first N lines under the heading; without a heading, the first N lines that end in a question mark."""
    *_, below = _HEADING.split(reply)
    lines = read_lines(below)
    if below == reply:
        lines = [line for line in lines if line.endswith(("?", "？"))]
    if not lines:
        raise UnreadableReply("there was no line QUESTIONS with questions under it.")
    return {"queries": lines[: len(_asked_about(state, context)) or context.n_questions]}


def only_the_goal(state: Reading, _why: str) -> dict[str, Any]:
    """The goal as the only question."""
    return {"queries": [state["question"]]}


def describe(_state: Reading, update: dict[str, Any]) -> Said:
    """The questions."""
    questions = update["queries"]
    return Said(f"Asks {counted(len(questions), 'question')}.", {"questions": questions})


to_query = model_node(
    "to_query",
    ask,
    read,
    fallback=only_the_goal,
    reserve_calls=lambda state: 0 if state.get("draft") else 1,
    description="Ask the questions whose answers are looked up.",
    starts=lambda _state: Said("Asking what is to be looked up."),
    describe=describe,
)
