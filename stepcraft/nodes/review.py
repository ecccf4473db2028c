"""Pause until a person approves, edits, or rejects the steps."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from langgraph.config import get_config
from typing_extensions import TypedDict

from stepcraft.access import caller
from stepcraft.contexts.aag import AagContext
from stepcraft.errors import BadInput
from stepcraft.evidence import Evidence
from stepcraft.llm.resources import Resources
from stepcraft.nodes.begin import checked_text
from stepcraft.nodes.check_names import check_names
from stepcraft.nodes.decision import Decision, ask_person
from stepcraft.nodes.edit import is_edited
from stepcraft.nodes.split import as_parts, left_out
from stepcraft.progress import counted, emit
from stepcraft.schema import described
from stepcraft.text.clean import one_line
from stepcraft.text.lists import numbered, read_steps

DecisionType: TypeAlias = Literal["approve", "edit", "reject"]
_SHOWN = 10
"""The maximum number of passages listed for the person, those for the goal first."""


@described
class Review(TypedDict):
    """A person's decision on the steps."""

    type: DecisionType
    """`approve` and `edit` make the steps final. After a `reject`, the steps are revised to
    address the reason and reviewed again.
    """
    steps: list[str]
    """The steps that were approved or rejected, or the person's own steps after an `edit`."""
    reason: str
    """The reason for a rejection, or "" otherwise."""
    by: str
    """The authenticated server user who decided, or "" elsewhere."""
    at: str
    """The time of the decision, as ISO 8601 in UTC."""


def review(state: Any, resources: Resources[AagContext]) -> dict[str, Any]:
    """Return a person's decision, with any edited steps.

    Raises:
        GraphInterrupt: The person has not answered yet.
    """
    steps: list[str] = state["steps"]
    update: dict[str, Any] = {}
    answer: str = state["answer"]
    if answer.strip() and answer != numbered(steps) and not is_edited(state):
        steps = read_steps(answer) or [answer]  # a person edited the answer in the state
        update["warnings"] = left_out("review", answer, steps)
    emit(resources.graph, "review", f"Waiting for a review of {counted(len(steps), 'step')}.")
    text = _description(state, steps)
    decision, reason, edited = ask_person("review", {"steps": steps}, text, _read)
    steps = edited or steps
    update |= {"steps": steps, "answer": numbered(steps)}
    if steps != [part["text"] for part in state["parts"]]:  # a person may also edit the state
        known = {part["text"]: part for part in state["parts"]}
        parts = as_parts(state, steps, by_statement=False)
        update |= {"parts": [known.get(each["text"], each) for each in parts], "pending": []}
        found = check_names({**state, **update}, resources)
        warnings = [*update.get("warnings", []), *found.get("warnings", [])]
        update |= {**found, "warnings": warnings}
    record = Review(
        type=decision,
        steps=steps,
        reason=reason,
        by=caller() or "",
        at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    if reason:
        update["pending"] = [*range(1, len(steps) + 1)]
    return {**update, "reviews": [*state["reviews"], record], "reason": reason}


def _description(state: Any, steps: Sequence[str]) -> str:
    """Return what the person reads: the goal, the steps, the evidence, and what to look out for."""
    unverified = [each for each in state["names"] if not each["verified"]]
    absent = [each["name"] for each in unverified if not each.get("unsearched")]
    left = [each["name"] for each in unverified if each.get("unsearched")]
    about_names = [
        f"These names stand in no procedure: {', '.join(absent)}." if absent else "",
        f"These names were not looked up: {', '.join(left)}." if left else "",
    ]
    notes = " ".join(filter(None, about_names))
    if state["reviews"] and state["reviews"][-1]["steps"] == steps:
        notes = f"These steps have not changed since they were rejected. {notes}".strip()
    lines = evidence_lines(state["evidence"])
    more = [f"and {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    listed = "\n".join(["Evidence:", *lines[:_SHOWN], *more]) if lines else ""
    return "\n\n".join(filter(None, [state["task"], numbered(steps), listed, notes]))


def evidence_lines(evidence: Sequence[Evidence]) -> list[str]:
    """Return a line for each passage, with its number, score, title and source."""
    lines: list[str] = []
    for number, passage in enumerate(evidence, 1):
        title = one_line(passage["title"] or passage["text"][:80])
        source = f"  ({one_line(passage['source'])})" if passage["source"] else ""
        lines.append(f"[{number}] {passage['score']:.2f}  {title}{source}")
    return lines


def _read(decision: Decision) -> tuple[DecisionType, str, list[str]]:
    """Return the type of a decision, the reason for a rejection, and any edited steps.

    Raises:
        BadInput: A rejection has no reason, or the steps are not a list of strings.
    """
    if decision["type"] == "approve":
        return "approve", "", []
    if decision["type"] == "reject":
        if not (reason := decision.get("message", "").strip()):
            raise BadInput("a rejection needs a message that says what is wrong")
        return "reject", reason, []
    steps = decision["edited_action"]["args"].get("steps")
    if not (isinstance(steps, list) and steps):
        raise BadInput('an edit needs all steps as they are to be: "args": {"steps": ["…", "…"]}')
    texts = [checked_text(f"step {number}", step) for number, step in enumerate(steps, 1)]
    if "" in texts:
        raise BadInput(
            f"step {texts.index('') + 1} of the edit is empty; write it, or leave it out"
        )
    return "edit", "", texts


def check_can_pause(what: str) -> None:
    """Reject a run that would pause but could not be resumed.

    Args:
        what: What pauses the run.

    Raises:
        BadInput: The run has no checkpointer.
    """
    if get_config().get("configurable", {}).get("__pregel_checkpointer", ...) is None:
        raise BadInput(
            f"{what} pause the run for a person, which requires a checkpointer: build the graph, "
            "or its parent, with checkpointer=InMemorySaver() or another, or run it on a thread of "
            "a LangGraph server"
        )
