"""List what the first searches left unanswered, judging by their results.

The paper's RPG does the same by planning after each segment (RPG §3.2).
"""

import re
from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.base import LookSettings
from stepcraft.llm.calls import Inline
from stepcraft.llm.node import ModelNode
from stepcraft.llm.prompt import asked, prompt
from stepcraft.nodes.draft import end_if_late, found_sections
from stepcraft.nodes.plan import ONE_FACT, read_queries
from stepcraft.text.lists import read_items
from stepcraft.text.sections import Section

NOTHING = "NOTHING"
"""The reply meaning that nothing is missing."""

_FORMAT = (
    'At most {most} queries, each on one line that begins with "- ", and nothing else; or exactly '
    f"{NOTHING} if nothing is missing."
)
_NOTHING = re.compile(
    r"\W*(?:nothing|none)\b(?:\W+(?:else|more|is|needed|missing))*\W*", re.IGNORECASE
)


def ask(state: Any, settings: LookSettings) -> list[BaseMessage]:
    """Show the question, the evidence, and the queries made so far."""
    instructions = settings.look_again_instructions
    if state.get("form") == "short":
        instructions += ONE_FACT
    sections = [
        *asked(state["task"], state.get("task_resources", "")),
        *found_sections(state),
        Section("searched", "", "\n".join(state["queries"])),
    ]
    return prompt(
        instructions,
        _FORMAT.format(most=settings.max_queries),
        "gaps",
        sections,
        material_first=True,
    )


def read(reply: str, state: Any, settings: LookSettings) -> dict[str, Any]:
    """Return the queries with any new ones added; without new ones, no more rounds follow.

    Raises:
        UnreadableReply: It neither lists queries nor says that nothing is missing.
    """
    searched = {query.casefold() for query in state["queries"]}
    is_enough = any(map(_NOTHING.fullmatch, reply.splitlines())) and not read_items(reply)
    new = [
        query
        for query in ([] if is_enough else read_queries(reply))
        if query.casefold() not in searched and not _NOTHING.fullmatch(query)
    ]
    return {
        "queries": [*state["queries"], *new[: settings.max_queries]],
        "looks_left": state["looks_left"] - 1 if new else 0,
    }


def as_found(_state: Any, reason: str) -> dict[str, Any]:
    """Write from the evidence found so far."""
    end_if_late(reason)
    return {"looks_left": 0}


def _finished(state: Any, update: dict[str, Any]) -> str:
    new = len(update.get("queries", state["queries"])) - len(state["queries"])
    return f"Planned {new:,} more." if new else "Nothing is missing."


look_again = ModelNode(
    "look_again",
    ask,
    read,
    as_found,
    keep_back=lambda _settings: 1,
    started="Reading {passages} to see what is missing.",
    finished=_finished,
)


@Inline
def after_retrieve(state: Any) -> str:
    """Choose whether to check the draft, look again, or write."""
    if state["first_draft"]:
        return "draft to check"
    return "look again" if state["looks_left"] else "write"
