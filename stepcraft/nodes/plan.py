"""List what to look up before anything is written (RPG §3.1, AAG §3.3)."""

import re
from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.aag import AagContext
from stepcraft.contexts.rpg import RpgContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import ModelNode
from stepcraft.llm.prompt import asked, prompt
from stepcraft.text.lists import read_lines

_LIST = 'At most {most} queries, each on one line that begins with "- ". Nothing else.'
_KIND = (
    "First a line KIND: with one word, short if one name, number, date or yes or no answers the "
    "question, long if it takes more. Then the queries. "
)
ONE_FACT = "\nThe answer to this question is one fact: list only what finds it."
"""The instruction that planners get when a short answer is wanted."""
_KIND_LINE = re.compile(r"^\W*kind\W+(long|short)\b.*$", re.IGNORECASE | re.MULTILINE)


def ask_for_plan(state: Any, settings: RpgContext) -> list[BaseMessage]:
    """Show only the question: the plan comes before the evidence."""
    form = (_KIND if state["form"] == "auto" else "") + _LIST.format(most=settings.max_queries)
    instructions = settings.plan_instructions + (ONE_FACT if state["form"] == "short" else "")
    return prompt(instructions, form, "plan", asked(state["task"]))


def read_plan(reply: str, state: Any, settings: RpgContext) -> dict[str, Any]:
    """Return the queries, starting with the question, and the form of the answer."""
    kind = _KIND_LINE.search(reply)
    queries = _queries(_KIND_LINE.sub("", reply), settings.max_queries)
    asked_for = kind[1].lower() if kind else "long"
    return {
        "queries": [state["task"], *queries],
        "form": asked_for if state["form"] == "auto" else state["form"],
    }


def without_plan(state: Any, _reason: str) -> dict[str, Any]:
    """Search only for the question; assume a long answer unless a short one was requested."""
    kind = "long" if state["form"] == "auto" else state["form"]
    return {"queries": [state["task"]], "form": kind}


def ask_for_queries(state: Any, settings: AagContext) -> list[BaseMessage]:
    """Show the goal and the resources."""
    sections = asked(state["task"], state["task_resources"])
    return prompt(
        settings.look_up_instructions, _LIST.format(most=settings.max_queries), "plan", sections
    )


def read_queries(reply: str, state: Any, settings: AagContext) -> dict[str, Any]:
    """Return the queries, starting with the goal and its resources (AAG §3.2)."""
    return {"queries": [goal_query(state), *_queries(reply, settings.max_queries)]}


def only_the_goal(state: Any, _reason: str) -> dict[str, Any]:
    """Search only for the goal."""
    return {"queries": [goal_query(state)]}


def goal_query(state: Any) -> str:
    """Return the goal with its resources as a query in the paper's form (AAG §3.2)."""
    return (
        f"{state['task']} using {state['task_resources']}"
        if state["task_resources"]
        else str(state["task"])
    )


def _queries(reply: str, most: int) -> list[str]:
    """Return the queries in a reply.

    Raises:
        UnreadableReply: There are none.
    """
    queries = read_lines(reply)
    if not queries:
        raise UnreadableReply(
            'there was no query in it: each stands on one line that begins with "- ".'
        )
    return queries[:most]


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
    read_queries,
    only_the_goal,
    keep_back=lambda _settings: 1,
    started="Planning the searches.",
    finished=_planned,
)
