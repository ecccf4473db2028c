"""Apply the changes that a check asks for, without a model."""

from typing import Any

from langgraph.types import Overwrite

from stepcraft.nodes.retrieve import open_queries
from stepcraft.nodes.split import as_parts
from stepcraft.nodes.state import Revision, passages_of
from stepcraft.text.changes import Change, apply_changes
from stepcraft.text.lists import numbered


def edit_text(state: Any) -> dict[str, Any]:
    """Apply the changes to the parts of a text."""
    texts, update = _edited(state, between="\n\n")
    return {**update, "answer": "".join(texts).strip()}


def edit_steps(state: Any) -> dict[str, Any]:
    """Apply the changes to steps; a step whose words are all removed is left out."""
    texts, update = _edited(state)
    return {**update, "steps": texts, "answer": numbered(texts), "reason": ""}


def _edited(state: Any, between: str = "") -> tuple[list[str], dict[str, Any]]:
    before = [part["text"] for part in state["parts"]]
    texts, lost = apply_changes(before, state["changes"], between)
    texts_left = [text for text in texts if text.strip()] or before
    old = {part["text"]: part for part in state["parts"]}
    fresh = as_parts(texts_left, model_queries=state["model_queries"])
    revisions = [
        *state["revisions"],
        *(
            _revision(state, before, number)
            for number in sorted({each["part"] for each in state["changes"]})
        ),
    ]
    warnings = [
        f"edit: a change was left out, because its old words are gone: {each['old']:.80}"
        for each in lost
    ]
    return texts_left, {
        "parts": [old.get(part["text"], part) for part in fresh],
        "changes": Overwrite([]),
        "revisions": [each for each in revisions if each["before"] != each["after"]],
        "rounds": state["rounds"] + 1,
        "warnings": warnings,
    }


def _revision(state: Any, before: list[str], number: int) -> Revision:
    """Return what the changes of one part made of it."""
    changes: list[Change] = [each for each in state["changes"] if each["part"] == number]
    if not 0 < number <= len(before):
        return Revision(round=0, part=number, before="", after="", evidence=[])
    part = state["parts"][number - 1]
    single: list[Change] = [{**each, "part": 1} for each in changes]
    after = "\n\n".join(apply_changes([part["text"]], single)[0])
    ids = [state["evidence"][each - 1]["id"] for each in passages_of(state, part["query"])]
    return Revision(
        round=state["rounds"] + 1, part=number, before=part["text"], after=after, evidence=ids
    )


def needs_another_round(state: Any, rounds: int) -> bool:
    """Tell whether parts have changed that are still to be looked up, and a round is left."""
    is_open = bool(open_queries(state)) or any(not part["query"] for part in state["parts"])
    return is_open and state["rounds"] < rounds
