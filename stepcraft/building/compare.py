"""Comparison: whether two procedures are for the same task, and the one in place of both."""

import asyncio
import re
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any

from langchain_core.messages import BaseMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict, Unpack

from stepcraft.building.begin import NodeInTurn, run_keys
from stepcraft.building.settings import DuplicatesContext
from stepcraft.errors import BadInput, UnreadableReply
from stepcraft.llm.node import ModelNode, State, Update
from stepcraft.llm.prompt import prompt
from stepcraft.llm.reply import answer_text
from stepcraft.llm.resources import BuilderOptions, GraphOptions, Resources, compiled
from stepcraft.llm.usage import RunState, Usage, add_usage, add_warnings
from stepcraft.memory.procedure import Procedure
from stepcraft.progress import quoted
from stepcraft.schema import described
from stepcraft.text.clean import normalised
from stepcraft.text.grounding import Grounds
from stepcraft.text.lists import numbered, read_steps
from stepcraft.text.sections import Section

__all__ = ["Content", "DuplicatesContext", "build_duplicates", "duplicates_builder"]

_VERDICT = """\
A line DIFFERENCE: with what somebody who has the one would still lack for the task of the other, in
at most twenty words, or the word NONE. Then a line VERDICT: with one word, SAME or DIFFERENT."""
_MERGED = """
With SAME, and where one procedure can take the place of both, there follow a line OUTPUT:, a line
INPUT: with its resources separated by commas, and a line STEPS:, under which each step begins on a
new line with its number and a full stop: "1. ...". Code of more than one line stands under its
step, between ``` fences."""
_END = " Nothing after that."

_LABEL = re.compile(
    r"[ \t>*_#`-]{0,8}(difference|verdict|output|input|steps)[ \t*_`]{0,4}[:\uff1a][ \t*_`]{0,4}(.*)",
    re.IGNORECASE,
)
_WORD = re.compile(r"\b(?:SAME|DIFFERENT)\b")
_NONE = re.compile(r"\W*none\b\W*", re.IGNORECASE)


@described
class Content(TypedDict):
    """What a procedure says."""

    output: str
    """The goal."""
    input: str
    """The resources, as a comma-separated text."""
    steps: list[str]
    """The steps in order."""


@described
class CompareInput(TypedDict):
    """Two procedures."""

    first: Content
    """The first."""
    second: Content
    """The second."""


@described
class CompareOutput(TypedDict):
    """The verdict, and the procedure in place of both."""

    same: bool | None
    """Whether both are for the same task; None where no model could say."""
    why: str
    """What the one has that the other lacks; "" if nothing is named."""
    merged: Content | None
    """The procedure in place of both; None where they differ, contradict each other, or no merging
    is asked for."""
    left_out: list[str]
    """Names, options and numbers of their steps that the merged procedure does not have."""

    warnings: Annotated[list[str], add_warnings]
    """Failed steps, reached limits, and whatever else a reader of the verdict should know."""
    usage: Annotated[Usage, add_usage]
    """Model calls and tokens, in total and by node."""


class CompareState(CompareInput, CompareOutput, RunState):
    """The state of the comparison."""


def ask_for_comparison(state: State, settings: DuplicatesContext) -> list[BaseMessage]:
    """Show both procedures."""
    instructions, form = settings.compare_instructions, _VERDICT
    if settings.merge:
        instructions = f"{instructions.strip()}\n\n{settings.merge_instructions}"
        form += _MERGED
    sections = [
        Section("procedure", str(number), _text(procedure))
        for number, procedure in enumerate((state["first"], state["second"]), 1)
    ]
    return prompt(instructions, form + _END, "comparison", sections)


def read_comparison(reply: str, state: State, settings: DuplicatesContext) -> Update:
    """Return the verdict with its reason and, where it is wanted and written, the merged procedure.

    Raises:
        UnreadableReply: There is no verdict in it, or the merged procedure is not complete, has a
            step twice, names what neither procedure has, or lacks a name that both have.
    """
    lines = _labelled(answer_text(reply))
    verdicts = set(_WORD.findall(lines.get("verdict", "").partition("\n")[0].upper()))
    if len(verdicts) != 1:
        raise UnreadableReply(
            "there was no line VERDICT: with one of the words SAME and DIFFERENT."
        )
    difference = " ".join(lines.get("difference", "").split())[:300]
    update = no_verdict(state, "" if _NONE.fullmatch(difference) else difference.rstrip(" ."))
    update["same"] = verdicts == {"SAME"}
    if not (settings.merge and update["same"] and lines.keys() & Content.__required_keys__):
        return update
    text = lines.get("steps", "")
    merged = Content(
        output=normalised(lines.get("output", "")),
        input=normalised(lines.get("input", "")),
        steps=read_steps(text) or list(filter(None, [text])),
    )
    if problem := _problem(merged, [state["first"], state["second"]]):
        raise UnreadableReply(problem, update=update)
    left_out = [*_missing(state["first"], merged), *_missing(state["second"], merged)]
    return {**update, "merged": merged, "left_out": list(dict.fromkeys(left_out))}


