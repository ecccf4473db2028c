"""Make the changes requested by a check, without a model."""

from typing import Any

from stepcraft.contexts.aag import AagContext
from stepcraft.contexts.base import CheckSettings
from stepcraft.evidence import Evidence
from stepcraft.llm.calls import Inline
from stepcraft.llm.node import published
from stepcraft.llm.resources import Resources
from stepcraft.nodes.draft import material
from stepcraft.nodes.split import as_parts
from stepcraft.nodes.state import Part, Revision, passages_of
from stepcraft.text.changes import apply_changes
from stepcraft.text.citations import labels, marks
from stepcraft.text.lists import numbered, read_steps

_CHANGES_LEFT_OUT = "edit: the steps were edited in the state, so the critic's changes are left out"


@Inline
def edit_text(state: Any) -> dict[str, Any]:
    """Apply the changes to the text, leaving everything else exactly as it was."""
    update = _edited(state, of_steps=False)
    return {**update, "answer": "".join(part["text"] for part in update["parts"])}


@Inline
def edit_steps(state: Any, resources: Resources[AagContext]) -> dict[str, Any]:
    """Apply the changes to the steps, or take over steps that a person has edited in the state."""
    if is_edited(state):
        steps = state["steps"]
        parts = as_parts(state, steps, by_statement=False)
        warnings = [_CHANGES_LEFT_OUT] if state["changes"] else []
        if state["rounds"] + 1 >= resources.settings(state).rounds:
            warnings.append("edit: the edited steps are unchecked")
        return {
            "parts": parts,
            "pending": [*range(1, len(parts) + 1)],
            "changes": [],
            "rounds": state["rounds"] + 1,
            "answer": numbered(steps),
            "reason": "",
            "warnings": warnings,
        }
    update = _edited(state, of_steps=True)
    steps = [part["text"] for part in update["parts"]]
    return {**update, "steps": steps, "answer": numbered(steps), "reason": ""}


def is_edited(state: Any) -> bool:
    """Return whether the steps in the state no longer match the parts."""
    return bool(state["steps"] != [part["text"] for part in state["parts"]])


@Inline
def publish_steps(state: Any, resources: Resources[AagContext]) -> dict[str, Any]:
    """Publish the steps and the answer, if either was edited in the state, in their new form."""
    answer, steps = state["answer"], state["steps"]
    is_same = answer == numbered([part["text"] for part in state["parts"]])
    if is_same:
        answer = numbered(steps)
    elif answer.strip() and not is_edited(state):
        steps = read_steps(answer) or [answer]
    return published(resources.graph, state, {"answer": answer, "steps": steps})


def _edited(state: Any, *, of_steps: bool) -> dict[str, Any]:
    old: list[Part] = state["parts"]
    between = "\n\n" if of_steps else ""
    edited = apply_changes([part["text"] for part in old], state["changes"], between)
    parts: list[Part] = []
    pending: list[int] = []
    revisions: list[Revision] = list(state["revisions"])
    place = 1
    for text, origin in zip(edited.parts, edited.origins, strict=True):
        before = old[origin - 1]["text"] if origin else ""
        place = origin or place  # an inserted part belongs to the part that it follows
        if text == before:  # an insertion without any text is dropped
            if origin:
                parts.append(old[origin - 1])
            continue
        revisions.append(
            Revision(
                round=state["rounds"] + 1,
                part=place,
                before=before,
                after=text,
                evidence=_deciding(state, place, before, text),
            )
        )
        if text.strip() or not of_steps:  # a text keeps removed parts, as empty ones
            parts += as_parts(state, [text], by_statement=not of_steps)
        if text.strip():
            pending.append(len(parts))
    return {
        "parts": parts,
        "pending": pending,
        "changes": [],
        "revisions": revisions,
        "rounds": state["rounds"] + 1,
        "warnings": [
            f"edit: a change was left out, because {reason}: {change['old'] or change['new']:.80}"
            for change, reason in edited.refused
        ],
    }


def _deciding(state: Any, part: int, before: str, after: str) -> list[str]:
    """Return the ids of passages that contradict a part, or that only its new text cites.

    If there are none, these are the ids of the passages found for the part.
    """
    evidence: list[Evidence] = state["evidence"]
    ids = [
        id_
        for check in state["checks"]
        if check["part"] == part
        and check["verdict"] == "contradicted"
        and check["round"] == state["rounds"] + 1
        for id_ in check["evidence"]
    ]
    known = f"{labels(material(state))}\n{labels(state['first_draft'])}"
    cited, earlier = (marks(each, plain=False, unless_in=known) for each in (after, before))
    new = [each for each in cited if each not in earlier and each <= len(evidence)]
    numbers = new or passages_of(state, state["parts"][part - 1]["queries"])
    return list(dict.fromkeys(ids or (evidence[each - 1]["id"] for each in numbers)))


@Inline
def after_edit(state: Any, resources: Resources[CheckSettings]) -> str:
    """Check changed parts again if any rounds remain."""
    has_round = state["rounds"] < resources.settings(state).rounds
    return "changed" if state["pending"] and has_round else "checked"
