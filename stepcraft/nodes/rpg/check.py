"""Check whether each sentence of the answer is borne out by the evidence that it cites."""

import re
from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.rpg import RpgContext
from stepcraft.errors import UnreadableReply
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import prompt, titled
from stepcraft.llm.reply import text_of, unwrapped
from stepcraft.progress import Said, counted
from stepcraft.segments import Segment, TracedSentence, used
from stepcraft.text.citations import marks, renumbered, with_marks
from stepcraft.text.clean import stems
from stepcraft.text.sections import section

_FLAG = """\
The numbers of the sentences that their evidence does not bear out, one a line and nothing else.
Or exactly NONE if it bears out all of them."""
_MEND = """\
For each sentence that its evidence does not bear out one line: its number, a colon, and the sentence as the evidence
bears it out, in the same tone and with its marks; or its number and a minus sign (3-) where nothing of it is borne out.
Or exactly NONE if all are borne out."""
_LINE = re.compile(
    r"\W{0,4}(?:sentence )?(\d{1,3})\W{0,2}?\s*(?:([:.)]|[-\u2013\u2014\u2212])(?:\*\*|__)?\s*+(.*))?",
    re.IGNORECASE,
)
_NONE = re.compile(
    r"\W*(?:none\b(?![ \t]+\w)|all (?:are|sentences are) borne out\b)[^\d\n]*+(?<!:)(?:\n.*)?",
    re.IGNORECASE | re.DOTALL,
)
"""That there is none, and not which: "None of these is borne out: 1"."""


class Reading(Budgeted):
    """The input of this node."""

    question: str
    sentences: list[TracedSentence]
    segments: list[Segment]
    evidence: list[Evidence]


def ask(state: Reading, context: RpgContext) -> list[BaseMessage]:
    """Show the passages that are cited, and the sentences that cite them."""
    ids = used(state["segments"])
    cited = {id_ for one in state["sentences"] for id_ in one["evidence"]}
    passages = {passage["id"]: passage for passage in state["evidence"]}
    shown = [
        section("evidence", titled(passages[id_]), id=str(number))
        for number, id_ in enumerate(ids, 1)
        if id_ in cited and id_ in passages
    ]
    lines: list[str] = []
    for place, one in enumerate(state["sentences"], 1):
        if one["evidence"]:
            numbers = [ids.index(id_) + 1 for id_ in one["evidence"]]
            marked = with_marks(renumbered(one["text"], {}), numbers)
            lines.append(f"{place}. {' '.join(marked.split())}")
    form = _MEND if context.check == "mend" else _FLAG
    return prompt(context.check_instructions, form, "check", [*shown, section("answer", "\n".join(lines))])


def read(reply: str, state: Reading, context: RpgContext) -> dict[str, Any]:
    """The sentences that are not borne out, by their place, with what is written instead."""
    text = unwrapped(text_of(reply)).strip()
    if _NONE.fullmatch(text):
        return {"verdicts": {}}
    verdicts: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        found = _LINE.fullmatch(line)
        place = int(found[1]) if found else 0
        if found and 0 < place <= len(state["sentences"]) and state["sentences"][place - 1]["evidence"]:
            verdicts[str(place)] = ""
            if context.check == "mend":
                verdicts[str(place)] = _instead(found, state["sentences"][place - 1]["text"])
    if not verdicts:
        raise UnreadableReply("there was neither the number of a sentence in it nor NONE.")
    return {"verdicts": verdicts}


def _instead(found: re.Match[str], sentence: str) -> str:
    """What is written instead of a sentence; behind a minus sign it has marks and words of the sentence, unlike a reason."""
    said = (found[3] or "").strip()
    if found[2] in {":", ".", ")"}:
        return said if any(map(str.isalnum, said)) else ""
    words = stems(renumbered(said, {}))
    return said if marks(said) and 2 * len(words & stems(sentence)) >= len(words) else ""


def skipped(_state: Reading, _why: str) -> dict[str, Any]:
    """The answer as it is."""
    return {"verdicts": {}}


def starts(state: Reading) -> Said:
    """How many sentences are checked."""
    cited = sum(bool(one["evidence"]) for one in state["sentences"])
    return Said(f"Checking {counted(cited, 'sentence')} against what they cite.", {"sentences": cited})


def describe(_state: Reading, update: dict[str, Any]) -> Said:
    """How many sentences are not borne out."""
    objected = len(update["verdicts"])
    if not objected:
        return Said("Every sentence is borne out by what it cites.", {"unsupported": 0})
    verb = "is" if objected == 1 else "are"
    return Said(
        f"{counted(objected, 'sentence')} {verb} not borne out by what is cited.", {"unsupported": objected}
    )


check = model_node(
    "check",
    ask,
    read,
    fallback=skipped,
    description="Check whether each sentence is borne out by what it cites.",
    starts=starts,
    describe=describe,
)
