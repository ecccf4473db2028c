"""Write the search query for a thought (RAT §3.2, ToQuery)."""

import re
from collections.abc import Sequence

from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import ModelNode, Update
from stepcraft.llm.prompt import prompt
from stepcraft.text.lists import read_lines
from stepcraft.text.thoughts import split_thoughts
from stepcraft_papers.contexts import RatPaperContext
from stepcraft_papers.nodes.state import Prompt, RatPaperState, sections

_ONE = """\
The query alone, on one line, at most fifteen words, without quotation marks, operators or a full
stop."""
_EACH = """\
All thoughts of the text are looked up: one query for each of its paragraphs in their order, each on
a line of its own, at most fifteen words, without quotation marks, operators or a full stop."""
_LABEL = re.compile(r"\A(?:search )?query\s*[:\uff1a]\s*", re.IGNORECASE)


def ask_for_query(state: RatPaperState, settings: RatPaperContext) -> Prompt:
    """Show the question and the text first and the thought last, for a provider's prompt cache."""
    thought = state["thought"] if settings.causal else ""
    material = sections(question=state["task"], text=state["text"], thought=thought)
    form = _ONE if settings.causal else _EACH
    return prompt(settings.to_query_instructions, form, "query", material)


def read_query(reply: str, state: RatPaperState, settings: RatPaperContext) -> Update:
    """Return the queries in the reply: one, or with `causal=False` at most one per thought.

    Raises:
        UnreadableReply: There is no query in the reply.
    """
    most = 1 if settings.causal else len(split_thoughts(state["first_draft"]))
    lines = read_lines(reply)[:most][: settings.max_retrievals]
    if not lines:
        raise UnreadableReply("there was no query in it.")
    return _looked_up([_LABEL.sub("", line) for line in lines])


def without_model(state: RatPaperState, settings: RatPaperContext) -> Update | None:
    """Skip the model if the query is the question or the text, or the search limit is reached."""
    if settings.causal and 0 < (settings.max_retrievals or 0) < state["step"]:
        return _looked_up([], f"max_retrievals={settings.max_retrievals} is reached")
    if settings.query_from == "question":
        return _looked_up([state["task"]])
    return _looked_up([state["text"].strip()]) if settings.query == "draft" else None


def _looked_up(queries: Sequence[str], reason: str = "") -> Update:
    return {"queries": queries, "reason": reason}


query_thought = ModelNode(
    "to_query",
    ask_for_query,
    read_query,
    lambda _state, reason: _looked_up([], reason),
    skip=without_model,
    keep_back=lambda settings: 1 + (settings.finish != "thoughts"),
    started="Writing the query for a thought.",
)
