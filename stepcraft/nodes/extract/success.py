"""Say whether the agent of a transcript reached its goal, so that only runs that did become procedures."""

import re
from typing import Any, NotRequired

from langchain_core.messages import BaseMessage

from stepcraft.contexts.extract import ExtractContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import prompt
from stepcraft.nodes.extract.drafted import Rejected
from stepcraft.progress import Said
from stepcraft.text.sections import FAILED, REACHED, section

_FORMAT = f"""\
The first line is {REACHED} or {FAILED}, and nothing else. The second line says in one sentence what that rests on."""

_VERDICT = re.compile(
    rf"[\s*_`#>\"'-]*(?P<verdict>{FAILED}|{REACHED})\b[\s*_`\"'.:,;\u2013\u2014-]*", re.IGNORECASE
)


class Reading(Budgeted):
    """The input of this node."""

    title: str
    text: str
    kind: NotRequired[str]
    succeeded: NotRequired[bool | None]
    outcome: NotRequired[str]


def ask(state: Reading, context: ExtractContext) -> list[BaseMessage]:
    """Show the transcript; of one that is longer than a part the beginning and the end, where goal and outcome stand."""
    text, limit = state["text"], context.max_characters
    if len(text) > limit:
        start, end = limit // 3, limit * 2 // 3
        text = f"{text[:start]}\n\n[… {len(text) - start - end:,} characters are left out …]\n\n{text[-end:]}"
    return prompt(context.success_instructions, _FORMAT, "success", [section("text", text)])


def read(reply: str, state: Reading, _context: ExtractContext) -> dict[str, Any]:
    """The verdict; a run that did not reach its goal is rejected with the sentence that the verdict rests on."""
    found = _VERDICT.match(reply)
    if not found:
        raise UnreadableReply(f"its first line was neither {REACHED} nor {FAILED}.")
    why = " ".join(reply[found.end() :].split())
    return (
        _reached()
        if found["verdict"].upper() == REACHED
        else _rejected(state, f"it did not reach its goal: {why}")
    )


def known(state: Reading, _context: ExtractContext) -> dict[str, Any] | None:
    """No model is asked about a document, or where feedback or an error has told how a run ended."""
    if state.get("kind") != "transcript" or state.get("succeeded"):
        return _reached()
    return None if state.get("succeeded") is None else _rejected(state, state.get("outcome") or "it failed")


def no_verdict(_state: Reading, _why: str) -> dict[str, Any]:
    """A run of which nobody says that it succeeded is not read; it may be asked of again."""
    return {"succeeded": False, "unread": 1}


def _reached() -> dict[str, Any]:
    return {"succeeded": True}


def _rejected(state: Reading, reason: str) -> dict[str, Any]:
    rejected = Rejected(output=state["title"], reason=reason.rstrip(" :"), sentence="")
    return {"succeeded": False, "rejected": [rejected]}


def describe(_state: Reading, update: dict[str, Any]) -> Said:
    """Whether the run succeeded."""
    if update["succeeded"]:
        return Said("The run reached its goal.")
    why = [one["reason"] for one in update.get("rejected", [])] or [
        "nothing says whether it reached its goal"
    ]
    return Said(f"The run is left out: {why[0].rstrip('.')}.")


success = model_node(
    "success",
    ask,
    read,
    fallback=no_verdict,
    skip_model=known,
    description="Of a transcript, ask whether the agent reached its goal.",
    starts=lambda _state: Said("Asking whether the run reached its goal."),
    describe=describe,
)
