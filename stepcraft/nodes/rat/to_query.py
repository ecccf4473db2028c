"""Turn what has been written so far into one search query (RAT §3.2, ToQuery)."""

import re
from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from stepcraft.contexts.base import Context
from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import prompt
from stepcraft.llm.reply_text import text_of
from stepcraft.text.sections import section

INSTRUCTIONS = """\
An answer to the question is being written thought by thought, and each thought is looked up as soon as it stands.
The text is the answer so far; the thought is the part of it that is looked up now.
Write the one search query that would best show whether the thought is right: short and specific, with the names of
the persons, places, works or products in full, and with what is claimed of them as what is sought, not as known.
Whoever searches knows neither the question nor the text."""

_FORMAT = (
    "The query alone, on one line, at most fifteen words, without quotation marks, operators or a full stop."
)
_LABEL = re.compile(r"\A(?:search )?query\s*[:\uff1a]\s*", re.IGNORECASE)
_LONGEST = 400


class Reading(TypedDict):
    """What this node reads."""

    question: str
    text: str
    thought: str
    query: str
    evidence: list[Any]


def ask(state: Reading, context: Context) -> list[BaseMessage]:
    """Question and text first, the thought last, so that a provider's prompt cache hits."""
    sections = [
        section("question", state["question"]),
        section("text", state["text"].rstrip()),
        section("thought", state["thought"].strip()),
    ]
    return prompt(context.instructions("to_query", INSTRUCTIONS), _FORMAT, "query", sections)


def read(reply: str, _state: Reading, _context: Context) -> dict[str, Any]:
    """The first line that says something, without what models put around a query."""
    for line in text_of(reply).splitlines():
        query = _LABEL.sub("", line.strip(" \t#*-`>"), count=1).strip(" \t\"'`*\u201c\u201d\u2018\u2019.")
        if query:
            return {"query": query[:_LONGEST]}
    raise UnreadableReply("there was no query in it.")


def skipped(_state: Reading, why: str) -> dict[str, Any]:
    """Without a query the thought stays as it is."""
    return {"skipped": why}


def without_model(state: Reading, context: Context) -> dict[str, Any] | None:
    """No call where the question or the text is the query, or where the evidence is there already."""
    if state["evidence"]:
        return {}
    if getattr(context, "query_from", "thought") == "question":
        return {"query": state["question"]}
    return {"query": state["text"].strip()} if getattr(context, "query", "model") == "draft" else None


query_thought = model_node("to_query", ask, read, fallback=skipped, without=without_model)
