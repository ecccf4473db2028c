"""Revise the text so far with the evidence for its last thought (RAT §3.2)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.rat import RatContext
from stepcraft.errors import UnreadableReply
from stepcraft.evidence import Evidence
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import evidence_sections, prompt
from stepcraft.llm.reply import text_of, unwrapped
from stepcraft.progress import Said, counted
from stepcraft.text.clean import clean, is_unchanged, normalised
from stepcraft.text.patch import Change, Patch, names_paragraph, read_paragraphs
from stepcraft.text.sections import UNCHANGED, section
from stepcraft.text.thoughts import split_thoughts

_WHOLE = f"Exactly {UNCHANGED}, or the whole text with its corrections and nothing else."
_PARAGRAPHS = f"""\
Exactly {UNCHANGED}, or the changed paragraphs alone and nothing else, each written out in full behind its number:
"[2] ..." replaces paragraph 2;
"[2+] ..." adds a paragraph after paragraph 2;
"[2-]" removes paragraph 2.
Paragraphs that no number names stay word for word."""
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
    number: int


def ask(state: Reading, context: RatContext) -> list[BaseMessage]:
    """Show the question and the text first and the evidence last, so that a provider's prompt cache hits."""
    pieces = _paragraphs(state, context)
    numbered = "\n\n".join(f"[{number}] {piece.strip()}" for number, piece in enumerate(pieces, 1))
    whole = context.revise_scope == "prefix"
    sections = [
        section("question", state["question"]),
        section("text", numbered or state["text"].rstrip()),
        "" if whole else section("thought", state["thought"].strip()),
        section("rest", state["rest"].strip()) if state["rest"].strip() else "",
        *evidence_sections(state["evidence"]),
    ]
    if pieces:
        return prompt(context.revise_instructions, _PARAGRAPHS, "paragraphs", sections)
    form = _WHOLE if whole else _THOUGHT
    return prompt(context.revise_instructions, form, "revision", sections)


def _paragraphs(state: Reading, context: RatContext) -> list[str]:
    """The paragraphs that are numbered, so that a change of one need not repeat the others.

    None where only the thought is revised, or where a line of the text looks like such a number.
    """
    patched = context.rewrite == "patch" and context.revise_scope == "prefix"
    if not patched or any(names_paragraph(line.strip()) for line in state["text"].splitlines()):
        return []
    return split_thoughts(state["text"])


def read(reply: str, state: Reading, context: RatContext) -> dict[str, Any]:
    """The revised text, or thought, with the whitespace around it as it was.

    Raises:
        UnreadableReply: Most of the text is missing, or not all changes of paragraphs can be applied.
    """
    before = state["text"] if context.revise_scope == "prefix" else state["thought"]
    after = unwrapped(text_of(reply, fenced=before.lstrip().startswith(("```", "~~~"))))
    if is_unchanged(after.partition("\n")[0]):
        return {"after": before}
    pieces = _paragraphs(state, context)
    patch = read_paragraphs(unwrapped(clean(reply).strip()), len(pieces)) if pieces else None
    if patch:
        after = _patched(pieces, patch)
    elif _is_remark(after, before):
        return {"after": before}
    # A patch may remove the thought; what names no paragraph has to be all of the text, and not a remark on it.
    kept = before if pieces and not patch else before.removesuffix(state["thought"])
    if len(after) < len(kept.strip()) / 2:
        whole = "the changed paragraphs behind their numbers" if pieces else "the whole text"
        raise UnreadableReply(
            f"most of the text is missing. Reply with {whole}, or with {UNCHANGED} if it is right."
        )
    inner = before.strip()
    start = before.index(inner) if inner else 0
    is_same = normalised(after) == normalised(before)
    update = {"after": before if is_same else before[:start] + after + before[start + len(inner) :]}
    if patch and patch.problems:
        raise UnreadableReply(" ".join(patch.problems), update=update if patch.changes else None)
    return update


def _is_remark(reply: str, before: str) -> bool:
    """Whether a reply says in a few more words that nothing changes."""
    begins = reply.upper().startswith(UNCHANGED) and not before.lstrip().upper().startswith(UNCHANGED)
    return is_unchanged(reply.rpartition("\n")[2]) or (begins and "\n\n" not in reply)


def _patched(pieces: Sequence[str], patch: Patch) -> str:
    """The text with the changed paragraphs, each with the blank lines of the one that it replaces or follows."""
    changes: list[Change] = []
    for change in patch.changes:
        piece = pieces[max(0, change.step - 1)]
        behind = piece[len(piece.rstrip()) :]
        blank = "\n" * (2 - behind.count("\n"))
        if change.kind != "add":
            text = piece[: len(piece) - len(piece.lstrip())] + change.text + behind
        else:
            text = blank + change.text + behind if change.step else change.text + behind + blank
        changes.append(change._replace(text=text))
    return "".join(replace(patch, changes=tuple(changes)).apply(pieces)).strip()


def skipped(_state: Reading, why: str) -> dict[str, Any]:
    """Skip the step: the text stays as it is."""
    return {"skipped": why}


def skip_model(state: Reading, _context: RatContext) -> dict[str, Any] | None:
    """No call where the step was skipped or only searches."""
    return {} if state["skipped"] or not state["revises"] else None


def starts(state: Reading) -> Said:
    """The thought that is checked."""
    thought, passages = state["number"] + 1, counted(len(state["evidence"]), "passage")
    told = f"Checking thought {thought} against {passages}."
    return Said(told, {"thought": thought, "provisional": True})


def describe(state: Reading, update: dict[str, Any]) -> Said:
    """Whether a correction is proposed; `accept` says whether it counts."""
    thought = state["number"] + 1
    if state["skipped"]:
        return Said(
            f"Thought {thought} is not checked: {state['skipped']}",
            {"reason": state["skipped"]},
            skipped=True,
        )
    if not state["revises"]:
        return Said(f"Thought {thought} is looked up; the draft is checked as a whole.", skipped=True)
    if update["after"] in {state["text"], state["thought"]}:
        return Said(f"Nothing is to be changed in thought {thought}.", {"changed": False})
    return Said(f"A correction of thought {thought} is proposed.", {"changed": True})


revise = model_node(
    "revise",
    ask,
    read,
    fallback=skipped,
    skip_model=skip_model,
    description="Correct the text so far with the evidence for its last thought.",
    starts=starts,
    describe=describe,
)
