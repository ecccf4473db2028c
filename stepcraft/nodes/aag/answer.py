"""Answer one question from the procedures that were found for it (AAG §3.3, answer generation)."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from stepcraft.contexts.aag import AagContext
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import evidence_sections, prompt
from stepcraft.progress import Said, quoted
from stepcraft.schema import described
from stepcraft.text.clean import unfenced, without_markers
from stepcraft.text.sections import NOT_SAID, section

_FORMAT = f"Plain sentences, without a heading or a list. If the evidence answers no part of the question: {NOT_SAID}"

_PASSAGES = (
    " Beside procedures the evidence holds passages from other sources; the answer may rest on either."
)


@described
class Answered(TypedDict):
    """A question that was looked up."""

    question: str
    """What was asked."""
    answer: str
    """The answer, "" where there is none."""
    evidence: list[str]
    """The ids of the procedures that it was answered from."""


class Reading(Budgeted):
    """The input of this node, sent for each question."""

    query: str
    evidence: list[Evidence]


def ask(state: Reading, context: AagContext) -> list[BaseMessage]:
    """Show the question and the procedures."""
    sections = [section("question", state["query"]), *evidence_sections(state["evidence"])]
    form = _FORMAT + (_PASSAGES if context.answer_from == "memory+source" else "")
    return prompt(context.answer_instructions, form, "text", sections)


def read(reply: str, state: Reading, _context: AagContext) -> dict[str, Any]:
    """The answer, without a code fence or a remark before it."""
    text = without_markers(unfenced(reply)).strip()
    return {"questions": [answered(state["query"], text, state["evidence"])]}


def no_answer(state: Reading, _why: str) -> dict[str, Any]:
    """The question without an answer; the other questions keep theirs."""
    return {"questions": [answered(state["query"], "", state["evidence"])]}


def skip_model(state: Reading, _context: AagContext) -> dict[str, Any] | None:
    """No call without evidence: nothing can be said from it."""
    return None if state["evidence"] else {"questions": [answered(state["query"], NOT_SAID, [])]}


def answered(query: str, text: str, evidence: Sequence[Evidence]) -> Answered:
    """A question with its answer and the ids of the evidence."""
    return Answered(question=query, answer=text, evidence=[found["id"] for found in evidence])


def merge_answers(left: list[Answered], right: list[Answered]) -> list[Answered]:
    """Both lists, with the newer answer where a question is in both. A reducer."""
    return list({asked["question"]: asked for asked in [*(left or []), *right]}.values())


def starts(state: Reading) -> Said:
    """The question that is answered."""
    return Said(f"Answering {quoted(state['query'])}.", {"question": state["query"]})


def describe(state: Reading, update: dict[str, Any]) -> Said:
    """Whether the question was answered."""
    question = quoted(state["query"])
    if not state["evidence"]:
        return Said(f"Nothing was found on {question}.", skipped=True)
    if update["questions"][0]["answer"] == NOT_SAID:
        return Said(f"The evidence does not answer {question}.")
    return Said(f"Answered {question}.")


answer = model_node(
    "answer",
    ask,
    read,
    fallback=no_answer,
    skip_model=skip_model,
    description="Answer one question from what was found for it.",
    starts=starts,
    describe=describe,
)
