"""Think a question through in writing and answer it, in one call (zero-shot chain of thought)."""

import re
from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.baselines import DirectContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import asked_sections, prompt
from stepcraft.llm.reply import text_of
from stepcraft.nodes.baselines.answer import LENGTHS, Reading, no_answer

_FORMAT = """\
The thoughts, each a paragraph of its own. Then a line ANSWER, and under it the answer and nothing else. {}"""

_HEADING = re.compile(
    r"^[\W_]*(?:final\s+)?answer[*_ \t]*(?::[*_ \t]*|\uff1a|$)", re.IGNORECASE | re.MULTILINE
)


def ask(state: Reading, context: DirectContext) -> list[BaseMessage]:
    """The question and what is at hand."""
    form = _FORMAT.format(LENGTHS[state["task"]])
    sections = asked_sections("question", state["question"], state["resources_text"])
    return prompt(context.answer_instructions, form, "reasoned", sections)


def read(reply: str, _state: Reading, _context: DirectContext) -> dict[str, Any]:
    """What stands before the last heading, and under it; without a heading the last paragraph is the answer."""
    text = text_of(reply)
    headings = list(_HEADING.finditer(text))
    if headings:
        draft, answer = text[: headings[-1].start()], text[headings[-1].end() :]
    else:
        draft, _, answer = text.rpartition("\n\n")
    if not answer.strip():
        raise UnreadableReply("there was nothing under the line ANSWER.")
    return {"draft": draft.strip(), "answer": answer.strip()}


think = model_node("answer", ask, read, fallback=no_answer)
