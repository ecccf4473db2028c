"""Check all parts of the draft against their passages in one call that writes the changes alone.

All parts and all evidence stand in one prompt, so that a change may follow from any passage, and a
change of one part may ask for another (RAT §3.3, its causality). Related: RARR (Gao et al., arXiv
2210.08726) and Chain-of-Verification (Dhuliawala et al., arXiv 2309.11495).
"""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.types import Send

from stepcraft.contexts.aag import AagContext
from stepcraft.contexts.base import UNCHANGED
from stepcraft.contexts.rpg import MARKS, RpgContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import ModelNode
from stepcraft.llm.prompt import asked, passages, prompt
from stepcraft.llm.resources import Resources
from stepcraft.models.resolve import resolve_model
from stepcraft.nodes.state import passages_of
from stepcraft.progress import counted, quoted
from stepcraft.text.changes import misplaced, read_changes
from stepcraft.text.citations import marks
from stepcraft.text.clean import is_unchanged, tokens
from stepcraft.text.sections import Section

_FORMAT = f"""\
Exactly {UNCHANGED}, or one block for each change and nothing else.
To put other words in place of some:
PART <number>
OLD: <the words of that part that are wrong, copied exactly, as few as possible>
NEW: <what stands in their place>
To add something at the end of a part:
PART <number>
ADD: <the sentences or lines>"""
_STEP_FORMAT = f"""\
{_FORMAT}
To add a step behind one:
PART <number>
AFTER: <the step, without a number>"""
_OVERHEAD = 2_000
"""Tokens that are left for the instructions and the reply where a model's input is limited."""


def ask_for_changes(state: Any, settings: Any) -> list[BaseMessage]:
    """Show the question and the parts, each with the passages found for it or cited by it."""
    instructions = settings.revise_instructions
    if isinstance(settings, RpgContext):
        instructions = f"{instructions}\n{MARKS} A missing mark alone is no reason for a change."
    return prompt(instructions, _FORMAT, "changes", [*asked(state["question"]), *_material(state)])


def ask_critic(state: Any, settings: AagContext) -> list[BaseMessage]:
    """Show the goal, the steps with their passages, and why a person rejected them, if one did."""
    sections = [*asked(state["question"], state["resources"]), *_material(state)]
    instructions = settings.critic_instructions
    if state["reason"]:
        instructions += (
            "\nA person has rejected the steps; ask for the changes that mend what they say."
        )
        sections.append(Section("reason", "", state["reason"]))
    return prompt(instructions, _STEP_FORMAT, "changes", sections)


def _material(state: Any) -> list[Section | None]:
    """Return the parts of this call, each above its passages.

    A passage stands under the first part that has it.
    """
    sections: list[Section | None] = []
    shown = set(state.get("left_out", ()))
    for number in state.get("group") or range(1, len(state["parts"]) + 1):
        part = state["parts"][number - 1]
        cited = [mark for mark in sorted(marks(part["text"])) if mark <= len(state["evidence"])]
        fresh = [each for each in [*cited, *passages_of(state, part["query"])] if each not in shown]
        shown.update(fresh)
        sections += [
            Section("part", str(number), part["text"].strip("\n")),
            *passages(state["evidence"], list(dict.fromkeys(fresh))),
        ]
    return sections


def read_changes_of(reply: str, state: Any, _settings: Any) -> dict[str, Any]:
    """Return the changes that the reply asks for.

    Raises:
        UnreadableReply: It asks for none and does not say so, or some old words stand in no part.
    """
    changes = read_changes(reply)
    if not changes:
        if is_unchanged(reply.strip()) or UNCHANGED in reply.upper():
            return {"changes": []}
        raise UnreadableReply(
            f'there was neither {UNCHANGED} nor a block that begins with "PART <number>".'
        )
    lost = misplaced(changes, [part["text"] for part in state["parts"]])
    if lost:
        words = "; ".join(f"PART {each['part']}, {quoted(each['old'])}" for each in lost[:5])
        raise UnreadableReply(
            f"these OLD words stand in no part, or the part does not exist: {words}.",
            update={"changes": [change for change in changes if change not in lost]},
        )
    return {"changes": changes}


def no_changes(_state: Any, reason: str) -> dict[str, Any]:
    """Leave the draft as it is; the warning says that it was not checked."""
    return {"changes": [], "warnings": [f"the draft is unchecked, in part or in whole: {reason}"]}


def without_evidence(state: Any, _settings: Any) -> dict[str, Any] | None:
    """Ask nothing where no passage was found: there is nothing to check against."""
    if state["evidence"]:
        return None
    return {
        "changes": [],
        "warnings": ["nothing was found for any part, so the draft is unchecked"],
    }


def _checked(_state: Any, update: dict[str, Any]) -> str:
    changes = len(update["changes"])
    return (
        f"The check asks for {counted(changes, 'change')}."
        if changes
        else "Nothing has to be changed."
    )


revise = ModelNode(
    "revise",
    ask_for_changes,
    read_changes_of,
    no_changes,
    skip=without_evidence,
    keep_back=lambda settings: int(getattr(settings, "finish", "text") != "text"),
    started="Checking every part against what was found.",
    finished=_checked,
)
critic = ModelNode(
    "critic",
    ask_critic,
    read_changes_of,
    no_changes,
    started="Checking the steps against what was found.",
    finished=_checked,
)


def check_calls(state: Any, node: str, resources: Resources[Any]) -> str | list[Send]:
    """Return the check's node, or a `Send` for each group of parts if they do not fit one call."""
    settings = resources.settings(state)
    groups = _groups(state, settings.parts_per_call, _input_limit(node, settings, resources))
    if len(groups) == 1:
        return node
    shared = {
        key: value for key, value in state.items() if key not in {"warnings", "changes", "messages"}
    }
    return [Send(node, {**shared, "group": group}) for group in groups]


def _input_limit(node: str, settings: Any, resources: Resources[Any]) -> int | None:
    model = resolve_model(resources.choice(node, settings))
    limit: int | None = settings.max_input_tokens or (model.profile or {}).get("max_input_tokens")
    return limit and max(limit // 2, limit - _OVERHEAD)


def _groups(state: Any, most: int | None, limit: int | None) -> list[list[int]]:
    """Group the parts' numbers, each group as large as the limits on parts and tokens allow."""
    groups: list[list[int]] = [[]]
    size = 0
    for number, part in enumerate(state["parts"], 1):
        numbers: Sequence[int] = passages_of(state, part["query"])
        added = tokens(part["text"]) + sum(
            tokens(state["evidence"][each - 1]["text"]) for each in numbers
        )
        full = (most and len(groups[-1]) >= most) or (limit and size + added > limit)
        if full and groups[-1]:
            groups.append([])
            size = 0
        groups[-1].append(number)
        size += added
    return groups
