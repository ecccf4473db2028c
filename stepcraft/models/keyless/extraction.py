"""Replies of the keyless model to documents: the lists and the imperative sentences of their sections as procedures."""

import re
from collections.abc import Iterator, Sequence

from stepcraft.models.keyless.material import Material
from stepcraft.text.lists import numbered, read_steps
from stepcraft.text.markdown import lines
from stepcraft.text.names import names_in
from stepcraft.text.sections import UNDECIDED
from stepcraft.text.sentences import sentences

MAX_STEPS = 20
_MAX_INPUTS = 3
_LONGEST_STEP = 600

_HEADING = re.compile(r" {0,3}#{1,6}[ \t]+(.*?)[ \t#]*$")
_ITEM = re.compile(r"[ \t]{0,3}\d{1,3}[.)][ \t]+\S")
_BULLET = re.compile(r"^[ \t]*(?:[-*+\u2022]|\d{1,3}[.)])[ \t]+")
_HOW_TO = re.compile(r"(?:how to|how do you|how do i)\s+", re.IGNORECASE)
_IMPERATIVE = re.compile(
    r"(?:(?:first|then|next|now|finally|optionally|afterwards)[, ]+)?(?:add|adjust|append|apply|assign|attach|build|call|change|check"
    r"|choose|clear|click|clone|close|commit|compile|configure|confirm|connect|copy|create|declare|define|delete|deploy"
    r"|disable|download|edit|enable|ensure|enter|execute|export|fill|find|follow|generate|give|go to|grant|import|include|initiali[sz]e|insert"
    r"|inspect|install|instantiate|invoke|launch|load|log in|look up|make|mark|modify|move|name|navigate|open|paste|pass|pick|place|prepare"
    r"|press|provide|publish|pull|push|put|read|register|reload|remove|rename|replace|restart|return|review|run|save|scroll"
    r"|select|send|set|share|sign in|sign up|specify|start|stop|store|submit|switch|test|toggle|turn|type|update|upgrade|upload|use|verify"
    r"|visit|wait|wrap|write)\b(?! (?:case|cases)\b)",
    re.IGNORECASE,
)


def find_procedures(material: Material) -> str:
    """One procedure for each section with a numbered list or two imperative sentences; the text is rejected without any."""
    title = material.text("titles").partition("\n")[0]
    text = material.text("text")
    blocks = [
        _block(heading or title, steps, body)
        for heading, body in _sections(text)
        if len(steps := _steps(body)) > 1 and (heading or title)
    ]
    if blocks:
        return "\n\n".join(blocks)
    first = next((one for one in sentences(text) if one[-1:] in ".!?"), "")
    return (
        f"REJECTED\nOutput: {title or 'a text without a title'}\n"
        f"Reason: no section has a list of steps or imperative sentences\nSentence: {first}"
    )


def verdict(_material: Material) -> str:
    """It cannot follow steps."""
    return UNDECIDED


def _block(heading: str, steps: Sequence[str], body: str) -> str:
    output = _HOW_TO.sub("", re.sub(r"^\d+(?:\.\d+)*[.)]?\s+", "", heading)).strip(" ?.") or heading
    names = [f"`{name}`" for name in list(names_in([body]))[:_MAX_INPUTS]]
    given = ", ".join(names) or f"what {heading!r} starts from"
    return f"PROCEDURE\nHeading: {heading}\nOutput: {output[0].lower()}{output[1:]}\nInput: {given}\n{numbered(steps)}"


def _steps(body: str) -> list[str]:
    """The items of the first numbered list, else the sentences that tell the reader to do something."""
    rows = list(lines(body))
    first = next((place for place, (row, code) in enumerate(rows) if not code and _ITEM.match(row)), None)
    if first is not None:
        listed = "".join(row for row, _ in rows[first:])
        if len(steps := read_steps(listed)) > 1:
            return [step[:_LONGEST_STEP] for step in steps[:MAX_STEPS]]
    prose = "".join(_BULLET.sub("", row) if not code else "\n" for row, code in rows)
    told = [one for one in sentences(prose) if _IMPERATIVE.match(one) and not one.endswith("?")]
    return list(dict.fromkeys(one[:_LONGEST_STEP].rstrip(":") for one in told))[:MAX_STEPS]


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Yield each heading with the text below it, up to the next; what stands before the first has none."""
    heading, body = "", ""
    for row, code in lines(text):
        if not code and (found := _HEADING.match(row.rstrip("\n"))):
            yield heading, body
            heading, body = found[1], ""
        else:
            body += row
    yield heading, body
