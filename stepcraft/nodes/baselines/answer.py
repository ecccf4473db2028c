"""Answer a question in one call: `answer` replies at once, `think` writes a chain of thought first.

The instructions in the context and the evidence make the difference between the baselines: no evidence (direct and
chain of thought), the passages of one search (RAG), or random procedures as examples (few-shot).
"""

import re
from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.baselines import DirectContext
from stepcraft.errors import NoAnswer, UnreadableReply
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import asked_sections, evidence_sections, prompt
from stepcraft.llm.reply import text_of
from stepcraft.progress import Said, publish_answer

LENGTHS = {
    "long": "Running text of up to three paragraphs, or numbered steps where the question asks how something is done.",
    "short": "One sentence at most, or the name, number or date alone that was asked for.",
}
LENGTHS["multihop"] = LENGTHS["short"]
"""Length of the answer by answer style, as the reply format states it."""

_THOUGHTS_FORMAT = """\
The thoughts, each a paragraph of its own. Then a line ANSWER, and under it the answer and nothing else. {}"""

_HEADING = re.compile(
    # What stands before the word is read once, from the last word before it, or it would be read again at each line.
    r"(?:\A|(?<=[^\W_])(?:_|[^\w\n])*+\n)(?P<heading>[\W_]*+(?:final\s++)?answer)"
    r"(?=(?P<rest>[*_ \t]*+(?::[*_ \t]*+|\uff1a|$)))",
    re.IGNORECASE | re.MULTILINE,
)


class Reading(Budgeted):
    """The input of this node."""

    question: str
    resources_text: str
    answer_style: str
    evidence: list[Evidence]


def ask(state: Reading, context: DirectContext) -> list[BaseMessage]:
    """Show the question, the resources, and the passages or examples."""
    form = f"The answer alone, without a preamble. {LENGTHS[state['answer_style']]}"
    sections = [
        *asked_sections("question", state["question"], state["resources_text"]),
        *evidence_sections(state["evidence"]),
    ]
    return prompt(context.answer_instructions, form, "reply", sections)


def read(reply: str, _state: Reading, _context: DirectContext) -> dict[str, Any]:
    """The answer, without a code fence around it."""
    text = text_of(reply)
    if not text:
        raise UnreadableReply("there was no text in it.")
    return {"answer": text}


def no_answer(_state: Reading, why: str) -> dict[str, Any]:
    """End the run: there is nothing else to answer with.

    Raises:
        NoAnswer: Always.
    """
    raise NoAnswer(f"no answer was written: {why}")


def ask_to_think(state: Reading, context: DirectContext) -> list[BaseMessage]:
    """Show the question and the resources."""
    form = _THOUGHTS_FORMAT.format(LENGTHS[state["answer_style"]])
    sections = asked_sections("question", state["question"], state["resources_text"])
    return prompt(context.answer_instructions, form, "reasoned", sections)


def read_thoughts(reply: str, _state: Reading, _context: DirectContext) -> dict[str, Any]:
    """The text before the last heading as the draft, and the text under it as the answer.

    Without a heading the last paragraph is the answer.
    """
    text = text_of(reply)
    headings = list(_HEADING.finditer(text))
    if headings:
        last = headings[-1]
        thoughts, conclusion = text[: last.start("heading")], text[last.end("rest") :]
    else:
        thoughts, _, conclusion = text.rpartition("\n\n")
    if not conclusion.strip():
        raise UnreadableReply("there was nothing under the line ANSWER.")
    return {"draft": thoughts.strip(), "answer": conclusion.strip()}


answer = model_node(
    "answer",
    ask,
    read,
    fallback=no_answer,
    description="Answer the question in one call.",
    starts=lambda _state: Said("Writing the answer."),
    describe=lambda _state, _update: Said("Wrote the answer."),
    publish=lambda graph, _state, update: publish_answer(graph, update),
)
think = model_node(
    "answer",
    ask_to_think,
    read_thoughts,
    fallback=no_answer,
    description="Think step by step and answer, in one call.",
    starts=lambda _state: Said("Thinking, then writing the answer."),
    describe=lambda _state, _update: Said("Wrote the thoughts and the answer."),
    publish=lambda graph, _state, update: publish_answer(graph, update),
)
