"""Revise what has been written so far with what was found for its last thought (RAT §3.2)."""

import re
from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from stepcraft.contexts.rat import RatContext
from stepcraft.errors import UnreadableReply
from stepcraft.evidence import Evidence
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import evidence_sections, prompt
from stepcraft.llm.reply import text_of
from stepcraft.text.clean import normalised
from stepcraft.text.sections import UNCHANGED, section

_WHOLE = f"Exactly {UNCHANGED}, or the whole text with its corrections and nothing else."
_THOUGHT = f"""\
Exactly {UNCHANGED}, or the thought alone with its corrections and nothing else: the text before it stands as it is."""

_SAME = re.compile(r"\W{0,4}no[ -]?changes?(?:\s+(?:needed|required|necessary))?\W*", re.IGNORECASE)


class Reading(TypedDict):
    """What this node reads."""

    question: str
    text: str
    thought: str
    rest: str
    evidence: list[Evidence]
    skipped: str
    revises: bool


def ask(state: Reading, context: RatContext) -> list[BaseMessage]:
    """Question and text first, what was found last, so that a provider's prompt cache hits."""
    whole = _is_whole(context)
    sections = [
        section("question", state["question"]),
        section("text", state["text"].rstrip()),
        "" if whole else section("thought", state["thought"].strip()),
        section("rest", state["rest"].strip()) if state["rest"].strip() else "",
        *evidence_sections(state["evidence"]),
    ]
    form = _WHOLE if whole else _THOUGHT
    return prompt(context.revise_instructions, form, "revision", sections)


def read(reply: str, state: Reading, context: RatContext) -> dict[str, Any]:
    """What the text, or the thought alone, is after the revision, with the blanks around it as they were.

    Raises:
        UnreadableReply: most of the text is missing.
    """
    before = state["text"] if _is_whole(context) else state["thought"]
    after = text_of(reply, fenced=before.lstrip().startswith(("```", "~~~")))
    if _SAME.fullmatch(after.partition("\n")[0]) or normalised(after) == normalised(before):
        return {"after": before}
    kept = before.removesuffix(state["thought"]).strip()
    if len(after) < len(kept) / 2:
        raise UnreadableReply(
            f"most of the text is missing. Reply with the whole text, or with {UNCHANGED} if it is right."
        )
    return {"after": _blanks_of(before, after)}


def _blanks_of(before: str, after: str) -> str:
    inner = before.strip()
    start = before.index(inner) if inner else 0
    return before[:start] + after + before[start + len(inner) :]


def _is_whole(context: RatContext) -> bool:
    return context.revise_scope == "prefix"


def skipped(_state: Reading, why: str) -> dict[str, Any]:
    """The text stays as it is."""
    return {"skipped": why}


def skip_model(state: Reading, _context: RatContext) -> dict[str, Any] | None:
    """No call where there is nothing to revise with, or where only what was found is wanted."""
    return {} if state["skipped"] or not state["revises"] else None


revise_thought = model_node("revise", ask, read, fallback=skipped, skip_model=skip_model)
