"""Think step by step in writing, then answer, in one call."""

import re
from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.llm.node import ModelNode
from stepcraft.llm.prompt import asked, prompt
from stepcraft.llm.reply import answer_text
from stepcraft.nodes.answer import FORMAT
from stepcraft.nodes.draft import no_draft

_REASONED = f"First the thoughts. Then a line ANSWER, and under it: {FORMAT[0].lower()}{FORMAT[1:]}"
_LABEL = re.compile(r"^\W*answer\W*$", re.IGNORECASE | re.MULTILINE)


def ask_for_thoughts(state: Any, settings: Any) -> list[BaseMessage]:
    """Show the question, and ask for thoughts before the answer."""
    return prompt(settings.answer_instructions, _REASONED, "reasoned", asked(state["task"]))


def read_below_thoughts(reply: str, _state: Any, _settings: Any) -> dict[str, Any]:
    """Return the text below the line ANSWER, or the whole reply if there is no such line."""
    *_, below = _LABEL.split(reply)
    return {"answer": answer_text(below.strip() or reply)}


answer_by_thinking = ModelNode(
    "answer",
    ask_for_thoughts,
    read_below_thoughts,
    no_draft,
    started="Thinking it through.",
    is_last=True,
)
