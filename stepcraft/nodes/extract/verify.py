"""Ask whether somebody can reach the output of a procedure with its steps alone."""

import re
from typing import Any

from langchain_core.messages import BaseMessage

from stepcraft.contexts.extract import ExtractContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import asked_sections, prompt
from stepcraft.llm.reply import text_of
from stepcraft.nodes.extract.drafted import Drafted
from stepcraft.progress import Said, quoted
from stepcraft.text.lists import numbered
from stepcraft.text.sections import REACHED, UNDECIDED, section

_FORMAT = f"""\
If the goal is reached, one word and nothing else: {REACHED}
Otherwise "MISSING:" and, in one or two sentences, what the reader lacks."""

_MISSING = re.compile(r"[\s*_#]*MISSING[\s*_]*[:\uff1a-]?[\s*_]*(.*)", re.IGNORECASE | re.DOTALL)


class Reading(Budgeted):
    """The input of this node, sent for each procedure."""

    drafted: Drafted


def ask(state: Reading, context: ExtractContext) -> list[BaseMessage]:
    """Show the output as the goal, the input as the resources, and the steps; not the document."""
    procedure = state["drafted"]
    sections = [
        *asked_sections("goal", procedure["output"], procedure["input"]),
        section("steps", numbered(procedure["steps"])),
    ]
    return prompt(context.verify_instructions, _FORMAT, "verdict", sections)


def read(reply: str, state: Reading, _context: ExtractContext) -> dict[str, Any]:
    """The procedure with the verdict."""
    text = text_of(reply)
    if missing := _MISSING.match(text):
        if not missing[1].strip():
            raise UnreadableReply('there was nothing behind "MISSING:".')
        return {"procedures": [_with(state, verified=False, missing=" ".join(missing[1].split()))]}
    word = text.strip("*_`\"'. \n").upper()
    if word.split()[:1] == [REACHED]:
        return {"procedures": [_with(state, verified=True)]}
    if word == UNDECIDED:
        return unverified(state, "")
    raise UnreadableReply(f'it began neither with {REACHED} nor with "MISSING:".')


def unverified(state: Reading, _why: str) -> dict[str, Any]:
    """The procedure without a verdict."""
    return {"procedures": [_with(state, verified=None)]}


def _with(state: Reading, *, verified: bool | None, missing: str = "") -> Drafted:
    return {**state["drafted"], "verified": verified, "missing": missing}


def starts(state: Reading) -> Said:
    """The procedure that is read."""
    return Said(f"Asking whether the steps reach {quoted(state['drafted']['output'])}.")


def describe(state: Reading, update: dict[str, Any]) -> Said:
    """The verdict."""
    procedure: Drafted = update["procedures"][0]
    output = quoted(state["drafted"]["output"])
    if procedure["verified"] is None:
        return Said(f"It is not known whether the steps reach {output}.")
    outcome = "reach" if procedure["verified"] else "do not reach"
    return Said(f"The steps {outcome} {output}.")


verify = model_node(
    "verify",
    ask,
    read,
    fallback=unverified,
    description="Ask whether the output of a procedure can be reached with its steps alone.",
    starts=starts,
    describe=describe,
)
