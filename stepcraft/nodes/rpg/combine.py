"""Make the answer from the segments (RPG §3.2): one text of them, a short answer for multihop questions, or joined."""

from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.rpg import RpgContext
from stepcraft.errors import NoAnswer, UnreadableReply
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import prompt
from stepcraft.llm.reply import answer_text
from stepcraft.progress import Said, counted
from stepcraft.segments import Segment, written
from stepcraft.text.citations import marks, with_marks_of
from stepcraft.text.sections import NO_INFO, section

_FORMAT = """\
The final answer alone, in as few words as it takes: the name, the date, the number, the thing, or yes or no. No
sentence around it, no explanation."""
_FINISH = """\
The answer alone: running text, or numbered steps with their code in fenced blocks where the question asks how something
is done."""
_MARKS = " Behind it the marks in square brackets, like [1], of the pieces that it rests on."
_FINISH_OPEN = """
What the reader needs beside the text and you are sure of, such as a default, a trap, or a line without which the code
does not run, stands in sentences of its own without a mark."""
_FINISH_STRICT = """
Add no fact that the text does not have, and leave none out that bears on what is asked about."""
_FINISH_MARKS = """
A sentence that says what marked sentences of the text say, and nothing more, ends with their marks, like [1] or [1][3],
before its full stop. What they do not say, such as a definition, a reason, a consequence or a conclusion, stands in a
sentence of its own without a mark, or is left out. A comparison is made in sentences or in a list, not in a table."""


class Reading(Budgeted):
    """The input of this node."""

    question: str
    answer_style: str
    signal: str
    segments: list[Segment]


def ask(state: Reading, context: RpgContext) -> list[BaseMessage]:
    """Show the question and the segments."""
    text = written(state["segments"])
    sections = [section("question", state["question"]), section("text", text)]
    marked = context.marks and bool(marks(text))
    if state["answer_style"] in {"auto", "long"}:
        form = (
            _FINISH
            + (_FINISH_OPEN if context.grounding == "open" else _FINISH_STRICT)
            + _FINISH_MARKS * marked
        )
        return prompt(context.finish_instructions, form, "finish", sections)
    return prompt(context.combine_instructions, _FORMAT + _MARKS * marked, "combine", sections)


def read(reply: str, state: Reading, context: RpgContext) -> dict[str, Any]:
    """The answer, without marks that the segments do not have."""
    text = answer_text(reply)
    if context.marks:
        text = with_marks_of(text, marks(written(state["segments"])))
    if not text:
        raise UnreadableReply("there was no answer in it.")
    return {"answer": text, "verdicts": None}


def joined(state: Reading, _why: str = "") -> dict[str, Any]:
    """The segments joined."""
    return {"answer": written(state["segments"]), "verdicts": None}


def skip_model(state: Reading, context: RpgContext) -> dict[str, Any] | None:
    """No call where the joined segments are the answer.

    Raises:
        NoAnswer: No segment was written.
    """
    if not state["segments"]:
        limits = [warning for warning in state["warnings"] if warning.startswith("the run stopped early")]
        raise NoAnswer(f"no segment was written: {'; '.join((limits or state['warnings'])[-1:])}")
    several = state["answer_style"] in {"auto", "long"} and context.finish and len(state["segments"]) > 1
    combined = state["answer_style"] == "multihop" and state["signal"] != NO_INFO
    return None if several or combined else joined(state)


def describe(state: Reading, update: dict[str, Any]) -> Said:
    """Whether the answer was written anew, or is the segments."""
    segments = len(state["segments"])
    if update["answer"] == written(state["segments"]):
        what = "The segment is" if segments == 1 else f"The {segments} segments are"
        return Said(f"{what} the answer.", {"segments": segments})
    return Said(f"Wrote the answer from {counted(segments, 'segment')}.", {"segments": segments})


combine = model_node(
    "combine",
    ask,
    read,
    fallback=joined,
    skip_model=skip_model,
    truncate_key="",
    description="Make one answer of the segments.",
    starts=lambda state: Said(f"Writing the answer from {counted(len(state['segments']), 'segment')}."),
    describe=describe,
)
