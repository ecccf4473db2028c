"""List what to look up before anything is written (RPG §3.1, AAG §3.3)."""

import re
from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.aag import AagContext
from stepcraft.contexts.rpg import RpgContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import ModelNode
from stepcraft.llm.prompt import asked, prompt
from stepcraft.nodes.draft import end_if_late
from stepcraft.text.clean import SPACELESS_STOPS, STOPS, is_declined
from stepcraft.text.lists import read_items, read_lines

_LIST = 'At most {most} queries, each on one line that begins with "- ". Nothing else.'
_KIND = (
    "First a line KIND: with one word, short if one name, number, date or yes or no answers the "
    "question, long if it takes more. Then the queries. "
)
ONE_FACT = "\nThe answer to this question is one fact: list only what finds it."
"""The instruction that planners get when a short answer is wanted."""
_NO_QUERY = re.compile(rf"^(?:[<|{{]|\[[{{\"])|[{STOPS}{SPACELESS_STOPS}]$(?<![?\u061f\uff1f])")
"""XML, a table, JSON, or a sentence, rather than a query."""
_KIND_LINE = re.compile(r"^\W*kind\W+(long|short)\b.*$", re.IGNORECASE | re.MULTILINE)


def ask_for_plan(state: Any, settings: RpgContext) -> list[BaseMessage]:
    """Show only the question: the plan comes before the evidence."""
    form = (_KIND if state["form"] == "auto" else "") + _LIST.format(most=settings.max_queries)
    instructions = settings.plan_instructions + (ONE_FACT if state["form"] == "short" else "")
    return prompt(instructions, form, "plan", asked(state["task"]))


def read_plan(reply: str, state: Any, settings: RpgContext) -> dict[str, Any]:
    """Return the queries, starting with the question, and the form of the answer."""
    kind = _KIND_LINE.search(reply)
    queries = read_queries(_KIND_LINE.sub("", reply))[: settings.max_queries]
    form = state["form"]
    if form == "auto":
        form = kind[1].lower() if kind else "long"
    return {"queries": [state["task"], *queries], "form": form}


def without_plan(state: Any, reason: str) -> dict[str, Any]:
    """Search only for the question; assume a long answer unless a short one was requested."""
    end_if_late(reason)
    kind = "long" if state["form"] == "auto" else state["form"]
    return {"queries": [state["task"]], "form": kind}


def ask_for_queries(state: Any, settings: AagContext) -> list[BaseMessage]:
    """Show the goal and the resources."""
    sections = asked(state["task"], state["task_resources"])
    return prompt(
        settings.look_up_instructions, _LIST.format(most=settings.max_queries), "plan", sections
    )


def read_look_up(reply: str, state: Any, settings: AagContext) -> dict[str, Any]:
    """Return the queries, starting with the goal and its resources (AAG §3.2)."""
    return {"queries": [goal_query(state), *read_queries(reply)[: settings.max_queries]]}


def only_the_goal(state: Any, reason: str) -> dict[str, Any]:
    """Search only for the goal."""
    end_if_late(reason)
    return {"queries": [goal_query(state)]}


def goal_query(state: Any) -> str:
    """Return the goal with its resources as a query in the paper's form (AAG §3.2)."""
    return (
        f"{state['task']} using {state['task_resources']}"
        if state["task_resources"]
        else str(state["task"])
    )


def read_queries(reply: str) -> list[str]:
    """Return the queries in a reply: the items of its list, or lines that are not sentences.

    Raises:
        UnreadableReply: There are none.
    """
    queries = read_items(reply)
    if not queries:
        lines = read_lines(reply)
        queries = [] if any(map(_NO_QUERY.search, lines)) else lines
    if not queries or is_declined(reply):
        raise UnreadableReply(
            'there was no query in it: each stands on one line that begins with "- ".'
        )
    return queries


def _planned(_state: Any, update: dict[str, Any]) -> str:
    count = len(update["queries"]) - 1
    return f"Planned {count:,} {'search' if count == 1 else 'searches'}."


plan = ModelNode(
    "plan",
    ask_for_plan,
    read_plan,
    without_plan,
    keep_back=lambda _settings: 1,
    started="Planning the searches.",
    finished=_planned,
)
look_up = ModelNode(
    "to_query",
    ask_for_queries,
    read_look_up,
    only_the_goal,
    keep_back=lambda _settings: 1,
    started="Planning the searches.",
    finished=_planned,
)
