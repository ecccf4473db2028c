"""Answer the question in one call, from evidence if there is any (used by the baselines)."""

from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.llm.node import ModelNode
from stepcraft.llm.prompt import asked, passages, prompt
from stepcraft.llm.reply import answer_text
from stepcraft.nodes.draft import no_draft, shown_passages

FORMAT = "The answer and nothing else, with code in fenced blocks."


def ask(state: Any, settings: Any) -> list[BaseMessage]:
    """Show the question and the evidence."""
    sections = [*asked(state["task"]), *passages(state["evidence"], shown_passages(state))]
    return prompt(settings.answer_instructions, FORMAT, "reply", sections)


def read(reply: str, _state: Any, _settings: Any) -> dict[str, Any]:
    """Return the answer."""
    return {"answer": answer_text(reply)}


answer = ModelNode("answer", ask, read, no_draft, started="Answering.", is_last=True)
