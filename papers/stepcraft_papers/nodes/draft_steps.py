"""Draft the steps from procedures for similar goals, and mark doubtful parts (AAG §3.2)."""

from dataclasses import replace

from langchain_core.messages import BaseMessage

from stepcraft.llm.node import Update
from stepcraft.llm.prompt import asked, passages, prompt
from stepcraft.nodes.draft import draft_steps as draft
from stepcraft.nodes.draft import read_steps_of, shown_passages
from stepcraft.text.lists import numbered
from stepcraft_papers.contexts import AagPaperContext
from stepcraft_papers.markers import without_markers
from stepcraft_papers.nodes.state import AagPaperState

STEPS_FORMAT = """\
A numbered list of the steps and nothing else: no title, no introduction, no closing remark, no
headings.
Each step begins on a new line with its number and a full stop: "1. ...". Code of more than one line
stands under its step, between ``` fences."""


def ask(state: AagPaperState, settings: AagPaperContext) -> list[BaseMessage]:
    """Show the goal, the resources and the procedures that were found."""
    shown = passages(state["evidence"], shown_passages(state))
    sections = [*asked(state["task"], state["task_resources"]), *shown]
    return prompt(settings.draft_instructions, STEPS_FORMAT, "steps", sections)


def read_plain(reply: str, state: AagPaperState, settings: AagPaperContext) -> Update:
    """Return the steps of a reply as a user sees them, without marks of doubt.

    Raises:
        UnreadableReply: There is no list in the reply.
    """
    doubtful = read_steps_of(reply, state, settings)["steps"]
    steps = list(filter(None, map(without_markers, doubtful)))
    return {"steps": steps, "answer": numbered(steps)}


def read_doubtful(reply: str, state: AagPaperState, settings: AagPaperContext) -> Update:
    """Return the draft with its marks, and the same steps without marks as the answer so far.

    Raises:
        UnreadableReply: There is no list in the reply.
    """
    return {**read_steps_of(reply, state, settings), **read_plain(reply, state, settings)}


draft_steps = replace(draft, ask=ask, read=read_doubtful)
