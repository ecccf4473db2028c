"""Write the next segment of an answer from the sentences that were selected for its plan (RPG §3.2)."""

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from stepcraft.contexts.rpg import RpgContext
from stepcraft.errors import UnreadableReply
from stepcraft.evidence import Evidence
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import prompt, titled
from stepcraft.llm.reply import answer_text
from stepcraft.segments import Segment, Selected, passages_of, used, written
from stepcraft.text.citations import with_marks_of
from stepcraft.text.sections import section

_FORMATS = {
    "long": "The segment alone: one to four sentences of running text, at most 100 tokens (about 70 words).",
    "short": """\
The answer alone, in as few words as it takes and at most 100 tokens: the name, the date, the number, or yes or no;
a sentence only where the question asks for one.""",
    "multihop": """\
The segment alone: one or two sentences that state what was found out on the plan, with all names in full; at most 100
tokens (about 70 words).""",
}
_MARKS = """
Behind each sentence stands the number of the evidence that bears it out, in square brackets: [1], or [1][3] for two.
Nothing else is cited."""


class Reading(TypedDict):
    """What this node reads."""

    question: str
    task: str
    plan: str
    plans: list[str]
    selected: list[Selected]
    evidence: list[Evidence]
    segments: list[Segment]


def ask(state: Reading, context: RpgContext) -> list[BaseMessage]:
    """Question and text first, the plan and its evidence last, so that a provider's prompt cache hits."""
    text = written(state["segments"])
    sections = [
        section("question", state["question"]),
        section("text", text) if text else "",
        section("plan", state["plan"]) if state["plan"] else "",
        *_evidence(state),
    ]
    form = _FORMATS[state["task"]]
    if is_inline(context) and state["selected"]:
        form += _MARKS
    return prompt(context.answer_instructions, form, "segment", sections)


def _evidence(state: Reading) -> list[str]:
    """The selected sentences of each passage under its title, numbered as the passages are in the output."""
    passages = {passage["id"]: passage for passage in state["evidence"]}
    told: dict[str, list[str]] = {}
    for sentence in state["selected"]:
        told.setdefault(sentence["passage"], []).append(sentence["text"])
    return [
        section("evidence", titled({**passages[id_], "text": "\n".join(told[id_])}), id=str(number))
        for id_, number in _numbers(state).items()
    ]


def _numbers(state: Reading) -> dict[str, int]:
    """Each selected passage's place among all that were used by then, from 1."""
    chosen = passages_of(state["selected"])
    known = list(dict.fromkeys([*used(state["segments"]), *chosen]))
    return {id_: known.index(id_) + 1 for id_ in chosen}


def read(reply: str, state: Reading, context: RpgContext) -> dict[str, Any]:
    """The segment, without the text before it where that is repeated, and without marks that cite nothing."""
    text = answer_text(reply).removeprefix(written(state["segments"])).strip()
    if is_inline(context):
        text = with_marks_of(text, _numbers(state).values())
    if not text:
        raise UnreadableReply("it adds nothing to the text; write the next segment alone.")
    segment = Segment(
        plan=state["plan"],
        sentences=state["selected"],
        text=text,
        evidence=passages_of(state["selected"]),
        unsupported=not state["selected"],
    )
    return {"segments": [*state["segments"], segment], "plans": _planned(state)}


def skipped(state: Reading, _why: str) -> dict[str, Any]:
    """The plan was made, the segment is missing."""
    return {"plans": _planned(state)}


def _planned(state: Reading) -> list[str]:
    return [*state["plans"], state["plan"]] if state["plan"] else state["plans"]


def is_inline(context: RpgContext) -> bool:
    """Whether sentences are followed by the numbers of their evidence."""
    return context.citations == "inline"


def kept_for_later(state: Mapping[str, Any]) -> int:
    """A call to combine the segments, once there is one."""
    return int(state["task"] == "multihop" and bool(state["segments"]))


def newest(update: dict[str, Any]) -> dict[str, Any]:
    """The segment, for those who follow the run."""
    segments: Sequence[Segment] = update["segments"]
    return {"segment": segments[-1]}


answer_segment = model_node(
    "answer",
    ask,
    read,
    fallback=skipped,
    truncate_key="selected",
    reserve_calls=kept_for_later,
    stream_event=newest,
)
