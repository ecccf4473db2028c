"""Write the next segment of the answer from the sentences selected for its plan (RPG §3.2)."""

from collections.abc import Iterable, Mapping
from typing import Any, NotRequired

from langchain_core.messages import BaseMessage

from stepcraft.contexts.rpg import RpgContext
from stepcraft.errors import UnreadableReply
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import prompt, titled
from stepcraft.llm.reply import answer_text
from stepcraft.progress import Said, publish_segment, quoted
from stepcraft.segments import Segment, Selected, passages_of, used, written
from stepcraft.text.citations import with_marks_of
from stepcraft.text.sections import section

_FORMATS = {
    "long": "The segment alone: one to four sentences of running text, at most 100 tokens (about 70 words).",
    "traced": """\
The segment alone: running text of as many sentences as the evidence bears, at most {tokens} tokens (about {words}
words) beside code. Where the question asks how something is done, its code stands in fenced blocks.""",
    "short": """\
The answer alone, in as few words as it takes and at most 100 tokens: the name, the date, the number, or yes or no;
a sentence only where the question asks for one.""",
    "multihop": """\
The segment alone: one or two sentences that state what was found out on the plan, with all names in full; at most 100
tokens (about 70 words).""",
}
_MARKS = """
Behind each sentence stands the number of the evidence that bears it out, in square brackets: [1], or [1][3] for two.
A sentence with a number says nothing beyond that evidence: no definition, name, reason, consequence or comparison that it
does not give, and code below it is that of the evidence. Nothing else is cited."""
_OPEN = """
Where the evidence is silent on what the plan needs, add what you are sure of, in sentences of their own without a number;
where the two differ, go by the evidence."""
_STRICT = """
Write all that the evidence says on the plan, and nothing that it does not say; what comes near to an answer is told as what
it is. Of what the plan asks for and the evidence does not tell, say once and plainly, without a number, that it is not
known; speak of no other gap."""
_STRICT_OF_PAPER = " Add nothing that the evidence does not say."
_WITHOUT = """
There is no evidence: write only what you are sure of, in one sentence; if that is nothing, say what was not found."""


class Reading(Budgeted):
    """The input of this node."""

    question: str
    answer_style: str
    plan: str
    plans: list[str]
    selected: list[Selected]
    evidence: list[Evidence]
    segments: list[Segment]
    topics: NotRequired[list[str]]
    """The topics of all segments that are written in parallel."""


def ask(state: Reading, context: RpgContext) -> list[BaseMessage]:
    """Show the question and the text first, then the plan and its evidence, so that a provider's prompt cache hits."""
    text = written(state["segments"])
    others = [topic for topic in state.get("topics") or [] if topic != state["plan"]]
    sections = [
        section("question", state["question"]),
        section("text", text) if text else "",
        section("plans", "\n".join(f"- {topic}" for topic in others)) if others else "",
        section("plan", state["plan"]) if state["plan"] else "",
        *_evidence_sections(state),
    ]
    style = "long" if state["answer_style"] == "auto" else state["answer_style"]
    if context.paper or style != "long":
        form = _FORMATS[style] + (_STRICT_OF_PAPER if context.paper and state["selected"] else "")
    else:
        form = _FORMATS["traced"].format(
            tokens=context.segment_tokens, words=7 * context.segment_tokens // 10
        )
    if context.marks and state["selected"]:
        form += _MARKS
    if not context.paper and state["selected"]:
        form += _OPEN if context.grounding == "open" else _STRICT
    elif state["plan"] and not state["selected"]:
        form += _WITHOUT
    return prompt(context.answer_instructions, form, "segment", sections)


def _evidence_sections(state: Reading) -> list[str]:
    """The selected sentences of each passage under its title, numbered as the passages are in the output."""
    passages = {passage["id"]: passage for passage in state["evidence"]}
    sections: list[str] = []
    for id_, number in _numbers(state).items():
        shown = passage_of_sentences(id_, state["selected"], passages)
        sections.append(section("evidence", titled(shown), id=str(number)))
    return sections


def passage_of_sentences(
    id_: str, sentences: Iterable[Selected], passages: Mapping[str, Evidence]
) -> Evidence:
    """The sentences of a passage as one, with the passage's title and source if it is known.

    A sentence that a person selected by `update_state` may come from a passage that was not retrieved.
    """
    text = "\n".join(one["text"] for one in sentences if one["passage"] == id_)
    return {**passages.get(id_, Evidence(id=id_, title="", text="", source="", score=0.0)), "text": text}


def _numbers(state: Reading) -> dict[str, int]:
    """The number of each selected passage among all passages used so far, from 1."""
    chosen = passages_of(state["selected"])
    known = list(dict.fromkeys([*used(state["segments"]), *chosen]))
    return {id_: known.index(id_) + 1 for id_ in chosen}


def read(reply: str, state: Reading, context: RpgContext) -> dict[str, Any]:
    """The segment, without the text before it where the reply repeats that, and without marks that cite nothing."""
    text = answer_text(reply).removeprefix(written(state["segments"])).strip()
    if context.marks:
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
    return {"segments": [*state["segments"], segment], **_planned(state)}


def skipped(state: Reading, _why: str) -> dict[str, Any]:
    """The plan without a segment."""
    return _planned(state)


def _planned(state: Reading) -> dict[str, Any]:
    """The plan is moved to the plans: nothing is planned for the next segment."""
    return {"plans": [*state["plans"], state["plan"]] if state["plan"] else state["plans"], "plan": ""}


def reserved_calls(state: Reading) -> int:
    """A call to combine the segments, once there is one."""
    return int(state["answer_style"] == "multihop" and bool(state["segments"]))


def starts(state: Reading) -> Said:
    """The topic of the segment."""
    if not state["plan"]:
        return Said("Writing the answer.")
    return Said(f"Writing on {quoted(state['plan'])}.", {"topic": state["plan"]})


def describe(state: Reading, update: Mapping[str, Any]) -> Said:
    """The topic that was written on."""
    what = f"on {quoted(state['plan'])}" if state["plan"] else "the answer"
    beside = "" if state["selected"] else ", without evidence"
    return Said(
        f"Wrote {what}{beside}.",
        {"segments": len(update["segments"]), "sentences": len(state["selected"])},
    )


def publish(graph: str, state: Reading, update: Mapping[str, Any]) -> None:
    """Stream the segment, if one was written; the graph itself streams those of an outline."""
    if "segments" in update and not state.get("topics"):
        publish_segment(graph, update["segments"][-1])


answer = model_node(
    "answer",
    ask,
    read,
    fallback=skipped,
    truncate_key="selected",
    reserve_calls=reserved_calls,
    description="Write a segment of the answer from the selected sentences.",
    starts=starts,
    describe=describe,
    publish=publish,
)
