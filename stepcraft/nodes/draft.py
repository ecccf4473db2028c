"""Draft the text or the steps from the results of a first search (RAT §3.2, AAG §3.2)."""

from collections.abc import Iterable
from functools import partial
from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.aag import AagContext
from stepcraft.contexts.base import LENGTHS, Settings
from stepcraft.errors import NoAnswer, UnreadableReply
from stepcraft.llm.limits import TOO_LATE
from stepcraft.llm.node import ModelNode
from stepcraft.llm.prompt import asked, passages, prompt
from stepcraft.llm.reply import answer_text
from stepcraft.progress import counted
from stepcraft.text.citations import labels, named_passages, without_marks
from stepcraft.text.clean import is_declined
from stepcraft.text.lists import numbered, read_steps
from stepcraft.text.sections import Section

STEPS_FORMAT = """\
A numbered list of the steps and nothing else: no title, no introduction, no closing remark, no
headings.
Each step begins on a new line with its number and a full stop: "1. **Title**". What belongs to it
stands under it, indented by three spaces: its actions as a list of their own ("1. ...", from 1 in
each step), tables, and code of more than one line between ``` fences."""


def shown_passages(state: Any) -> list[int]:
    """Return the numbers of the passages that a prompt shows.

    Some may be left out so that the prompt fits the model's input.
    """
    left_out = set(state.get("left_out", ()))
    return [number for number in range(1, len(state["evidence"]) + 1) if number not in left_out]


def found_sections(state: Any, last: int | None = None) -> list[Section]:
    """Return the prompt sections for passages, each below the search that first found it.

    Args:
        state: The state, with the findings of each query.
        last: The number of the last passage to show, or None for all of `shown_passages`.
    """
    left = {number for number in shown_passages(state) if last is None or number <= last}
    sections: list[Section] = []
    for finding in state["findings"]:
        if new := [number for number in finding["passages"] if number in left]:
            left -= {*new}
            sections += [Section("search", "", finding["query"]), *passages(state["evidence"], new)]
    return [*sections, *passages(state["evidence"], sorted(left))]


def material(state: Any) -> str:
    """Return the question, the resources and the passages as one text."""
    passages = (f"{each['title']}\n{each['text']}" for each in state["evidence"])
    return "\n".join([state["task"], state.get("task_resources", ""), *passages])


def written(text: str, state: Any) -> dict[str, Any]:
    """Return the update for a draft: the answer so far, and how many passages its writer saw.

    A draft that names passages outside of marks gets a warning, unless it is a short answer.

    Raises:
        UnreadableReply: It is empty.
    """
    if not text.strip():
        raise UnreadableReply("there was no text in it.")
    evidence = state["evidence"]
    seen = 0 if state.get("left_out") else len(evidence)
    named = named_passages(text, len(evidence), unless_in=material(state))
    warning = f"the draft names passages by numbers that only the prompt has: {', '.join(named)}"
    return {
        "first_draft": text,
        "answer": text,
        "passages_seen": seen,
        "warnings": [warning] if named and state.get("form") != "short" else [],
    }


def ask(state: Any, settings: Any, *, form: str, kind: str) -> list[BaseMessage]:
    """Show the question, or the goal and the resources, and the results of the first search.

    Args:
        state: The state of the run.
        settings: Its settings.
        form: The reply format.
        kind: The name of this format.
    """
    sections = [*asked(state["task"], state.get("task_resources", "")), *found_sections(state)]
    instructions = f"{settings.draft_instructions}\n{LENGTHS[settings.length]}"
    return prompt(instructions, form, kind, sections, material_first=True)


def read_text(reply: str, state: Any, _settings: Settings) -> dict[str, Any]:
    """Return the draft without passage ids."""
    [text] = _without_ids([answer_text(reply)], state)
    return {**written(text, state), "own_draft": text}


def read_steps_of(reply: str, state: Any, _settings: Settings) -> dict[str, Any]:
    """Return the steps in the draft, without passage ids.

    Raises:
        UnreadableReply: There is no list in the reply, or it declines the task.
    """
    if is_declined(reply):
        raise UnreadableReply("it declines the task instead of listing steps.")
    steps = [*filter(None, _without_ids(read_steps(reply), state))]
    if not steps:
        raise UnreadableReply("there was no numbered list of steps in it.")
    return {**written(numbered(steps), state), "steps": steps}


def _without_ids(texts: Iterable[str], state: Any) -> list[str]:
    """Return texts without the ids of passages, except for labels from the material."""
    last, known = len(state["evidence"]), labels(material(state), ids=True)
    return [without_marks(each, last, plain=False, unless_in=known) for each in texts]


def _read_aag(reply: str, state: Any, settings: AagContext) -> dict[str, Any]:
    """Return the steps as `read_steps_of` does, with a warning if nothing was found."""
    update = read_steps_of(reply, state, settings)
    update["own_draft"] = update["first_draft"]
    if state["evidence"]:
        return update
    tags = ", ".join(f"{name}={value}" for name, value in settings.where.items())
    subject = f"no procedure with the tags {tags}" if tags else "nothing"
    return {**update, "warnings": [f"{subject} was found, so the steps rest on no procedure"]}


def no_draft(_state: Any, reason: str) -> dict[str, Any]:
    """Refuse to continue, because there is nothing to check.

    Raises:
        NoAnswer: Always.
    """
    raise NoAnswer(f"nothing was written: {reason}")


def end_if_late(reason: str) -> None:
    """End a run whose deadline passes before there is a draft.

    The step that was too late is then repeated if the run is resumed.

    Raises:
        NoAnswer: The step failed because the deadline has passed.
    """
    if reason.startswith(TOO_LATE):
        raise NoAnswer(f"nothing was written: {reason}")


draft = ModelNode(
    "draft",
    partial(ask, form="The answer and nothing else.", kind="draft"),
    read_text,
    no_draft,
    started="Drafting the answer from {passages}.",
    finished=lambda _state, update: (
        f"Wrote a draft of {len(update['first_draft'].split()):,} words."
    ),
)
draft_steps = ModelNode(
    "draft",
    partial(ask, form=STEPS_FORMAT, kind="steps"),
    _read_aag,
    no_draft,
    started="Drafting the steps from {passages}.",
    finished=lambda _state, update: f"Wrote {counted(len(update['steps']), 'step')}.",
)
