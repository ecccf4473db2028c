"""Write the answer from the revised thoughts, in the form that `finish` names (RAT §3.2, §4)."""

from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.rat import RatContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import prompt
from stepcraft.llm.reply import text_of
from stepcraft.progress import Said, publish_answer
from stepcraft.text.sections import section

_FORMATS = {
    "answer": """\
The answer: first what was asked for, in one sentence; then, if the question needs it, what supports it, in running
text. No heading, no preamble.""",
    "article": """\
The text as an article in markdown: a title (# ...), subheadings (## ...) where the subject changes, and under them the
text's own paragraphs in their order, smoothed where they repeat or contradict each other.""",
    "code": "The complete program in {language}, in one fenced code block, and nothing else. It runs as it stands.",
}


class Reading(Budgeted):
    """The input of this node."""

    question: str
    text: str


def ask(state: Reading, context: RatContext) -> list[BaseMessage]:
    """Show the question and the revised text."""
    form = _FORMATS[context.finish].format(language=context.program_language)
    sections = [section("question", state["question"]), section("text", state["text"].strip())]
    return prompt(context.finish_instructions, form, context.finish, sections)


def read(reply: str, _state: Reading, _context: RatContext) -> dict[str, Any]:
    """The answer, without a code fence around it."""
    answer = text_of(reply)
    if not answer:
        raise UnreadableReply("there was no text in it.")
    return {"answer": answer}


def the_text(state: Reading, _why: str = "") -> dict[str, Any]:
    """The revised text as the answer."""
    return {"answer": state["text"].strip()}


def skip_model(state: Reading, context: RatContext) -> dict[str, Any] | None:
    """No call where the thoughts themselves are the answer."""
    return the_text(state) if context.finish == "thoughts" else None


def describe(state: Reading, update: dict[str, Any]) -> Said:
    """Whether the answer was written, or is the thoughts."""
    if update["answer"] == state["text"].strip():
        return Said("The checked thoughts are the answer.")
    return Said("Wrote the answer from the checked thoughts.")


finish = model_node(
    "finish",
    ask,
    read,
    fallback=the_text,
    skip_model=skip_model,
    description="Write the answer from the checked thoughts.",
    starts=lambda _state: Said("Writing the answer."),
    describe=describe,
    publish=lambda graph, _state, update: publish_answer(graph, update),
)
