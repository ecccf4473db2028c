"""Draft the steps from procedures for similar goals, with marks of doubt (AAG §3.2)."""

from dataclasses import replace

from stepcraft.llm.node import Update
from stepcraft.nodes.draft import draft_steps as draft
from stepcraft.nodes.draft import read_steps_of
from stepcraft.text.lists import numbered
from stepcraft_papers.contexts import AagPaperContext
from stepcraft_papers.markers import without_markers
from stepcraft_papers.nodes.state import AagPaperState


def read_plain(reply: str, state: AagPaperState, settings: AagPaperContext) -> Update:
    """Return the steps of a reply as a user sees them, without marks of doubt.

    Raises:
        UnreadableReply: There is no list in the reply.
    """
    doubtful = read_steps_of(reply, state, settings)["steps"]
    steps = list(filter(None, map(without_markers, doubtful)))
    return {"steps": steps, "answer": numbered(steps)}


def read_doubtful(reply: str, state: AagPaperState, settings: AagPaperContext) -> Update:
    """Return the draft with its marks; the same steps without them are the answer so far.

    Raises:
        UnreadableReply: There is no list in the reply.
    """
    return {**read_steps_of(reply, state, settings), **read_plain(reply, state, settings)}


draft_steps = replace(draft, read=read_doubtful)
