"""Answer the question in one call, from evidence where there is any: the baselines."""

import re
from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.llm.node import ModelNode
from stepcraft.llm.prompt import asked, passages, prompt
from stepcraft.llm.reply import answer_text
from stepcraft.nodes.draft import no_draft, shown_passages

_FORMAT = (
    "The answer and nothing else: text with code in fenced blocks, or a numbered list where the "
    "question asks for the steps of a procedure."
)
_REASONED = (
    f"First the thoughts. Then a line ANSWER, and under it: {_FORMAT[0].lower()}{_FORMAT[1:]}"
)
_LABEL = re.compile(r"^\W*answer\W*$", re.IGNORECASE | re.MULTILINE)


def ask(state: Any, settings: Any) -> list[BaseMessage]:
    """Show the question and the evidence."""
    sections = [*asked(state["task"]), *passages(state["evidence"], shown_passages(state))]
    return prompt(settings.answer_instructions, _FORMAT, "reply", sections)


def ask_for_thoughts(state: Any, settings: Any) -> list[BaseMessage]:
    """Show the question, and ask for thoughts before the answer."""
    return prompt(settings.answer_instructions, _REASONED, "reasoned", asked(state["task"]))


def read(reply: str, _state: Any, _settings: Any) -> dict[str, Any]:
    """Return the answer."""
    return {"answer": answer_text(reply)}


def read_below_thoughts(reply: str, _state: Any, _settings: Any) -> dict[str, Any]:
    """Return what stands under the line ANSWER; without one, the reply."""
    *_, below = _LABEL.split(reply)
    return {"answer": answer_text(below.strip() or reply)}


answer = ModelNode("answer", ask, read, no_draft, started="Answering.", is_last=True)
answer_by_thinking = ModelNode(
    "answer",
    ask_for_thoughts,
    read_below_thoughts,
    no_draft,
    started="Thinking it through.",
    is_last=True,
)
