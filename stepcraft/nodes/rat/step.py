"""One step of RAT around its model calls: what is looked up, what was found, and what became of the thought."""

from typing import Any

from typing_extensions import TypedDict

from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted, Usage


class Result(TypedDict):
    """What became of one thought."""

    number: int
    """The thought's place in the draft, from 0."""
    query: str
    evidence: list[Evidence]
    before: str
    after: str
    """The same as `before` where nothing was changed."""
    skipped: str
    """Why the thought was not checked, "" if it was."""
    searched: bool
    """Whether a search was made."""
    warnings: list[str]
    usage: Usage


class Step(Budgeted):
    """All that the nodes of one step hand to each other."""

    number: int
    question: str
    text: str
    """The text so far, the thought at its end."""
    thought: str
    rest: str
    """The thoughts still to come, "" where they are not shown."""
    query: str
    evidence: list[Evidence]
    before: str
    """What the revision replaces: the text, or the thought alone."""
    after: str
    skipped: str
    revises: bool
    """Whether the text is revised with what is found, or that is only kept."""
    results: list[Result]


def to_look_up(state: Step) -> list[str]:
    """The query, unless there is none or the evidence is there already."""
    return [] if state["skipped"] or state["evidence"] else [state["query"]]


def keep_found(state: Step, found: list[list[Evidence]], failed: list[str]) -> dict[str, Any]:
    """What was found; without anything the thought is not checked."""
    if not found:
        return {}
    nothing = f"nothing was found for {state['query']:.200}" if not found[0] else ""
    return {"evidence": found[0], "skipped": failed[0] if failed else nothing}


def note(state: Step) -> dict[str, Any]:
    """What became of the thought."""
    result = Result(
        number=state["number"],
        query=state["query"],
        evidence=state["evidence"],
        before=state["before"],
        after=state["after"] if not state["skipped"] else state["before"],
        skipped=state["skipped"],
        searched=bool(state["query"]),
        warnings=state["warnings"],
        usage=state["usage"],
    )
    return {"results": [result]}
