"""Write one search query for a thought (RAT §3.2, ToQuery)."""

import re
from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.rat import RatContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import prompt
from stepcraft.llm.reply import text_of
from stepcraft.progress import Said, quoted
from stepcraft.text.sections import section

_FORMAT = (
    "The query alone, on one line, at most fifteen words, without quotation marks, operators or a full stop."
)
_LABEL = re.compile(r"\A(?:search )?query\s*[:\uff1a]\s*", re.IGNORECASE)
_LONGEST = 400


class Reading(Budgeted):
    """The input of this node."""

    question: str
    text: str
    thought: str
    query: str
    evidence: list[Any]
    number: int


def ask(state: Reading, context: RatContext) -> list[BaseMessage]:
    """Show the question and the text first and the thought last, so that a provider's prompt cache hits."""
    sections = [
        section("question", state["question"]),
        section("text", state["text"].rstrip()),
        section("thought", state["thought"].strip()),
    ]
    return prompt(context.to_query_instructions, _FORMAT, "query", sections)


def read(reply: str, _state: Reading, _context: RatContext) -> dict[str, Any]:
    """The first line with content, without the label and the quotation marks that models put around a query."""
    for line in text_of(reply).splitlines():
        query = _LABEL.sub("", line.strip(" \t#*-`>"), count=1).strip(" \t\"'`*\u201c\u201d\u2018\u2019.")
        if query:
            return {"query": query[:_LONGEST]}
    raise UnreadableReply("there was no query in it.")


def skipped(_state: Reading, why: str) -> dict[str, Any]:
    """Skip the step: without a query the thought stays as it is."""
    return {"skipped": why}


def skip_model(state: Reading, context: RatContext) -> dict[str, Any] | None:
    """No call where the question or the text is the query, or where the step already has evidence."""
    if state["evidence"]:
        return {}
    if context.query_from == "question":
        return {"query": state["question"]}
    return {"query": state["text"].strip()} if context.query == "draft" else None


def starts(state: Reading) -> Said:
    """The thought that is looked up."""
    thought = state["number"] + 1
    return Said(f"Writing the query for thought {thought}.", {"thought": thought, "provisional": True})


def describe(state: Reading, update: dict[str, Any]) -> Said:
    """The query."""
    thought, query = state["number"] + 1, update.get("query", "")
    if not query:
        return Said(f"Thought {thought} has its evidence.", skipped=True)
    return Said(f"Thought {thought} is looked up as {quoted(query)}.", {"queries": [query]})


to_query = model_node(
    "to_query",
    ask,
    read,
    fallback=skipped,
    skip_model=skip_model,
    description="Write a search query for the thought.",
    starts=starts,
    describe=describe,
)
