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

_SUCCESS_FORMAT = """\
The first line is REACHED or NOT REACHED, and nothing else. The second line says in one sentence
what that rests on."""
_VERIFY_FORMAT = """\
If the goal is reached, one word and nothing else: REACHED
Otherwise "MISSING:" and, in one or two sentences, what the reader lacks."""

# The keyless model, which cannot follow steps, says UNDECIDED.
_VERDICT = re.compile(
    r"[\s*_`#>\"'-]*(NOT REACHED|REACHED|MISSING|UNDECIDED)\b[\s*_.:,;\uff1a\u2013\u2014-]*(.*)",
    re.IGNORECASE | re.DOTALL,
)


def _verdict(reply: str, yes: str, no: str) -> tuple[str, str]:
    """Return the verdict that a reply begins with, and what follows it.

    Raises:
        UnreadableReply: It begins with none of these.
    """
    match = _VERDICT.match(answer_text(reply))
    word, reason = (match[1].upper(), " ".join(match[2].split())) if match else ("", "")
    if word not in (yes, no, "UNDECIDED") or (word == "MISSING" and not reason):
        raise UnreadableReply(f"it began neither with {yes} nor with {no} and what that rests on.")
    return word, reason


def ask_for_success(state: State, settings: ExtractContext) -> list[BaseMessage]:
    """Show the transcript; of a long one the beginning and the end."""
    sections = [Section("text", "", shortened(state["text"], settings.max_characters))]
    return prompt(settings.success_instructions, _SUCCESS_FORMAT, "success", sections)


def read_success(reply: str, state: State, _settings: ExtractContext) -> Update:
    """Return the verdict; a run that failed is rejected with what the verdict rests on.

    Raises:
        UnreadableReply: There is no verdict in the first line.
    """
    word, why = _verdict(reply, "REACHED", "NOT REACHED")
    if word == "REACHED":
        return {"succeeded": True}
    reason = f"it did not reach its goal: {why}".rstrip(" :")
    rejected = Rejected(output=state["title"], reason=reason, sentence="")
    return {"succeeded": False, "rejected": [rejected]}


success = ModelNode(
    "success",
    ask_for_success,
    read_success,
    # A run that nobody says to have succeeded is left unread; the next build asks again.
    lambda _state, _reason: {"succeeded": False, "unread": 1},
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
    word, why = _verdict(reply, "REACHED", "MISSING")
    verified = {"REACHED": True, "MISSING": False}.get(word)
    missing = why if word == "MISSING" else ""
    return {"procedures": [{**state["drafted"], "verified": verified, "missing": missing}]}


verify = ModelNode(
    "verify",
    ask_for_gaps,
    read_gaps,
    lambda state, _reason: {"procedures": [state["drafted"]]},
    started="Asking whether the steps alone reach the goal.",
)
