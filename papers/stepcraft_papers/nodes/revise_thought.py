"""Revise the text so far with the evidence for its last thought (RAT §3.2)."""

from stepcraft.contexts.base import UNCHANGED
from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import ModelNode, Update
from stepcraft.llm.prompt import passages, prompt
from stepcraft.llm.reply import answer_text
from stepcraft.text.clean import is_unchanged, normalised
from stepcraft_papers.contexts import RatPaperContext
from stepcraft_papers.nodes.state import (
    Prompt,
    RatPaperState,
    ThoughtRevision,
    passages_found,
    sections,
)

_WHOLE = f"Exactly {UNCHANGED}, or the whole text with its corrections and nothing else."
_THOUGHT = f"""\
Exactly {UNCHANGED}, or the thought alone with its corrections and nothing else: the text before it
stands as it is."""


def ask_for_revision(state: RatPaperState, settings: RatPaperContext) -> Prompt:
    """Show the question and the text first and the passages last, for a provider's prompt cache."""
    whole = settings.revise_scope == "prefix"
    rest = "".join(state["thoughts"][state["step"] :])
    material = sections(
        question=state["task"],
        text=state["text"],
        thought="" if whole else state["thought"],
        rest=rest if settings.show_rest else "",
    )
    material += passages(state["evidence"], passages_found(state))
    form = _WHOLE if whole else _THOUGHT
    return prompt(settings.revise_instructions, form, "revision", material)


def read_revision(reply: str, state: RatPaperState, settings: RatPaperContext) -> Update:
    """Replace the text, or its last thought, with the reply; keep the whitespace at the end.

    Raises:
        UnreadableReply: Most of the text is missing.
    """
    text, thought = state["text"], state["thought"]
    before = text if settings.revise_scope == "prefix" else thought
    after = reply.strip() if before.startswith("```") else answer_text(reply)
    if is_unchanged(after.partition("\n")[0]) or normalised(after) == normalised(before):
        return settled(state)
    if len(after) < len(before.removesuffix(thought).strip()) / 2:
        raise UnreadableReply(f"most of the text is missing; if it is right, reply {UNCHANGED}.")
    return settled(state, after=text.removesuffix(before) + after + before[len(before.rstrip()) :])


def settled(state: RatPaperState, skipped: str = "", after: str = "") -> Update:
    """Return the text, the answer so far and the record; without `after`, the text is kept."""
    after = after or state["text"]
    revision = ThoughtRevision(
        step=state["step"],
        query="\n".join(state["queries"]),
        evidence=[state["evidence"][number - 1]["id"] for number in passages_found(state)],
        before=state["text"],
        after=after,
        skipped=skipped,
    )
    return {
        "text": after,
        "answer": "".join((after, *state["thoughts"][state["step"] :])).strip(),
        "revisions": [*state["revisions"], revision],
    }


revise_thought = ModelNode(
    "revise",
    ask_for_revision,
    read_revision,
    settled,
    skip=lambda state, _settings: (
        None if passages_found(state) else settled(state, state["reason"] or "nothing was found")
    ),
    started="Checking the text against what was found for its last thought.",
)
