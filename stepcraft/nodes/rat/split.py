"""Split the draft into thoughts (RAT §3.2)."""

import re
from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.rat import RatContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import prompt
from stepcraft.llm.reply import text_of
from stepcraft.nodes.rat.accept import unchecked
from stepcraft.progress import Said, counted
from stepcraft.text.sections import section
from stepcraft.text.thoughts import placed_in, split_thoughts

_FORMAT = "The whole text, word for word, with a line ===== between one thought and the next."
_CUT = re.compile(r"^[ \t]*={3,}[ \t]*$", re.MULTILINE)


class Reading(Budgeted):
    """The input of this node."""

    draft: str


def ask(state: Reading, context: RatContext) -> list[BaseMessage]:
    """Show the draft alone."""
    sections = [section("text", state["draft"])]
    return prompt(context.split_instructions, _FORMAT, "split", sections)


def read(reply: str, state: Reading, _context: RatContext) -> dict[str, Any]:
    """The draft, split where the reply splits it.

    Raises:
        UnreadableReply: The parts joined again are not the draft.
    """
    parts = [part for part in _CUT.split(text_of(reply, fenced=True)) if part.strip()]
    thoughts = placed_in(state["draft"], parts)
    if thoughts is None:
        raise UnreadableReply("joined again, its parts are not the text: a word was changed or left out.")
    return unchecked(thoughts)


def by_paragraphs(state: Reading, _why: str = "") -> dict[str, Any]:
    """The draft, split at its blank lines."""
    return unchecked(split_thoughts(state["draft"]))


def skip_model(state: Reading, context: RatContext) -> dict[str, Any] | None:
    """No call unless the model is to split; one thought where the whole draft is checked at once."""
    if context.query_from != "thought":
        return unchecked([state["draft"]])
    return by_paragraphs(state) if context.split == "paragraphs" else None


def describe(_state: Reading, update: dict[str, Any]) -> Said:
    """How many thoughts there are."""
    thoughts = len(update["thoughts"])
    return Said(f"The draft has {counted(thoughts, 'thought')}.", {"thoughts": thoughts})


split = model_node(
    "split",
    ask,
    read,
    fallback=by_paragraphs,
    skip_model=skip_model,
    description="Split the draft into thoughts.",
    starts=lambda _state: Said("Splitting the draft into thoughts."),
    describe=describe,
)
