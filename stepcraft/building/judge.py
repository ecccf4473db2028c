"""Ask whether an agent reached its goal, and whether a reader would with the steps alone."""

import re

from langchain_core.messages import BaseMessage

from stepcraft.building.drafted import Drafted, Rejected
from stepcraft.building.settings import ExtractContext
from stepcraft.building.threads import shortened
from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import ModelNode, State, Update
from stepcraft.llm.prompt import prompt
from stepcraft.llm.reply import answer_text
from stepcraft.text.lists import numbered
from stepcraft.text.sections import Section

REACHED = "REACHED"
NOT_REACHED = "NOT REACHED"
UNDECIDED = "UNDECIDED"
"""The verdict of the keyless model, which cannot follow steps."""

_SUCCESS_FORMAT = f"""\
The first line is {REACHED} or {NOT_REACHED}, and nothing else. The second line says in one sentence
what that rests on."""
_VERIFY_FORMAT = f"""\
If the goal is reached, one word and nothing else: {REACHED}
Otherwise "MISSING:" and, in one or two sentences, what the reader lacks."""

_VERDICT = re.compile(
    rf"[\s*_`#>\"'-]*({NOT_REACHED}|{REACHED})\b[\s*_`\"'.:,;\u2013\u2014-]*", re.IGNORECASE
)
_MISSING = re.compile(r"[\s*_#]*MISSING[\s*_]*[:\uff1a-]?[\s*_]*(.*)", re.IGNORECASE | re.DOTALL)


def ask_for_success(state: State, settings: ExtractContext) -> list[BaseMessage]:
    """Show the transcript; of a long one the beginning and the end."""
    sections = [Section("text", "", shortened(state["text"], settings.max_characters))]
    return prompt(settings.success_instructions, _SUCCESS_FORMAT, "success", sections)


def read_success(reply: str, state: State, _settings: ExtractContext) -> Update:
    """Return the verdict; a run that failed is rejected with what the verdict rests on.

    Raises:
        UnreadableReply: There is no verdict in the first line.
    """
    verdict = _VERDICT.match(reply)
    if not verdict:
        raise UnreadableReply(f"its first line was neither {REACHED} nor {NOT_REACHED}.")
    if verdict[1].upper() == REACHED:
        return {"succeeded": True}
    reason = f"it did not reach its goal: {' '.join(reply[verdict.end() :].split())}".rstrip(" :")
    rejected = Rejected(output=state["title"], reason=reason, sentence="")
    return {"succeeded": False, "rejected": [rejected]}


def no_success(_state: State, _reason: str) -> Update:
    """Leave a run unread that nobody says to have succeeded; the next build asks again."""
    return {"succeeded": False, "unread": 1}


success = ModelNode(
    "success",
    ask_for_success,
    read_success,
    no_success,
    started="Asking whether the run reached its goal.",
)


def ask_for_gaps(state: State, settings: ExtractContext) -> list[BaseMessage]:
    """Show the output as the goal, the input as the resources, and the steps; not the document."""
    procedure: Drafted = state["drafted"]
    sections = [
        Section("goal", "", procedure["output"]),
        Section("resources", "", procedure["input"]),
        Section("steps", "", numbered(procedure["steps"])),
    ]
    return prompt(settings.verify_instructions, _VERIFY_FORMAT, "verdict", sections)


def read_gaps(reply: str, state: State, _settings: ExtractContext) -> Update:
    """Return the procedure with the verdict.

    Raises:
        UnreadableReply: There is none.
    """
    text = answer_text(reply)
    if match := _MISSING.match(text):
        missing = " ".join(match[1].split())
        if not missing:
            raise UnreadableReply('there was nothing behind "MISSING:".')
        return _judged(state, verified=False, missing=missing)
    words = text.strip("*_`\"'. \n").upper().split()[:1]
    if words not in ([REACHED], [UNDECIDED]):
        raise UnreadableReply(f'it began neither with {REACHED} nor with "MISSING:".')
    return _judged(state, verified=True if words == [REACHED] else None)


def unverified(state: State, _reason: str = "") -> Update:
    """Return the procedure without a verdict."""
    return _judged(state, verified=None)


def _judged(state: State, *, verified: bool | None, missing: str = "") -> Update:
    return {"procedures": [{**state["drafted"], "verified": verified, "missing": missing}]}


verify = ModelNode(
    "verify",
    ask_for_gaps,
    read_gaps,
    unverified,
    started="Asking whether the steps alone reach the goal.",
)
