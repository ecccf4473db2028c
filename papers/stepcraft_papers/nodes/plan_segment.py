"""Plan the next segment of the answer: its topic, or that none is needed (RPG §3.2)."""

import re

from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import ModelNode, Update
from stepcraft.llm.prompt import prompt
from stepcraft.text.lists import numbered, read_lines
from stepcraft_papers.contexts import RpgPaperContext
from stepcraft_papers.nodes.state import Prompt, RpgPaperState, sections

_TOPIC = "The topic alone, on one line, at most 12 words, without a label or quotation marks."
_FIRST = f"""\
{_TOPIC}
Or exactly <no_info> if no facts have to be looked up for the answer, as with a greeting, a
calculation or a piece of free writing."""
_LATER = f"{_TOPIC}\nOr exactly <complete> if the text says all that the question asks for."
_LONGEST = 120
"""The maximum number of characters in a plan, about 30 tokens (RPG §4)."""
_SIGNAL = re.compile(
    r"(?:^\W*|<)(?:(?P<none>no[\s_-]?info)|completed?)(?:\W*$|>)", re.IGNORECASE | re.MULTILINE
)
_LABEL = re.compile(
    r"\A(?:next )?(?:plan|topic|segment)(?: \d+)?\s*[:\uff1a][\s*_]*", re.IGNORECASE
)


def ask_for_plan(state: RpgPaperState, settings: RpgPaperContext) -> Prompt:
    """Show the question, the plans and the segments, but no evidence."""
    material = sections(
        question=state["task"], plans=numbered(state["plans"]), text=state["answer"]
    )
    form = _LATER if state["plans"] else _FIRST
    return prompt(settings.plan_instructions, form, "topic", material)


def read_plan(reply: str, state: RpgPaperState, _settings: RpgPaperContext) -> Update:
    """Return the plan, or that none is needed.

    Raises:
        UnreadableReply: There is no topic in the reply.
    """
    if signal := _SIGNAL.search(reply):
        is_needless = signal["none"] and not state["plans"]
        return {"complete": True} if is_needless else the_question(state)
    topic = _LABEL.sub("", next(iter(read_lines(reply)), ""))[:_LONGEST]
    if not topic:
        raise UnreadableReply("there was no topic in it.")
    return the_question(state) if topic in state["plans"] else _planned(state, topic)


def the_question(state: RpgPaperState, _reason: str = "") -> Update:
    """Use the question itself as the plan, or end the answer if there is already a segment."""
    return {"complete": True} if state["segments"] else _planned(state, state["task"])


def _planned(state: RpgPaperState, topic: str) -> Update:
    return {"plans": [*state["plans"], topic]}


plan_segment = ModelNode(
    "plan",
    ask_for_plan,
    read_plan,
    the_question,
    skip=lambda state, settings: None if settings.plan else _planned(state, state["task"]),
    keep_back=lambda _settings: 1,
    started="Planning the next segment.",
)
