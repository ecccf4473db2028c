"""The questions that a model is asked about a document, and how its replies are read.

The model is asked which procedures each part teaches and, for a transcript, first whether the run
reached its goal.
"""

import re
from collections import deque
from copy import deepcopy

from langchain_core.messages import BaseMessage
from langchain_text_splitters import RecursiveCharacterTextSplitter
from typing_extensions import TypedDict

from stepcraft.building.drafted import Rejected, Written
from stepcraft.building.replies import STEPS, labelled, unfit
from stepcraft.building.settings import ExtractContext
from stepcraft.building.threads import shortened
from stepcraft.errors import UnreadableReply
from stepcraft.llm.node import ModelNode, State, Update
from stepcraft.llm.prompt import prompt
from stepcraft.sources.corpus.content import markdown_headings
from stepcraft.sources.corpus.markup import Heading
from stepcraft.text import markdown
from stepcraft.text.clean import unfenced
from stepcraft.text.sections import Section

_SUCCESS_FORMAT = """\
The first line is REACHED or NOT REACHED, and nothing else. The second line says in one sentence
what that rests on."""
_FORMAT = """\
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

_SUCCESS = re.compile(
    r"[\s*_`#>\"'-]*(NOT )?REACHED\b[\s*_.:,;\uff1a\u2013\u2014-]*(.*)", re.IGNORECASE | re.DOTALL
)
_BLOCK = re.compile(r"[\s#*_>-]*+(PROCEDURE|REJECTED)\b")
_FIRST_STEP = re.compile(
    STEPS.pattern + r"|^(?=\s*(?:\*\*|__)?(?:step\s+)?\d{1,3}[.):\u3001])",
    re.IGNORECASE | re.MULTILINE,
)
# While a text is split, control characters stand for the line breaks before its headings, and for
# the line breaks and spaces in its code.
_BEFORE_HEADING = "\f"
_IN_CODE = str.maketrans("\n ", "\v\x1f")
_AS_BEFORE = str.maketrans("\f\v\x1f", "\n\n ")
_QUOTED = re.compile(
    r'"((?:[^"]|(?<=[\s(])"[^"]*")*)"'
    r"|'([^']*)'|\u201c([^\u201c]*)\u201d|\u2018([^\u2018]*)\u2019|\u00ab([^\u00ab]*)\u00bb"
)


class Part(TypedDict):
    """A part of a document."""

    number: str
    """A label such as "part 1 of 3", or "" for a whole document."""
    place: str
    """The headings above it, outermost first, or "" at the beginning."""
    text: str
    """Its text, including the overlap with the preceding part."""


class PartRead(TypedDict):
    """The procedures and rejected tasks that a model found in a part of a document."""

    procedures: list[Written]
    rejected: list[Rejected]


def parts_of(text: str, settings: ExtractContext) -> list[Part]:
    """Split a document before headings, or else at blank lines or line ends.

    A code block that fits in a part is kept whole. A part has at most `max_characters`, including
    the overlap with the preceding part.
    """
    size = settings.max_characters
    headings = deque(markdown_headings(text))
    marked = [*text]
    for block in markdown.code_blocks(text):
        if block.stop - block.start < size:
            code = text[block.start : block.stop]
            marked[block.start : block.stop] = code.translate(_IN_CODE)
    for heading in headings:
        if heading.start and marked[heading.start - 1] == "\n":
            marked[heading.start - 1] = _BEFORE_HEADING
    chunks = RecursiveCharacterTextSplitter(
        separators=[_BEFORE_HEADING, "\n\n", "\n", " ", ""],
        chunk_size=size,
        chunk_overlap=min(settings.overlap, size // 2),
        strip_whitespace=False,
        add_start_index=True,
    ).create_documents(["".join(marked)] if text.strip() else [])
    parts: list[Part] = []
    above: list[Heading] = []
    for number, chunk in enumerate(chunks, 1):
        while headings and headings[0].start < chunk.metadata["start_index"]:
            heading = headings.popleft()
            above = [*(each for each in above if each.level < heading.level), heading]
        parts.append(
            Part(
                number=f"part {number} of {len(chunks)}" if len(chunks) > 1 else "",
                place=" > ".join(heading.text for heading in above),
                text=chunk.page_content.translate(_AS_BEFORE),
            )
        )
    return parts


def ask_for_success(state: State, settings: ExtractContext) -> list[BaseMessage]:
    """Return a prompt with the transcript, or with the beginning and end of a long one."""
    sections = [Section("text", "", shortened(state["text"], settings.max_characters))]
    return prompt(settings.success_instructions, _SUCCESS_FORMAT, "success", sections)


def read_success(reply: str, state: State, _settings: ExtractContext) -> Update:
    """Return whether the run succeeded; if not, also return the reason as a rejection.

    Raises:
        UnreadableReply: There is no verdict on the first line.
    """
    verdict = _SUCCESS.match(unfenced(reply))
    if not verdict:
        raise UnreadableReply("it began neither with REACHED nor with NOT REACHED.")
    if not verdict[1]:
        return {"succeeded": True}
    reason = f"it did not reach its goal: {' '.join(verdict[2].split())}".rstrip(" :")
    rejected = Rejected(output=state["title"], reason=reason, sentence="")
    return {"succeeded": False, "rejected": [rejected]}


def ask_for_procedures(state: State, settings: ExtractContext) -> list[BaseMessage]:
    """Return a prompt with the document's title, the headings above a part, and the part."""
    part: Part = state["reading"]
    instructions = settings.extract_instructions
    if state["kind"] == "transcript":
        instructions = settings.transcript_instructions
    if part["number"]:
        instructions = f"{instructions.rstrip()}\n{settings.part_instructions}"
    sections = [Section("text", part["number"], part["text"])]
    if titles := "\n".join(filter(None, (state["title"], part["place"]))):
        sections.insert(0, Section("titles", "", titles))
    return prompt(instructions, _FORMAT, "procedures", sections)


