"""Revise the text so far with the evidence for its last thought (RAT §3.2)."""

from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.rat import RatContext
from stepcraft.errors import UnreadableReply
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import evidence_sections, prompt
from stepcraft.llm.reply import text_of
from stepcraft.text.clean import is_unchanged, normalised
from stepcraft.text.sections import UNCHANGED, section

_WHOLE = f"Exactly {UNCHANGED}, or the whole text with its corrections and nothing else."
_THOUGHT = f"""\
Exactly {UNCHANGED}, or the thought alone with its corrections and nothing else: the text before it stands as it is."""


class Reading(Budgeted):
    """The input of this node."""

    question: str
    text: str
    thought: str
    rest: str
    evidence: list[Evidence]
    skipped: str
    revises: bool


def ask(state: Reading, context: RatContext) -> list[BaseMessage]:
    """Show the question and the text first and the evidence last, so that a provider's prompt cache hits."""
    whole = context.revise_scope == "prefix"
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
    """The revised text, or thought, with the whitespace around it as it was.

    Raises:
        UnreadableReply: Most of the text is missing.
    """
    before = state["text"] if context.revise_scope == "prefix" else state["thought"]
    after = text_of(reply, fenced=before.lstrip().startswith(("```", "~~~")))
    if is_unchanged(after.partition("\n")[0]) or normalised(after) == normalised(before):
        return {"after": before}
    kept = before.removesuffix(state["thought"]).strip()
    if len(after) < len(kept) / 2:
        raise UnreadableReply(
            f"most of the text is missing. Reply with the whole text, or with {UNCHANGED} if it is right."
        )
    inner = before.strip()
    start = before.index(inner) if inner else 0
    return {"after": before[:start] + after + before[start + len(inner) :]}


def skipped(_state: Reading, why: str) -> dict[str, Any]:
    """Skip the step: the text stays as it is."""
    return {"skipped": why}


def skip_model(state: Reading, _context: RatContext) -> dict[str, Any] | None:
    """No call where the step was skipped or only searches."""
    return {} if state["skipped"] or not state["revises"] else None


revise = model_node("revise", ask, read, fallback=skipped, skip_model=skip_model)
