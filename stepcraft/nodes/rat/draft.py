"""Draft an answer as step-by-step thoughts, before any search (RAT §3.1)."""

from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.rat import RatContext
from stepcraft.errors import NoAnswer, UnreadableReply
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import prompt
from stepcraft.llm.reply import text_of
from stepcraft.progress import Said
from stepcraft.text.sections import section

_FORMAT = """\
Two to eight thoughts, each a paragraph of one to four sentences, with a blank line between them. Nothing before the
first thought or after the last one."""

_PROGRAM = " The thoughts plan a program in {}, part by part: what each part does, and with which functions."


class Reading(Budgeted):
    """The input of this node."""

    question: str


def ask(state: Reading, context: RatContext) -> list[BaseMessage]:
    """Show the question alone."""
    language = context.program_language
    form = _FORMAT + (_PROGRAM.format(language) if language else "")
    sections = [section("question", state["question"])]
    return prompt(context.draft_instructions, form, "thoughts", sections)


def read(reply: str, _state: Reading, _context: RatContext) -> dict[str, Any]:
    """The draft, without a remark before it."""
    text = text_of(reply)
    if not text:
        raise UnreadableReply("there was no text in it.")
    return {"draft": text}


def no_draft(_state: Reading, why: str) -> dict[str, Any]:
    """End the run: without a draft there is nothing to revise.

    Raises:
        NoAnswer: Always.
    """
    raise NoAnswer(f"no draft was written: {why}")


draft = model_node(
    "draft",
    ask,
    read,
    fallback=no_draft,
    description="Draft an answer as thoughts, before any search.",
    starts=lambda _state: Said("Drafting an answer."),
    describe=lambda _state, _update: Said("Wrote a draft."),
)
