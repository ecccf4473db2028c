"""Make the answer from the segments (RPG §3.2): join them, or reduce them to a short answer for multihop questions."""

from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.rpg import RpgContext
from stepcraft.errors import NoAnswer, UnreadableReply
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import prompt
from stepcraft.llm.reply import answer_text
from stepcraft.nodes.rpg.answer import is_inline, passage_of_sentences
from stepcraft.segments import Segment, used, written
from stepcraft.text.citations import marks, with_marks_of
from stepcraft.text.sections import NO_INFO, section

_FORMAT = """\
The final answer alone, in as few words as it takes: the name, the date, the number, the thing, or yes or no. No
sentence around it, no explanation."""
_MARKS = " Behind it the marks in square brackets, like [1], of the pieces that it rests on."


class Reading(Budgeted):
    """The input of this node."""

    question: str
    answer_style: str
    signal: str
    segments: list[Segment]
    evidence: list[Evidence]


def ask(state: Reading, context: RpgContext) -> list[BaseMessage]:
    """Show the question and the segments."""
    text = written(state["segments"])
    sections = [section("question", state["question"]), section("text", text)]
    form = _FORMAT + _MARKS if is_inline(context) and marks(text) else _FORMAT
    return prompt(context.combine_instructions, form, "combine", sections)


def read(reply: str, state: Reading, context: RpgContext) -> dict[str, Any]:
    """The answer, without marks that the segments do not have."""
    text = answer_text(reply)
    if is_inline(context):
        text = with_marks_of(text, marks(written(state["segments"])))
    if not text:
        raise UnreadableReply("there was no answer in it.")
    return _ended(state, text)


def joined(state: Reading, _why: str = "") -> dict[str, Any]:
    """The segments joined."""
    return _ended(state, written(state["segments"]))


def _ended(state: Reading, answer: str) -> dict[str, Any]:
    """The answer, and the evidence that it was written from in the order of first use."""
    passages = {passage["id"]: passage for passage in state["evidence"]}
    sentences = [sentence for segment in state["segments"] for sentence in segment["sentences"]]
    evidence = [
        passages.get(id_) or passage_of_sentences(id_, sentences, passages) for id_ in used(state["segments"])
    ]
    return {"answer": answer, "evidence": evidence}


def skip_model(state: Reading, _context: RpgContext) -> dict[str, Any] | None:
    """No call where the joined segments are the answer.

    Raises:
        NoAnswer: No segment was written.
    """
    if not state["segments"]:
        limits = [warning for warning in state["warnings"] if warning.startswith("the run stopped early")]
        raise NoAnswer(f"no segment was written: {'; '.join((limits or state['warnings'])[-1:])}")
    return joined(state) if state["answer_style"] != "multihop" or state["signal"] == NO_INFO else None


combine = model_node("combine", ask, read, fallback=joined, skip_model=skip_model, truncate_key="")
