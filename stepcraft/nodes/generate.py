"""Write the answer from the evidence found for the question and the plan (RPG §3.2)."""

from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.base import LENGTHS
from stepcraft.contexts.rpg import MARKS, RpgContext
from stepcraft.llm.node import ModelNode
from stepcraft.llm.prompt import asked, prompt
from stepcraft.llm.reply import answer_text
from stepcraft.nodes.draft import found_sections, material, no_draft, written
from stepcraft.text.citations import bracketed, labels, marks, with_prompt_marks

_FORMAT = "The answer and nothing else."


def ask_for_answer(state: Any, settings: RpgContext) -> list[BaseMessage]:
    """Show the question and the evidence, with instructions that depend on the answer's form."""
    short = state["form"] == "short"
    instructions = (
        settings.short_instructions
        if short
        else f"{settings.long_instructions}\n{LENGTHS[settings.length]}"
    )
    sections = [*asked(state["task"]), *found_sections(state)]
    kind = "short" if short else "answer"
    return prompt(f"{instructions}\n{MARKS}", _FORMAT, kind, sections, material_first=True)


def read_answer(reply: str, state: Any, _settings: RpgContext) -> dict[str, Any]:
    """Return the draft with its citation marks in the form that prompts ask for.

    Otherwise, marks such as [2] would no longer count once the check adds marks in that form. (p2)
    counts if there are no marks.
    """
    text, last, known = answer_text(reply), len(state["evidence"]), labels(material(state))
    text = text if marks(text, unless_in=known) else bracketed(text, last)
    return written(with_prompt_marks(text, last, unless_in=known), state)


generate = ModelNode(
    "generate",
    ask_for_answer,
    read_answer,
    no_draft,
    started="Writing the answer from {passages}.",
    finished=lambda _state, update: f"Wrote {len(update['first_draft'].split()):,} words.",
)
