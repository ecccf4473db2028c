"""Draft an answer as step-by-step thoughts, before any search (RAT §3.1)."""

from dataclasses import replace

from stepcraft.llm.prompt import prompt
from stepcraft.nodes.draft import draft
from stepcraft_papers.contexts import RatPaperContext
from stepcraft_papers.nodes.state import Prompt, RatPaperState, sections

_FORMAT = """\
Two to eight thoughts, each a paragraph of one to four sentences, with a blank line between them.
Nothing before the first thought or after the last one."""


def ask_for_thoughts(state: RatPaperState, settings: RatPaperContext) -> Prompt:
    """Show the question alone."""
    return prompt(settings.draft_instructions, _FORMAT, "draft", sections(question=state["task"]))


draft_thoughts = replace(draft, ask=ask_for_thoughts)
