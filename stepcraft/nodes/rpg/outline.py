"""Plan all segments of an answer in one call, and what kind of answer the question asks for."""

import re
from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.rpg import RpgContext
from stepcraft.errors import UnreadableReply
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import prompt
from stepcraft.llm.reply import text_of, unwrapped
from stepcraft.nodes.rpg.plan import shortened, signal_of, titles_section, unquoted
from stepcraft.progress import Said, counted, quoted
from stepcraft.text.lists import read_bullets, read_lines
from stepcraft.text.sections import NO_INFO, section

_KIND = """\
On the first line one word: short, multihop or long.
Below it the topics, one a line with a hyphen before it, each at most 12 words, at most {most} of them."""
_TOPICS = (
    "The topics alone, one a line with a hyphen before it, each at most 12 words, at most {most} of them."
)
_NONE = f"""
Or exactly {NO_INFO} if no facts have to be looked up for the answer, as with a greeting, a calculation or a piece of
free writing."""

_KINDS = re.compile(
    r"\W*(?:(?:the )?(?:kind|answer|type)(?: of answer)?\W+(?:is\W+)?)?(short|multi-?hop|long)\b\W*(.*)",
    re.IGNORECASE,
)


class Reading(Budgeted):
    """The input of this node."""

    question: str
    answer_style: str
    evidence: list[Evidence]


def ask(state: Reading, context: RpgContext) -> list[BaseMessage]:
    """Show the question, and the titles of what a first search found."""
    form = _KIND if state["answer_style"] == "auto" else _TOPICS
    sections = [section("question", state["question"]), titles_section(state["evidence"])]
    return prompt(
        context.outline_instructions, form.format(most=context.max_cycles) + _NONE, "outline", sections
    )


def read(reply: str, state: Reading, context: RpgContext) -> dict[str, Any]:
    """The kind of the answer and its topics; one topic where the next ones follow from it."""
    text = unwrapped(text_of(reply))
    if signal_of(text) == NO_INFO:
        style = "long" if state["answer_style"] == "auto" else state["answer_style"]
        return {"signal": NO_INFO, "plan": "", "outline": [], "answer_style": style}
    style, rest = state["answer_style"], text
    if style == "auto":
        first, _, below = text.lstrip().partition("\n")
        named = _KINDS.fullmatch(first.strip())
        if not named:
            raise UnreadableReply("its first line is neither short, multihop nor long.")
        style, rest = named[1].lower().replace("-", ""), f"{named[2]}\n{below}"
    bare = (unquoted(line.strip(" *_`")) for line in read_bullets(rest) or read_lines(rest))
    topics = list(dict.fromkeys(shortened(topic) for topic in bare if re.search(r"\w", topic)))
    if not topics:
        raise UnreadableReply("there was no topic in it.")
    if style == "long" and context.order != "step":
        return {"outline": topics[: context.max_cycles], "plan": "", "signal": "", "answer_style": style}
    return {"outline": [], "plan": topics[0], "signal": "", "answer_style": style}


def skipped(state: Reading, _why: str) -> dict[str, Any]:
    """The question itself as the only topic."""
    style = "long" if state["answer_style"] == "auto" else state["answer_style"]
    return {"outline": [], "plan": state["question"], "signal": "", "answer_style": style}


def describe(_state: Reading, update: dict[str, Any]) -> Said:
    """The kind of the answer and its topics."""
    kind, topics = update["answer_style"], update["outline"]
    if update["signal"] == NO_INFO:
        return Said("No evidence is needed for the answer.", {"kind": kind, "topics": []})
    if topics:
        told = f"Planned {counted(len(topics), 'topic')}: {'; '.join(topics)}."
        return Said(told, {"kind": kind, "topics": topics})
    return Said(f"The first topic is {quoted(update['plan'])}.", {"kind": kind, "topic": update["plan"]})


outline = model_node(
    "outline",
    ask,
    read,
    fallback=skipped,
    truncate_key="",
    reserve_calls=lambda _state: 1,
    description="Plan all topics of the answer, and what kind of answer is asked for.",
    starts=lambda _state: Said("Planning the answer."),
    describe=describe,
)
