"""Answer a question in one call: from what the model knows, from evidence, or after the pattern of examples."""

from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from stepcraft.contexts.baselines import DirectContext
from stepcraft.errors import NoAnswer, UnreadableReply
from stepcraft.evidence import Evidence
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import asked_sections, evidence_sections, prompt
from stepcraft.llm.reply import text_of

LENGTHS = {
    "long": "Running text of up to three paragraphs, or numbered steps where the question asks how something is done.",
    "short": "One sentence at most, or the name, number or date alone that was asked for.",
}
LENGTHS["multihop"] = LENGTHS["short"]
"""How long the answer to each kind of question is."""


class Reading(TypedDict):
    """What this node reads."""

    question: str
    resources_text: str
    task: str
    evidence: list[Evidence]


def ask(state: Reading, context: DirectContext) -> list[BaseMessage]:
    """The question, what is at hand, and the passages or examples."""
    form = f"The answer alone, without a preamble. {LENGTHS[state['task']]}"
    sections = [
        *asked_sections("question", state["question"], state["resources_text"]),
        *evidence_sections(state["evidence"]),
    ]
    return prompt(context.answer_instructions, form, "reply", sections)


def read(reply: str, _state: Reading, _context: DirectContext) -> dict[str, Any]:
    """The answer, without a fence around it."""
    answer = text_of(reply)
    if not answer:
        raise UnreadableReply("there was no text in it.")
    return {"answer": answer}


def no_answer(_state: Reading, why: str) -> dict[str, Any]:
    """One call was all there was.

    Raises:
        NoAnswer: always.
    """
    raise NoAnswer(f"no answer was written: {why}")


answer_question = model_node("answer", ask, read, fallback=no_answer)
