"""Answer one question from the procedures that were found for it (AAG §3.3, answer generation)."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from stepcraft.contexts.aag import AagContext
from stepcraft.evidence import Evidence
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import evidence_sections, prompt
from stepcraft.text.clean import unfenced, without_markers
from stepcraft.text.sections import NOT_SAID, section

_FORMAT = f"Plain sentences, without a heading or a list. If the evidence answers no part of the question: {NOT_SAID}"

_PASSAGES = (
    " Beside procedures the evidence holds passages from other sources; the answer may rest on either."
)


class Reading(TypedDict):
    """What this node reads."""

    query: str
    evidence: list[Evidence]


class Answered(TypedDict):
    """A question, its answer ("" if there is none) and the ids of the procedures that it was answered from."""

    question: str
    answer: str
    evidence: list[str]


def ask(state: Reading, context: AagContext) -> list[BaseMessage]:
    """The procedures and the question."""
    sections = [section("question", state["query"]), *evidence_sections(state["evidence"])]
    form = _FORMAT + (_PASSAGES if context.answer_from == "memory+source" else "")
    return prompt(context.answer_instructions, form, "text", sections)


def read(reply: str, state: Reading, _context: AagContext) -> dict[str, Any]:
    """The answer, without a fence or a remark before it."""
    text = without_markers(unfenced(reply)).strip()
    return {"questions": [answered(state["query"], text, state["evidence"])]}


def without_answer(state: Reading, _why: str) -> dict[str, Any]:
    """The question goes unanswered; the others' answers stand."""
    return {"questions": [answered(state["query"], "", state["evidence"])]}


def stacked(questions: Sequence[Answered]) -> str:
    """The answers as notes for later steps: "Q: …" and "A: …"; what was not said is left out."""
    told = [asked for asked in questions if asked["answer"] and asked["answer"] != NOT_SAID]
    return "\n".join(f"Q: {asked['question']}\nA: {asked['answer']}" for asked in told)


def answered(query: str, text: str, evidence: Sequence[Evidence]) -> Answered:
    """A question with its answer and where the answer came from."""
    return Answered(question=query, answer=text, evidence=[found["id"] for found in evidence])


answer = model_node("answer", ask, read, fallback=without_answer)
