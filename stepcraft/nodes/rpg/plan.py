"""Plan the next segment of the answer: its topic, or a signal that none is needed (RPG §3.2)."""

import re
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.rpg import RpgContext
from stepcraft.errors import UnreadableReply
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import prompt
from stepcraft.llm.reply import text_of, unwrapped
from stepcraft.progress import Said, quoted
from stepcraft.segments import Segment, written
from stepcraft.text.clean import CJK, terms
from stepcraft.text.lists import numbered
from stepcraft.text.sections import COMPLETE, NO_INFO, section

_TOPIC = "The topic alone, on one line, at most 12 words, without a label or quotation marks."
_NOTHING_FOUND = " (nothing was found on it)"
_MAX_TITLES = 30

_FIRST = f"""\
{_TOPIC}
Or exactly {NO_INFO} if no facts have to be looked up for the answer, as with a greeting, a calculation or a piece of
free writing."""
_LATER = f"{_TOPIC}\nOr exactly {COMPLETE} if the text says all that the question asks for."

MOST_TOKENS = 30
"""Length limit of a plan (RPG §4); a token is counted as four characters, and a Chinese character as three of them."""

_CORES = {
    NO_INFO: r"no[\s_-]?info(?:rmation)?(?:[\s_-](?:is[\s_-])?needed)?",
    COMPLETE: r"completed?|done|end",
}
_WORDS = {
    NO_INFO: re.compile(_CORES[NO_INFO], re.IGNORECASE),
    COMPLETE: re.compile(
        rf"{_CORES[COMPLETE]}|(?:the )?(?:answer|text) is (?:now |already )?complete", re.IGNORECASE
    ),
}
_BRACKETED = {
    signal: re.compile(rf"(?:\A[\[({{]|<)[\s/]*(?:{core})[\s/]*[>\])}}]\W*\Z", re.IGNORECASE)
    for signal, core in _CORES.items()
}
_ITEM = re.compile(r"\A(?:[-*\u2022#]+|\d{1,2}[.)])(?:\s+|\Z)")
_LABEL = re.compile(r"\A(?:next )?(?:plan|topic|segment)(?: \d+)?\s*[:\uff1a][\s*_]*", re.IGNORECASE)
_QUOTED = re.compile(r"[\"'\u201c\u2018]([^\"\u201c\u201d]*)[\"'\u201d\u2019]\.?")
_SPACELESS = re.compile(f"[{CJK}]")
_BETWEEN_WORDS = re.compile(r"\w(?:.*\w)?")


class Reading(Budgeted):
    """The input of this node."""

    question: str
    answer_style: str
    plans: list[str]
    missing: list[str]
    segments: list[Segment]
    evidence: list[Evidence]


def ask(state: Reading, context: RpgContext) -> list[BaseMessage]:
    """Show the question, the plans and the segments, and the titles of what was found; the paper shows no titles."""
    text = written(state["segments"])
    missing = state.get("missing") or []
    plans = [plan + _NOTHING_FOUND * (plan in missing) for plan in state["plans"]]
    sections = [
        section("question", state["question"]),
        "" if context.paper else titles_section(state["evidence"]),
        section("plans", numbered(plans)) if plans else "",
        section("text", text) if text else "",
    ]
    form = _LATER if state["plans"] else _FIRST
    return prompt(context.plan_instructions, form, "plan", sections)


def read(reply: str, state: Reading, _context: RpgContext) -> dict[str, Any]:
    """The topic, or a signal where it applies: `<no_info>` on the first turn, `<complete>` after a segment."""
    text = unwrapped(text_of(reply))
    signal = signal_of(text)
    if signal == (COMPLETE if state["segments"] else NO_INFO) and (signal == COMPLETE or not state["plans"]):
        return {"plan": "", "signal": signal}
    if signal:
        return the_question(state)
    topic = _topic(text)
    if not topic:
        raise UnreadableReply("there was no topic in it.")
    return {"plan": topic, "signal": ""}


