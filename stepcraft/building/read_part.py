"""Write the procedures that a part of a document teaches, and what in it is none."""

import re
from collections.abc import Iterator

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from stepcraft.building.drafted import Rejected, Written
from stepcraft.building.parts import Part
from stepcraft.building.settings import ExtractContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import ModelNode, State, Update
from stepcraft.llm.prompt import prompt
from stepcraft.llm.reply import answer_text
from stepcraft.text import markdown
from stepcraft.text.lists import read_steps
from stepcraft.text.sections import Section

FORMAT = """\
Blocks with a blank line between them, in the order of the text, and nothing else. For each
procedure:
PROCEDURE
Heading: the heading of the text under which it stands, copied exactly, without its number signs
Output: what is reached, with the verb first, as in "add a tool to an agent"
Input: what has to be there before, separated by commas
1. the first step
2. the second step
For what looks like a task and is none, and where there is no procedure at all:
REJECTED
Output: what it is about, in a few words
Reason: why it is no procedure, in one sentence
Sentence: the one sentence of the text that shows it, copied word for word
Each step begins on a new line with its number and a full stop. Names, calls, options, files,
commands and values stand between backticks. Code of more than one line stands under its step,
between ``` fences. No lists within a step."""

_BLOCK = re.compile(
    r"[\s#*_>-]*+(PROCEDURE|REJECTED)\b(?:[ \t]++\d{1,3})?+[\s*_:.]*+(.*)", re.IGNORECASE
)
_FIELD = re.compile(
    r"[\s#*_>-]*+(heading|output|goal|inputs?|reason|sentence)[*_ ]*+[:\uff1a][*_]*+\s*+(.*)",
    re.IGNORECASE,
)
_STEPS = re.compile(r"[\s#*_>-]*+steps[*_ ]*+[:\uff1a][*_]*+[ \t]*+", re.IGNORECASE)
_FIRST_STEP = re.compile(r"\s*(?:\*\*|__)?(?:step\s+)?\d{1,3}[.):\u3001]", re.IGNORECASE)
_BULLET = re.compile(r"\A\s*+[-*\u2022]\s++")
_QUOTES = "\"'\u201c\u201d\u2018\u2019\u00ab\u00bb"


class PartRead(TypedDict):
    """What a model wrote of a part of a document."""

    part: int
    """The number of the part."""
    procedures: list[Written]
    rejected: list[Rejected]
    unread: bool
    """Whether the call failed or was not made."""


def ask_for_procedures(state: State, settings: ExtractContext) -> list[BaseMessage]:
    """Show a part of the document under its title and the headings above it."""
    part: Part = state["reading"]
    is_transcript = state["kind"] == "transcript"
    instructions = (
        settings.transcript_instructions if is_transcript else settings.extract_instructions
    )
    number = ""
    if part["parts"] > 1:
        number = f"part {part['part']} of {part['parts']}"
        instructions = f"{instructions.rstrip()}\n{settings.part_instructions}"
    titles = "\n".join(filter(None, (state["title"], part["place"])))
    text = re.sub(r"\n(?:[ \t]*\n){3,}", "\n\n\n", part["text"])
    sections = [Section("titles", "", titles) if titles else None, Section("text", number, text)]
    return prompt(instructions, FORMAT, "procedures", sections)


def read_procedures(reply: str, state: State, _settings: ExtractContext) -> Update:
    """Return the procedures and the rejected tasks of a reply.

    Raises:
        UnreadableReply: There is neither, or a procedure lacks a part; the update has the others.
    """
    part = PartRead(part=state["reading"]["part"], procedures=[], rejected=[], unread=False)
    problems: list[str] = []
    for fields, steps in _blocks(answer_text(reply)):
        output = fields.get("output") or fields["title"]
        resources, heading, reason, sentence = (
            fields.get(name, "").strip(_QUOTES)
            for name in ("input", "heading", "reason", "sentence")
        )
        content = {"Output": output, "Input": resources, "numbered step": steps}
        if fields["block"] == "REJECTED":
            task = Rejected(output=output, reason=reason or fields["title"], sentence=sentence)
            part["rejected"] += [task] if task["reason"] or sentence else []
        elif lacking := [name for name, value in content.items() if not value]:
            shown = f"the procedure {output[:80]!r}" if output else "a procedure"
            problems.append(f"{shown} has no {' and no '.join(lacking)}.")
        else:
            part["procedures"].append(
                Written(output=output, input=resources, steps=steps, heading=heading)
            )
    if problems:
        raise UnreadableReply(" ".join(problems), update={"written": [part]})
    if not part["procedures"] and not part["rejected"]:
        raise UnreadableReply("there was neither a block PROCEDURE nor a block REJECTED in it.")
    return {"written": [part]}


def unread_part(state: State, _reason: str) -> Update:
    """Return nothing of this part; what the others hold is kept."""
    number = state["reading"]["part"]
    return {"written": [PartRead(part=number, procedures=[], rejected=[], unread=True)]}


def _blocks(reply: str) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Yield the labelled lines and the steps of each block; what stands before one is a remark."""
    blocks: list[tuple[dict[str, str], list[str]]] = []
    name = ""
    for line, is_code in markdown.lines(reply):
        block = None if is_code else _BLOCK.match(line.rstrip("*_ \t\r\n"))
        # "Procedure calls are …" begins no block: with more on its line, the word is in capitals.
        if block and (not block[2] or block[1].isupper()):
            blocks.append(({"block": block[1].upper(), "title": block[2]}, []))
            name = ""
        elif blocks:
            fields, steps = blocks[-1]
            label = _FIELD.match(line)
            if steps or (not is_code and (_STEPS.match(line) or _FIRST_STEP.match(line))):
                steps.append(line)
            elif label:
                name = label[1].lower().removesuffix("s").replace("goal", "output")
                fields[name] = label[2].rstrip()
            elif name and line.strip():
                text, joint = _BULLET.sub("", line).strip(), ", " if name == "input" else " "
                fields[name] = f"{fields[name]}{joint}{text}" if fields[name] else text
    for fields, steps in blocks:
        yield fields, read_steps(_STEPS.sub("", "".join(steps), count=1))


extract = ModelNode(
    "extract",
    ask_for_procedures,
    read_procedures,
    unread_part,
    started="Looking for procedures.",
)
