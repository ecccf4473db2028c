"""Split the draft into its thoughts (RAT §3.2)."""

import re
from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from stepcraft.contexts.rat import RatContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import prompt
from stepcraft.llm.reply import text_of
from stepcraft.text.sections import section
from stepcraft.text.thoughts import placed_in, split_thoughts

_FORMAT = "The whole text, word for word, with a line ===== between one thought and the next."
_CUT = re.compile(r"^[ \t]*={3,}[ \t]*$", re.MULTILINE)


class Reading(TypedDict):
    """What this node reads."""

    draft: str


def ask(state: Reading, context: RatContext) -> list[BaseMessage]:
    """The draft alone."""
    sections = [section("text", state["draft"])]
    return prompt(context.split_instructions, _FORMAT, "split", sections)


def read(reply: str, state: Reading, _context: RatContext) -> dict[str, Any]:
    """The draft cut where the reply cuts it."""
    parts = [part for part in _CUT.split(text_of(reply, fenced=True)) if part.strip()]
    thoughts = placed_in(state["draft"], parts)
    if thoughts is None:
        raise UnreadableReply("joined again, its parts are not the text: a word was changed or left out.")
    return {"thoughts": thoughts}


def by_paragraphs(state: Reading, _why: str = "") -> dict[str, Any]:
    """The draft cut at its blank lines."""
    return {"thoughts": split_thoughts(state["draft"])}


def skip_model(state: Reading, context: RatContext) -> dict[str, Any] | None:
    """By paragraphs unless a model is asked for; one thought where the whole draft is checked at once."""
    if context.query_from != "thought":
        return {"thoughts": [state["draft"]]}
    return by_paragraphs(state) if context.split == "paragraphs" else None


split = model_node("split", ask, read, fallback=by_paragraphs, skip_model=skip_model)
