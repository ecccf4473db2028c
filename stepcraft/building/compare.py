"""Comparison: whether two procedures are for the same task, and the one in place of both."""

import re

from langchain_core.messages import BaseMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from stepcraft.building.grounding import Grounds
from stepcraft.building.settings import DuplicatesContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import ModelNode, State, Update
from stepcraft.llm.prompt import prompt
from stepcraft.llm.resources import Resources
from stepcraft.llm.usage import RunState
from stepcraft.memory.procedure import Content
from stepcraft.text.clean import normalised, unfenced
from stepcraft.text.lists import numbered, read_steps
from stepcraft.text.sections import Section

PROCEDURE_FORMAT = """\
there follow a line OUTPUT:, a line INPUT: with its resources separated by commas, and a line
STEPS:, under which each step begins on a new line with its number and a full stop: "1. ...". Code
of more than one line stands under its step, between ``` fences. Nothing after that."""
_FORMAT = f"""\
A line DIFFERENCE: with what somebody who has the one would still lack for the task of the other, in
at most twenty words, or the word NONE. Then a line VERDICT: with one word, SAME or DIFFERENT.
With SAME, and where one procedure can take the place of both, {PROCEDURE_FORMAT}"""

_LABEL = re.compile(
    r"^[ \t>*_#`-]{0,8}(difference|verdict|cause|procedure|output|input)[ \t*_`]{0,4}[:\uff1a](.*)",
    re.IGNORECASE | re.MULTILINE,
)
_STEPS = re.compile(
    r"^[ \t>*_#`-]{0,8}steps[ \t*_`]{0,4}[:\uff1a][ \t*_`]{0,4}", re.IGNORECASE | re.MULTILINE
)
_WORD = re.compile(r"\b(?:SAME|DIFFERENT)\b")
_NONE = re.compile(r"\W*none\b\W*", re.IGNORECASE)


class ComparisonState(RunState):
    """The state of a comparison."""

    first: Content
    second: Content
    same: bool | None
    why: str
    merged: Content | None


def ask_for_comparison(state: State, settings: DuplicatesContext) -> list[BaseMessage]:
    """Show both procedures."""
    instructions = f"{settings.compare_instructions.strip()}\n\n{settings.merge_instructions}"
    sections = [
        Section("procedure", str(number), shown(procedure))
        for number, procedure in enumerate((state["first"], state["second"]), 1)
    ]
    return prompt(instructions, _FORMAT, "comparison", sections)


def read_comparison(reply: str, state: State, _settings: DuplicatesContext) -> Update:
    """Return the verdict with its reason and, where it is wanted and written, the merged procedure.

    Raises:
        UnreadableReply: There is no verdict in it, or the merged procedure is not complete,
            names what neither procedure has, or lacks a name that both have.
    """
    texts, merged = labelled(reply)
    verdicts = set(_WORD.findall(texts.get("verdict", "").upper()))
    if len(verdicts) != 1:
        raise UnreadableReply(
            "there was no line VERDICT: with one of the words SAME and DIFFERENT."
        )
    difference = texts.get("difference", "")[:300]
    update = no_verdict(state, "" if _NONE.fullmatch(difference) else difference.rstrip(" ."))
    update["same"] = verdicts == {"SAME"}
    if not update["same"] or not merged:
        return update
    invented = _missing(merged, state["first"], state["second"])
    first, second = _missing(state["first"], merged), _missing(state["second"], merged)
    problem = lacking(merged)
    if not problem and invented:
        problem = (
            f"has {', '.join(invented)}, which stands in neither of the two. Write it with the "
            "names, options and numbers that they have."
        )
    elif not problem and (lost := [name for name in first if name in second]):
        problem = f"lacks {', '.join(lost)}, which both of them have. Write all of it."
    if problem:
        raise UnreadableReply(f"the procedure in place of both {problem}", update=update)
    return {**update, "merged": merged}


def labelled(reply: str) -> tuple[dict[str, str], Content | None]:
    """Return what stands behind the labels of a reply, and the procedure in it, if there is one."""
    head, *steps = _STEPS.split(unfenced(reply), maxsplit=1)
    texts = {name.lower(): text.strip(" *_") for name, text in _LABEL.findall(head)}
    if not (steps or "output" in texts):
        return texts, None
    return texts, Content(
        output=normalised(texts.get("output", "")),
        input=normalised(texts.get("input", "")),
        steps=read_steps("".join(steps)) or [*filter(None, map(str.strip, steps))],
    )


def lacking(procedure: Content) -> str:
    """Say what a procedure in a reply has nothing of; "" if it is whole."""
    empty = [name.upper() for name, value in procedure.items() if not value]
    return f"has nothing under {empty[0]}:." if empty else ""


def no_verdict(_state: State, why: str) -> Update:
    """Return neither verdict."""
    return {"same": None, "why": why, "merged": None}


def _missing(procedure: Content, *others: Content) -> list[str]:
    """Return the names, options and numbers of a procedure that no other has."""
    grounds = Grounds("\n\n".join(text for other in others for text in _texts(other)))
    missing = grounds.missing(_texts(procedure))
    return list(dict.fromkeys(name for names in missing.values() for name in names))


def _texts(procedure: Content) -> list[str]:
    return [procedure["output"], procedure["input"], *procedure["steps"]]


def shown(procedure: Content) -> str:
    """Return a procedure as a model sees it, in the form in which it writes one."""
    steps = numbered(procedure["steps"], code_at_margin=True)
    return f"OUTPUT: {procedure['output']}\nINPUT: {procedure['input']}\nSTEPS:\n{steps}"


compare = ModelNode(
    "compare",
    ask_for_comparison,
    read_comparison,
    no_verdict,
    started="Comparing two procedures.",
)


def comparison(
    resources: Resources[DuplicatesContext],
) -> CompiledStateGraph[ComparisonState, DuplicatesContext, ComparisonState, ComparisonState]:
    """Return a graph of the one node, which has its traces, its limits and its usage counted."""
    builder = StateGraph(ComparisonState, DuplicatesContext)
    builder.add_node("compare", compare.bound(resources))
    builder.add_edge(START, "compare")
    return builder.compile(name="duplicates")