def titles_section(evidence: Sequence[Evidence]) -> str:
    """The titles of the passages that were found so far; "" without any."""
    titles = list(
        dict.fromkeys(" ".join(passage["title"].split()) for passage in evidence if passage["title"].strip())
    )
    if not titles:
        return ""
    lines = "\n".join(f"- {title[:200]}" for title in titles[:_MAX_TITLES])
    return section("titles", f"Found so far, which is not all there may be:\n{lines}")


def signal_of(text: str) -> str:
    """The signal on the first line, or in brackets at the start or end of any line; "" if there is none."""
    lines = [line for line, _ in _lines(text)]
    for signal, words in _WORDS.items():
        said = _BETWEEN_WORDS.search(lines[0]) if lines else None
        alone = said and words.fullmatch(said[0])
        if alone or any(_BRACKETED[signal].search(line) for line in lines):
            return signal
    return ""


def _topic(text: str) -> str:
    """The first line with content and the lines that continue it, cut to the length limit."""
    found: list[str] = []
    for line, is_item in _lines(text):
        if found and (is_item or not line[0].islower()):
            break
        found.append(line)
    topic = " ".join(found)
    return shortened(unquoted(topic.strip(" *`_."))) if re.search(r"\w", topic) else ""


def unquoted(topic: str) -> str:
    """The topic without quotation marks around all of it; a title that is quoted in it keeps its own."""
    quoted = _QUOTED.fullmatch(topic)
    return quoted[1] if quoted else topic


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """The content of each line without its label, and whether the line is a list item."""
    for line in map(str.strip, text.splitlines()):
        said = _ITEM.sub("", line, count=1)
        if bare := _LABEL.sub("", said.strip("*`_ "), count=1).strip("*`_ "):
            yield bare, said != line


def shortened(text: str) -> str:
    """The text, cut at a word to the length limit of a plan."""
    most = 4 * MOST_TOKENS
    sizes = accumulate(3 if _SPACELESS.match(character) else 1 for character in text)
    end = sum(size <= most for size in sizes)
    cut = text[:end]
    if cut == text:
        return text
    words = cut if text[end] == " " else cut.rpartition(" ")[0]
    return (words or cut).rstrip(" ,;:-")


def the_question(state: Reading) -> dict[str, Any]:
    """The question itself as the plan."""
    return {"plan": state["question"], "signal": ""}


def skipped(state: Reading, _why: str) -> dict[str, Any]:
    """The question as the plan; once a segment is written, the answer is taken as complete."""
    return {"plan": "", "signal": COMPLETE} if state["segments"] else the_question(state)


def skip_model(state: Reading, context: RpgContext) -> dict[str, Any] | None:
    """No call where the question is the plan (the ablation without planning)."""
    return None if context.plan else the_question(state)


def repeats(plan: str, plans: Sequence[str]) -> bool:
    """Whether an earlier plan has the same words."""
    return _words(plan) in map(_words, plans)


def _words(plan: str) -> tuple[str, ...]:
    return tuple(sorted(set(terms(plan)))) or (plan,)


def reserved_calls(state: Reading) -> int:
    """A call for the planned segment, and one to combine the segments."""
    return 2 if state["answer_style"] == "multihop" else 1


def describe(_state: Reading, update: dict[str, Any]) -> Said:
    """The topic, or that none is left."""
    if update["signal"] == COMPLETE:
        return Said("The answer is complete.")
    if update["signal"] == NO_INFO:
        return Said("No evidence is needed for the answer.")
    return Said(f"The next topic is {quoted(update['plan'])}.", {"topic": update["plan"]})


plan = model_node(
    "plan",
    ask,
    read,
    fallback=skipped,
    skip_model=skip_model,
    truncate_key="",
    reserve_calls=reserved_calls,
    description="Plan the topic of the next segment.",
    starts=lambda _state: Said("Planning the next segment."),
    describe=describe,
)