def read_procedures(reply: str, state: State, _settings: ExtractContext) -> Update:
    """Return the procedures and rejected tasks in a reply, appended to those of any first reply.

    Raises:
        UnreadableReply: The reply contains neither, or it was cut off or contains a procedure that
            cannot be kept; the error's `update` has the others.
    """
    blocks = _blocks(unfenced(reply))
    problems: list[str] = []
    unread = int(state.get("cut_off", False))
    if unread:
        del blocks[-1:]
        problems.append("its last block was cut off by the token limit.")
    elif not blocks:
        raise UnreadableReply("there was neither a block PROCEDURE nor a block REJECTED in it.")
    first = state.get("first_update") or {"written": [PartRead(procedures=[], rejected=[])]}
    part: PartRead = deepcopy(first["written"][0])
    for kind, text in blocks:
        values, steps = labelled(text, _FIRST_STEP)
        for name, value in values.items():
            line = " ".join(value.split())
            quoted = _QUOTED.fullmatch(line)
            values[name] = quoted[quoted.lastindex or 0].strip() if quoted else line
        output = values["output"]
        written = Written(
            output=output, input=values["input"], steps=steps, heading=values["heading"]
        )
        if kind == "REJECTED":
            task = Rejected(output=output, reason=values["reason"], sentence=values["sentence"])
            part["rejected"].append(task)
        elif problem := unfit(written):
            problems.append(f"the procedure {output[:80]!r} {problem}")
        else:
            part["procedures"].append(written)
    if problems:
        raise UnreadableReply(" ".join(problems), update={"written": [part], "unread": unread})
    return {"written": [part]}


def _blocks(reply: str) -> list[tuple[str, str]]:
    """Return the first word and the other lines of each block, without any leading text."""
    blocks: list[tuple[str, list[str]]] = []
    for line, is_code in markdown.lines(reply):
        if not is_code and (block := _BLOCK.match(line)):
            blocks.append((block[1], []))
        elif blocks:
            blocks[-1][1].append(line)
    return [(kind, "".join(lines)) for kind, lines in blocks]


success = ModelNode(
    "success",
    ask_for_success,
    read_success,
    # If no model could tell, the run is left unread, and the next build asks again.
    lambda _state, _reason: {"succeeded": False, "unread": 1},
    started="Asking whether the run reached its goal.",
)
extract = ModelNode(
    "extract",
    ask_for_procedures,
    read_procedures,
    lambda _state, _reason: {"unread": 1},
    started="Looking for procedures.",
)
