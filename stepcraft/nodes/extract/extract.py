"""Write the procedures that a part of a document teaches, and what in it is none."""

import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage
from typing_extensions import TypedDict

from stepcraft.contexts.extract import ExtractContext
from stepcraft.errors import UnreadableReply
from stepcraft.llm.budget import Budgeted
from stepcraft.llm.node import model_node
from stepcraft.llm.prompt import prompt
from stepcraft.llm.reply import text_of
from stepcraft.nodes.extract.drafted import Rejected
from stepcraft.nodes.extract.parts import Part
from stepcraft.progress import Said, counted, quoted
from stepcraft.text import markdown
from stepcraft.text.lists import read_steps
from stepcraft.text.sections import section

FORMAT = """\
Blocks with a blank line between them, in the order of the text, and nothing else. For each procedure:
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
Each step begins on a new line with its number and a full stop. Names, calls, options, files, commands and values stand
between backticks. Code of more than one line stands under its step, between ``` fences. No lists within a step."""

_BLOCK = re.compile(r"[\s#*_>-]*+(PROCEDURE|REJECTED)\b(?:[ \t]++\d{1,3})?+[\s*_:.]*+(.*)", re.IGNORECASE)
_FIELD = re.compile(
    r"[\s#*_>-]*+(heading|output|goal|input|inputs|steps|reason|sentence)[*_ ]*+[:\uff1a][*_]*+\s*+(.*)",
    re.IGNORECASE,
)
_FIRST_STEP = re.compile(r"\s*(?:\*\*|__)?(?:step\s+)?\d{1,3}[.):\u3001]", re.IGNORECASE)
_BULLET = re.compile(r"\A\s*+[-*\u2022]\s++")
_QUOTES = "\"'\u201c\u201d\u2018\u2019\u00ab\u00bb"


class Written(TypedDict):
    """A procedure as a model wrote it."""

    output: str
    input: str
    steps: list[str]
    heading: str


class PartRead(TypedDict):
    """What a model found in a part of a document."""

    part: int
    """The number of the part."""
    procedures: list[Written]
    rejected: list[Rejected]
    unread: bool
    """Whether the call failed or was not made."""


class Reading(Budgeted):
    """The input of this node, sent for each part."""

    title: str
    kind: str
    reading: Part


def ask(state: Reading, context: ExtractContext) -> list[BaseMessage]:
    """Show a part of the document under its title; of a part that is not the first, also the headings above it."""
    part = state["reading"]
    told = context.transcript_instructions if state["kind"] == "transcript" else context.extract_instructions
    number = ""
    if part["parts"] > 1:
        number = f"part {part['part']} of {part['parts']}"
        told = f"{told.rstrip()}\n{context.part_instructions}"
    titles = "\n".join(filter(None, (state["title"], part["place"])))
    text = re.sub(r"\n(?:[ \t]*\n){3,}", "\n\n\n", part["text"])
    sections = [section("titles", titles) if titles else "", section("text", text, id=number)]
    return prompt(told, FORMAT, "procedures", sections)


def read(reply: str, state: Reading, _context: ExtractContext) -> dict[str, Any]:
    """The procedures and the rejected tasks of a reply."""
    found = PartRead(part=state["reading"]["part"], procedures=[], rejected=[], unread=False)
    problems: list[str] = []
    for block in _blocks(text_of(reply)):
        if block.rejected:
            reason = block.fields.get("reason", "") or block.title
            sentence = block.fields.get("sentence", "").strip(_QUOTES)
            output = block.fields.get("output", "") or block.title
            if reason or sentence:
                found["rejected"].append(Rejected(output=output, reason=reason, sentence=sentence))
            continue
        output, given = block.fields.get("output", "") or block.title, block.fields.get("input", "")
        steps = read_steps(block.steps)
        lacking = [name for name, value in (("Output", output), ("Input", given)) if not value]
        lacking += [] if steps else ["numbered step"]
        if lacking:
            named = f"the procedure {output[:80]!r}" if output else "a procedure"
            problems.append(f"{named} has no {' and no '.join(lacking)}.")
        else:
            heading = block.fields.get("heading", "").strip(_QUOTES)
            found["procedures"].append(Written(output=output, input=given, steps=steps, heading=heading))
    if problems:
        raise UnreadableReply(" ".join(problems), update={"found": [found]})
    if not found["procedures"] and not found["rejected"]:
        raise UnreadableReply("there was neither a block PROCEDURE nor a block REJECTED in it.")
    return {"found": [found]}


