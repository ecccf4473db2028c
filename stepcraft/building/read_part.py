"""Write the procedures that a part of a document teaches, and what in it is none."""

import re
from collections import defaultdict
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
    r"^[\s#*_>-]*+(output|input|heading|reason|sentence|goal)s?[*_ ]*+[:\uff1a][*_]*+",
    re.IGNORECASE | re.MULTILINE,
)
_FIRST_STEP = re.compile(
    r"^[\s#*_>-]*+steps[*_ ]*+[:\uff1a][*_]*+|^(?=\s*(?:\*\*|__)?(?:step\s+)?\d{1,3}[.):\u3001])",
    re.IGNORECASE | re.MULTILINE,
)
_BULLET = re.compile(r"^\s*+(?:[-*\u2022]\s++)?", re.MULTILINE)
_QUOTES = "\"'\u201c\u201d\u2018\u2019\u00ab\u00bb "


class PartRead(TypedDict):
    """What a model wrote of a part of a document."""

    procedures: list[Written]
    rejected: list[Rejected]


def ask_for_procedures(state: State, settings: ExtractContext) -> list[BaseMessage]:
    """Show a part of the document under its title and the headings above it."""
    part: Part = state["reading"]
    instructions = settings.extract_instructions
    if state["kind"] == "transcript":
        instructions = settings.transcript_instructions
    if part["number"]:
        instructions = f"{instructions.rstrip()}\n{settings.part_instructions}"
    titles = "\n".join(filter(None, (state["title"], part["place"])))
    text = re.sub(r"\n(?:[ \t]*\n){3,}", "\n\n\n", part["text"])
    sections = [
        Section("titles", "", titles) if titles else None,
        Section("text", part["number"], text),
    ]
    return prompt(instructions, FORMAT, "procedures", sections)


def read_procedures(reply: str, _state: State, _settings: ExtractContext) -> Update:
    """Return the procedures and the rejected tasks of a reply.

    Raises:
        UnreadableReply: There is neither, or a procedure lacks a part; the update has the others.
    """
    part = PartRead(procedures=[], rejected=[])
    problems: list[str] = []
    for fields, steps in _blocks(answer_text(reply)):
        output = fields["output"] or fields["goal"] or fields["title"]
        content = {"Output": output, "Input": fields["input"], "numbered step": steps}
        lacking = [name for name, value in content.items() if not value]
        if fields["block"] == "REJECTED":
            reason = fields["reason"] or fields["title"]
            task = Rejected(output=output, reason=reason, sentence=fields["sentence"])
            part["rejected"].append(task)
        elif lacking:
            problems.append(f"the procedure {output[:80]!r} has no {' and no '.join(lacking)}.")
        else:
            procedure = Written(
                output=output, input=fields["input"], steps=steps, heading=fields["heading"]
            )
            part["procedures"].append(procedure)
    if problems:
        raise UnreadableReply(" ".join(problems), update={"written": [part]})
    if not part["procedures"] and not part["rejected"]:
        raise UnreadableReply("there was neither a block PROCEDURE nor a block REJECTED in it.")
    return {"written": [part]}


def _blocks(reply: str) -> Iterator[tuple[dict[str, str], list[str]]]:
    """Yield the labelled texts and the steps of each block; what stands before one is a remark."""
    blocks: list[tuple[re.Match[str], list[str]]] = []
    for line, is_code in markdown.lines(reply):
        block = None if is_code else _BLOCK.match(line.rstrip("*_ \t\r\n"))
        # "Procedure calls are …" begins no block: with more on its line, the word is in capitals.
        if block and (not block[2] or block[1].isupper()):
            blocks.append((block, []))
        elif blocks:
            blocks[-1][1].append(line)
    for block, lines in blocks:
        head, *steps = _FIRST_STEP.split("".join(lines), maxsplit=1)
        labels = _FIELD.split(head)
        fields = defaultdict(str, block=block[1].upper(), title=block[2])
        for name, text in zip(labels[1::2], labels[2::2], strict=True):
            rows = map(str.strip, _BULLET.sub("", text).splitlines())
            joint = ", " if name.lower() == "input" else " "
            fields[name.lower()] = joint.join(filter(None, rows)).strip(_QUOTES)
        yield fields, read_steps("".join(steps))


extract = ModelNode(
    "extract",
    ask_for_procedures,
    read_procedures,
    lambda _state, _reason: {"unread": 1},
    started="Looking for procedures.",
)
