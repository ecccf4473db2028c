"""Find the procedure that made a run fail and rewrite it (Mem^p's update, arXiv 2508.06433).

A single model call reads the procedures that the agent was shown and the record of its run.
"""

import re
from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.building.compare import graph_of
from stepcraft.building.documents import Document
from stepcraft.building.grounding import Grounds, without_stand_ins
from stepcraft.building.replies import (
    CUT_OFF,
    PROCEDURE_FORMAT,
    as_text,
    rewritten,
    sections_of,
    unfit,
    unknown,
)
from stepcraft.building.settings import REPAIR_INSTRUCTIONS, RepairContext
from stepcraft.building.threads import shortened
from stepcraft.errors import BadInput, UnreadableReply
from stepcraft.llm.node import ModelNode, State, Update
from stepcraft.llm.prompt import prompt
from stepcraft.llm.resources import Resources
from stepcraft.llm.usage import RunState
from stepcraft.memory.history import content_of, with_text
from stepcraft.memory.procedure import Content, Procedure
from stepcraft.models.resolve import ChatModel
from stepcraft.text.sections import Section

_FORMAT = f"""\
A line CAUSE: with one sentence on what made the run fail. Then a line PROCEDURE: with the number of
the one that is to blame, or the word NONE. With a number {PROCEDURE_FORMAT}"""

_MOST_CHARACTERS = 60_000
"""The maximum length of the record that is read; the middle of a longer one is left out."""


class RepairState(RunState):
    """The state of a repair."""

    followed: list[Content]
    """The procedures that the agent was shown."""
    text: str
    """The record of the run."""
    blamed: int
    """The number of the procedure to blame, starting at 1, or 0 for none."""
    cause: str
    """The cause of the failure."""
    repaired: Content | None
    """The new content of the procedure to blame, or None."""


def ask_for_repair(state: State, _settings: RepairContext) -> list[BaseMessage]:
    """Return a prompt with the procedures and the record, or a long record's beginning and end."""
    procedures = sections_of(state["followed"])
    record = Section("text", "", shortened(state["text"], _MOST_CHARACTERS))
    return prompt(REPAIR_INSTRUCTIONS, _FORMAT, "repair", [*procedures, record])


def read_repair(reply: str, state: State, _settings: RepairContext) -> Update:
    """Return the cause of the failure, the procedure to blame and its new version.

    Raises:
        UnreadableReply: The reply names neither a procedure nor NONE, or the new version was cut
            off, is incomplete or contains names that neither the procedure nor the record has.
    """
    texts, repaired = rewritten(reply)
    number = texts["procedure"].strip(" .#")
    update = no_repair(state, texts["cause"][:300].rstrip(" ."))
    if number.upper() == "NONE":
        return update
    is_number = re.fullmatch(r"\d{1,4}", number)
    if not is_number or not 1 <= int(number) <= len(state["followed"]):
        raise UnreadableReply(
            "there was no line PROCEDURE: with the number of a procedure or the word NONE."
        )
    if state.get("cut_off"):
        raise UnreadableReply(CUT_OFF)
    blamed = state["followed"][int(number) - 1]
    problem = unfit(repaired) if repaired else "is not there."
    if repaired and not problem:
        grounds = Grounds(f"{as_text(blamed)}\n\n{state['text']}")
        if names := grounds.missing_names([*map(without_stand_ins, repaired["steps"])]):
            problem = unknown(names, "which neither the procedure nor the record has")
    if problem:
        raise UnreadableReply(f"the procedure {problem}", update=update)
    return {**update, "blamed": int(number), "repaired": repaired}


def no_repair(_state: State, cause: str) -> Update:
    """Return an update that repairs nothing."""
    return {"blamed": 0, "cause": cause, "repaired": None}


repair = ModelNode(
    "repair", ask_for_repair, read_repair, no_repair, started="Looking for what made the run fail."
)


def repaired_version(
    procedure: Procedure,
    run: Document,
    *,
    model: ChatModel | str | None = None,
) -> tuple[Procedure | None, str]:
    """Return a new version of a procedure that a failed run followed, and the cause of the failure.

    This makes one call. The version is None if the procedure is not to blame or the model could not
    tell. Nothing is stored: pass the new version to `ProcedureMemory.update`, with the old one as
    `made_from`.

    Args:
        procedure: The procedure that the run followed.
        run: The record of the run, as read by `list_documents(["threads:runs.jsonl"])`.
        model: The model, or its name; None means the model named by STEPCRAFT_MODEL.

    Raises:
        BadInput: The run reached its goal.
        ModelFailure: The model refuses the call.
    """
    if run.succeeded:
        raise BadInput(f"{run.source} reached its goal, so that nothing is to be repaired")
    resources = Resources.of("repair", RepairContext, {"model": model or ""})
    state: Any = {"followed": [content_of(procedure)], "text": run.text}
    result = graph_of(repair, RepairState, resources).invoke(state)
    repaired = result["repaired"]
    return repaired and with_text(procedure, repaired), result["cause"]