def not_read(state: Reading, _why: str) -> dict[str, Any]:
    """Nothing of this part; what the others hold is kept."""
    return {"found": [PartRead(part=state["reading"]["part"], procedures=[], rejected=[], unread=True)]}


class _Block(NamedTuple):
    """A block of a reply."""

    rejected: bool
    title: str
    """What stands behind its name on the same line."""
    fields: dict[str, str]
    steps: str


def _blocks(reply: str) -> list[_Block]:
    """The blocks of a reply; what stands before the first is a remark."""
    blocks: list[tuple[bool, str, list[tuple[str, bool]]]] = []
    for line, code in markdown.lines(reply):
        begun = None if code else _BLOCK.match(line.rstrip("*_ \t\r\n"))
        # A line such as "Procedure calls are …" begins no block: with more on it, the word is in capitals.
        if begun and (not begun[2] or begun[1].isupper()):
            blocks.append((begun[1].upper() == "REJECTED", begun[2], []))
        elif blocks:
            blocks[-1][2].append((line, code))
    return [_Block(rejected, title, *_fields(lines)) for rejected, title, lines in blocks]


def _fields(lines: Sequence[tuple[str, bool]]) -> tuple[dict[str, str], str]:
    """The labelled lines of a block, and the text of its steps; an unlabelled line goes on with the field above it."""
    labelled = any((label := _FIELD.match(line)) and label[1].lower() == "steps" for line, _ in lines)

    def is_head(entry: tuple[str, bool]) -> bool:
        line, code = entry
        label = _FIELD.match(line)
        ends = label[1].lower() == "steps" if labelled and label else not labelled and _FIRST_STEP.match(line)
        return not (code or ends)

    head = list(takewhile(is_head, lines))
    fields: dict[str, list[str]] = {}
    name = ""
    for line, _ in head:
        if label := _FIELD.match(line):
            name = {"goal": "output", "inputs": "input"}.get(label[1].lower(), label[1].lower())
            fields.setdefault(name, []).append(label[2].rstrip())
        elif name and line.strip():
            fields[name].append(_BULLET.sub("", line).strip())
    joined = {
        name: (", " if name == "input" else " ").join(filter(None, values)) for name, values in fields.items()
    }
    rest = [line for line, _ in lines[len(head) :]]
    if rest and (label := _FIELD.match(rest[0])) and label[1].lower() == "steps":
        rest[0] = label[2].rstrip() + "\n"
    return joined, "".join(rest)


def starts(state: Reading) -> Said:
    """The part that is read."""
    part = state["reading"]
    which = f"part {part['part']} of {part['parts']} of " if part["parts"] > 1 else ""
    return Said(f"Looking for procedures in {which}{quoted(state['title'])}.")


def describe(_state: Reading, update: dict[str, Any]) -> Said:
    """How many procedures were found."""
    found: PartRead = update["found"][0]
    written, rejected = len(found["procedures"]), len(found["rejected"])
    return Said(
        f"Found {counted(written, 'procedure')}, and {counted(rejected, 'task')} that are none.",
        {"procedures": written, "rejected": rejected},
    )


extract = model_node(
    "extract",
    ask,
    read,
    fallback=not_read,
    description="Write the procedures that a part of the document teaches.",
    starts=starts,
    describe=describe,
)
