"""Compare two procedures: are they for the same task, and can a single one replace both?"""

import re
from itertools import chain
from typing import Any

from langchain_core.messages import BaseMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from stepcraft.building.grounding import Grounds
from stepcraft.building.replies import (
    CUT_OFF,
    PROCEDURE_FORMAT,
    rewritten,
    sections_of,
    unfit,
    unknown,
)
from stepcraft.building.settings import COMPARE_INSTRUCTIONS, DuplicatesContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import ModelNode, State, Update
from stepcraft.llm.prompt import prompt
from stepcraft.llm.resources import Resources
from stepcraft.llm.usage import RunState
from stepcraft.memory.procedure import Content

_FORMAT = f"""\
A line DIFFERENCE: with what somebody who has the one would still lack for the task of the other, in
at most twenty words, or the word NONE. Then a line VERDICT: with one word, SAME or DIFFERENT.
With SAME, and where one procedure can take the place of both, {PROCEDURE_FORMAT}"""

_WORD = re.compile(r"\b(?:SAME|DIFFERENT)\b")
_NONE = re.compile(r"\W*none\b\W*", re.IGNORECASE)


class ComparisonState(RunState):
    """The state of a comparison."""

    first: Content
    second: Content
    same: bool | None
    why: str
    merged: Content | None


def ask_for_comparison(state: State, _settings: DuplicatesContext) -> list[BaseMessage]:
    """Return a prompt that asks the model to compare the two procedures."""
    procedures = sections_of((state["first"], state["second"]))
    return prompt(COMPARE_INSTRUCTIONS, _FORMAT, "comparison", procedures)


def read_comparison(reply: str, state: State, _settings: DuplicatesContext) -> Update:
    """Return the verdict, its reason and, if the task is the same, any merged procedure.

    Raises:
        UnreadableReply: The reply has no verdict, or the merged procedure was cut off, is
            incomplete, contains names that neither procedure has, or lacks a name that both have.
    """
    texts, merged = rewritten(reply)
    verdicts = set(_WORD.findall(texts["verdict"].upper()))
    if len(verdicts) != 1:
        raise UnreadableReply(
            "there was no line VERDICT: with one of the words SAME and DIFFERENT."
        )
    difference = texts["difference"][:300]
    update = no_verdict(state, "" if _NONE.fullmatch(difference) else difference.rstrip(" ."))
    update["same"] = verdicts == {"SAME"}
    if not update["same"]:
        return update
    if state.get("cut_off"):
        raise UnreadableReply(CUT_OFF)
    if merged and (problem := _problem(merged, state["first"], state["second"])):
        raise UnreadableReply(f"the procedure in place of both {problem}", update=update)
    return {**update, "merged": merged}


def no_verdict(_state: State, why: str) -> Update:
    """Return an undecided verdict."""
    return {"same": None, "why": why, "merged": None}


def _problem(merged: Content, first: Content, second: Content) -> str:
    """Return why a merged procedure cannot replace the two, or "" if it can."""
    if problem := unfit(merged):
        return problem
    if invented := _missing(merged, first, second):
        return unknown(invented, "which stands in neither of the two")
    of_second = _missing(second, merged)
    if lost := [name for name in _missing(first, merged) if name in of_second]:
        return f"lacks {', '.join(lost)}, which both of them have. Write all of it."
    return ""


def _missing(procedure: Content, *others: Content) -> list[str]:
    """Return the names, options and numbers in a procedure that none of the others has."""
    texts = [[each["output"], each["input"], *each["steps"]] for each in (procedure, *others)]
    return Grounds("\n\n".join(chain(*texts[1:]))).missing_names(texts[0])


compare = ModelNode(
    "compare",
    ask_for_comparison,
    read_comparison,
    no_verdict,
    started="Comparing two procedures.",
)


def graph_of(
    node: ModelNode, state: type[Any], resources: Resources[Any]
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Return a graph with one node, so that its model calls are traced, limited and counted."""
    builder = StateGraph(state, resources.settings_type)
    builder.add_node(node.name, node.bound(resources))
    builder.add_edge(START, node.name)
    return builder.compile(name=resources.graph)
