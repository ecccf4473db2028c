"""Say whether two procedures are for the same task, and write the one that takes the place of both."""

import re
from typing import Any

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from stepcraft.contexts.duplicates import DuplicatesContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import prompt
from stepcraft.llm.reply import text_of, unwrapped
from stepcraft.progress import Said, quoted
from stepcraft.schema import described
from stepcraft.text.clean import normalised
from stepcraft.text.grounding import Grounds
from stepcraft.text.lists import numbered, read_steps
from stepcraft.text.sections import section

_VERDICT = """\
A line DIFFERENCE: with what somebody who has the one would still lack for the task of the other, in at most twenty words, or
the word NONE. Then a line VERDICT: with one word, SAME or DIFFERENT."""
_MERGED = """
With SAME, and where one procedure can take the place of both, there follow a line OUTPUT:, a line INPUT: with its resources
separated by commas, and a line STEPS:, under which each step begins on a new line with its number and a full stop: "1. ...".
Code of more than one line stands under its step, between ``` fences."""
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


class Reading(Budgeted):
    """The input of this node."""

    first: Content
    second: Content


def ask(state: Reading, context: DuplicatesContext) -> list[BaseMessage]:
    """Show both procedures."""
    instructions, form = context.compare_instructions, _VERDICT
    if context.merge:
        instructions, form = f"{instructions.strip()}\n\n{context.merge_instructions}", form + _MERGED
    shown = [
        section("procedure", _text(procedure), id=str(number))
        for number, procedure in enumerate((state["first"], state["second"]), 1)
    ]
    return prompt(instructions, form + _END, "comparison", shown)


def read(reply: str, state: Reading, context: DuplicatesContext) -> dict[str, Any]:
    """The verdict with its reason and, where it is asked for and given, the merged procedure.

    Raises:
        UnreadableReply: There is no verdict in it, or the merged procedure is not complete, has a step twice, names what
            neither procedure has, or lacks a name that both have.
    """
    lines = _labelled(unwrapped(text_of(reply)))
    verdicts = set(_WORD.findall(lines.get("verdict", "").partition("\n")[0].upper()))
    if len(verdicts) != 1:
        raise UnreadableReply("there was no line VERDICT: with one of the words SAME and DIFFERENT.")
    difference = " ".join(lines.get("difference", "").split())[:300]
    why = "" if _NONE.fullmatch(difference) else difference.rstrip(" .")
    update: dict[str, Any] = {
        "same": verdicts == {"SAME"},
        "why": why,
        "merged": None,
        "left_out": [],
    }
    if not (context.merge and update["same"] and lines.keys() & {"output", "input", "steps"}):
        return update
    steps = read_steps(lines.get("steps", "")) or list(filter(None, [lines.get("steps", "")]))
    merged = Content(
        output=normalised(lines.get("output", "")), input=normalised(lines.get("input", "")), steps=steps
    )
    if problem := _problem(merged, state):
        raise UnreadableReply(problem, update=update)
    left_out = [*_missing(state["first"], merged), *_missing(state["second"], merged)]
    return {**update, "merged": merged, "left_out": list(dict.fromkeys(left_out))}


def _problem(merged: Content, state: Reading) -> str:
    """What is wrong with a merged procedure, as the model is told; "" if nothing is."""
    for name in ("output", "input", "steps"):
        if not merged[name]:
            return f"the procedure in place of both has nothing under {name.upper()}:."
    originals = [state["first"], state["second"]]
    repeats = [step for place, step in enumerate(merged["steps"]) if step in merged["steps"][:place]]
    if repeats and not any(one["steps"].count(repeats[0]) > 1 for one in originals):
        return f"the procedure in place of both has the step {quoted(repeats[0])} twice."
    if invented := _missing(merged, *originals):
        return (
            f"the procedure in place of both has {', '.join(invented)}, which stands in neither of the two. Write it with the "
            "names, options and numbers that they have."
        )
    lost = [name for name in _missing(originals[0], merged) if name in _missing(originals[1], merged)]
    if lost:
        return f"the procedure in place of both lacks {', '.join(lost)}, which both of them have. Write all of it."
    return ""


def _missing(procedure: Content, *others: Content) -> list[str]:
    """The names, options and numbers of a procedure that no other one has."""
    grounds = Grounds("\n\n".join(part for other in others for part in _parts(other)))
    missing = grounds.missing(_parts(procedure))
    return list(dict.fromkeys(name for found in missing.values() for name in found))


def _parts(procedure: Content) -> list[str]:
    return [procedure["output"], procedure["input"], *procedure["steps"]]


def _text(procedure: Content) -> str:
    steps = numbered(procedure["steps"], code_at_margin=True)
    return f"OUTPUT: {procedure['output']}\nINPUT: {procedure['input']}\nSTEPS:\n{steps}"


def _labelled(text: str) -> dict[str, str]:
    """What stands after each label, up to the next one; after that of the steps, all that follows."""
    found: dict[str, str] = {}
    label = ""
    for line in text.strip().splitlines():
        match = _LABEL.fullmatch(line) if label != "steps" else None
        if match and match[1].lower() not in found:
            label = match[1].lower()
            found[label] = match[2].rstrip(" *_")
        elif label:
            found[label] += f"\n{line}"
    return {name: value.strip() for name, value in found.items()}


def no_verdict(_state: Reading, why: str) -> dict[str, Any]:
    """Neither verdict."""
    return {"same": None, "why": why, "merged": None, "left_out": []}


def starts(state: Reading) -> Said:
    """What is compared."""
    return Said(f"Comparing {quoted(state['first']['output'])} with {quoted(state['second']['output'])}.")


def describe(_state: Reading, update: dict[str, Any]) -> Said:
    """The verdict."""
    if not update["same"]:
        return Said(f"They are for different tasks: {update['why'] or 'no reason is given'}.")
    return Said(
        "They are for the same task" + (", and were merged." if update["merged"] else "; both are kept.")
    )


compare = model_node(
    "compare",
    ask,
    read,
    fallback=no_verdict,
    description="Say whether both are for the same task, and merge them if they are.",
    starts=starts,
    describe=describe,
)
