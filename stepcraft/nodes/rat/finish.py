"""Write the answer from the revised thoughts (RAT §3.2, and its tasks in §4)."""

from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from stepcraft.contexts.rat import RatContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import prompt
from stepcraft.llm.reply import text_of
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


class Reading(TypedDict):
    """What this node reads."""

    question: str
    text: str


def ask(state: Reading, context: RatContext) -> list[BaseMessage]:
    """The question and the revised text."""
    kind = _kind(context)
    form = _FORMATS[kind].format(language=context.program_language)
    sections = [section("question", state["question"]), section("text", state["text"].strip())]
    return prompt(context.finish_instructions, form, kind, sections)


def read(reply: str, _state: Reading, _context: RatContext) -> dict[str, Any]:
    """The answer, without a fence around it."""
    answer = text_of(reply)
    if not answer:
        raise UnreadableReply("there was no text in it.")
    return {"answer": answer}


def the_text(state: Reading, _why: str = "") -> dict[str, Any]:
    """The revised text itself."""
    return {"answer": state["text"].strip()}


def skip_model(state: Reading, context: RatContext) -> dict[str, Any] | None:
    """No call where the thoughts themselves are the answer."""
    return the_text(state) if _kind(context) == "thoughts" else None


def _kind(context: RatContext) -> str:
    return context.finish


finish = model_node("finish", ask, read, fallback=the_text, skip_model=skip_model)