def no_verdict(_state: State, why: str) -> Update:
    """Return neither verdict."""
    return {"same": None, "why": why, "merged": None, "left_out": []}


def _problem(merged: Content, originals: list[Content]) -> str:
    """Return what is wrong with a merged procedure, as the model reads it; "" if nothing is."""
    for name, value in merged.items():
        if not value:
            return f"the procedure in place of both has nothing under {name.upper()}:."
    steps = merged["steps"]
    repeats = [step for place, step in enumerate(steps) if step in steps[:place]]
    if repeats and not any(each["steps"].count(repeats[0]) > 1 for each in originals):
        return f"the procedure in place of both has the step {quoted(repeats[0])} twice."
    if invented := _missing(merged, *originals):
        return (
            f"the procedure in place of both has {', '.join(invented)}, which stands in neither of "
            "the two. Write it with the names, options and numbers that they have."
        )
    first, second = (_missing(each, merged) for each in originals)
    if lost := [name for name in first if name in second]:
        return (
            f"the procedure in place of both lacks {', '.join(lost)}, which both of them have. "
            "Write all of it."
        )
    return ""


def _missing(procedure: Content, *others: Content) -> list[str]:
    """Return the names, options and numbers of a procedure that no other has."""
    grounds = Grounds("\n\n".join(text for other in others for text in _texts(other)))
    missing = grounds.missing(_texts(procedure))
    return list(dict.fromkeys(name for names in missing.values() for name in names))


def _texts(procedure: Content) -> list[str]:
    return [procedure["output"], procedure["input"], *procedure["steps"]]


def _text(procedure: Content) -> str:
    steps = numbered(procedure["steps"], code_at_margin=True)
    return f"OUTPUT: {procedure['output']}\nINPUT: {procedure['input']}\nSTEPS:\n{steps}"


def _labelled(text: str) -> dict[str, str]:
    """Return what stands after each label, up to the next; after that of the steps, all the rest."""
    texts: dict[str, str] = {}
    label = ""
    for line in text.strip().splitlines():
        match = _LABEL.fullmatch(line) if label != "steps" else None
        if match and match[1].lower() not in texts:
            label = match[1].lower()
            texts[label] = match[2].rstrip(" *_")
        elif label:
            texts[label] += f"\n{line}"
    return {name: value.strip() for name, value in texts.items()}


compare = ModelNode(
    "compare",
    ask_for_comparison,
    read_comparison,
    no_verdict,
    started="Comparing two procedures.",
)


def _begin(state: Mapping[str, Any], resources: Resources[DuplicatesContext]) -> Update:
    """Check both procedures.

    Raises:
        BadInput: A part of the input, a setting or a name cannot be used.
    """
    contents = {name: _content(name, state.get(name)) for name in ("first", "second")}
    return {**run_keys(resources, [compare.name]), **contents, **no_verdict(state, "")}


def _content(name: str, value: object) -> Content:
    if not isinstance(value, Mapping):
        kind = type(value).__name__
        raise BadInput(f"{name} must be a procedure with output, input and steps, not {kind}")
    fields = {key: value[key] for key in Content.__required_keys__ if key in value}
    try:
        return content_of(Procedure.from_dict(fields))
    except BadInput as error:
        raise BadInput(f"{name}: {error}") from None


def content_of(procedure: Procedure) -> Content:
    """Return what a procedure says."""
    return Content(output=procedure.output, input=procedure.input, steps=list(procedure.steps))


def duplicates_builder(
    turns: asyncio.Semaphore | None = None, **options: Unpack[BuilderOptions]
) -> StateGraph[CompareState, DuplicatesContext, CompareInput, CompareOutput]:
    """Return the comparison as an uncompiled graph."""
    resources = Resources.of("duplicates", DuplicatesContext, options)
    builder = StateGraph(
        CompareState, DuplicatesContext, input_schema=CompareInput, output_schema=CompareOutput
    )
    builder.add_node("begin", resources.bind(_begin))
    builder.add_node("compare", NodeInTurn(compare, resources, turns))
    builder.add_edge(START, "begin")
    builder.add_edge("begin", "compare")
    builder.add_edge("compare", END)
    return builder


def build_duplicates(
    turns: asyncio.Semaphore | None = None, **options: Unpack[GraphOptions]
) -> CompiledStateGraph[CompareState, DuplicatesContext, CompareInput, CompareOutput]:
    """Build and compile the graph that compares two procedures.

    Without a model, and without one in `STEPCRAFT_MODEL`, procedures are for the same task where
    their outputs are equal.

    Args:
        turns: Limits the model calls at the same time of all runs of the graphs that share it.
        **options: The models and settings, and what `compile` takes; nothing is searched.

    Raises:
        BadInput: An option is of another kind than it has to be.
    """
    return compiled(partial(duplicates_builder, turns), "duplicates", options)
