"""The keyless model's replies about documents and stored procedures, used to build a memory."""

import re

from stepcraft.models.keyless.material import Material, statements
from stepcraft.text.clean import normalised
from stepcraft.text.lists import numbered, read_bullets, read_steps
from stepcraft.text.markdown import lines
from stepcraft.text.names import names_in

_MAX_STEPS = 20
_HEADING = re.compile(r" {0,3}#{1,6}[ \t]++(?!(?:Goal|At hand|Answer|Call \d+: .*)$)(.*)")
"""A heading, unless it belongs to a transcript, which is treated as a single section."""
_CALL = re.compile(r"(?ms)^# Call \d+: `([^\n]+)`\n\n(?>(`{3,})\n(.*?)\n\2)(?!\n\nIt failed:)")
_ARGUMENT = re.compile(r"(?m)^(\w+): ")
_NUMBERED_HOW_TO = re.compile(r"(?i)^(?:\d+(?:\.\d+)*[.)]?\s+)?(?:how (?:to|do you|do i)\s+)?")


def find_procedures(material: Material) -> str:
    """Turn the calls in a transcript, or the sections that contain a list, into procedures."""
    title, text = material.text("titles").partition("\n")[0], material.text("text")
    blocks = (_block(heading or title, body) for heading, body in _sections(text))
    return "\n\n".join(filter(None, blocks)) or (
        f"REJECTED\nOutput: {title or 'a text without a title'}\n"
        "Reason: no section has a list of steps\n"
        f"Sentence: {''.join(statements(text)[:1])}"
    )


def judge(material: Material) -> str:
    """Return whether the last call in a transcript succeeded."""
    failed = "\nIt failed:\n" in material.text("text").rpartition("\n# Call ")[2]
    return f"{'NOT ' * failed}REACHED\nThe last call {'failed' if failed else 'succeeded'}."


def compare(material: Material) -> str:
    """Compare the outputs of two procedures; if they are equal, keep one that has all the steps."""
    texts = [section.text for section in material.named("procedure")]
    if len({normalised(text.partition("\n")[0]).casefold() for text in texts}) > 1:
        return "DIFFERENCE: their outputs are not equal\nVERDICT: DIFFERENT"
    longest = max(texts, key=lambda text: len(read_steps(text)), default="")
    has_all = all(set(read_steps(text)) <= set(read_steps(longest)) for text in texts)
    return f"DIFFERENCE: NONE\nVERDICT: SAME\n{longest if has_all else ''}"


def _calls(text: str) -> list[str]:
    """Return the successful calls in a transcript, as steps."""
    return [
        f"Call `{tool}` with "
        f"{', '.join(f'`{name}`' for name in _ARGUMENT.findall(arguments)) or 'no arguments'}."
        for tool, _, arguments in _CALL.findall(text)
    ]


def _block(heading: str, body: str) -> str:
    """Return a section as a procedure, with its calls or else its list items as steps, or ""."""
    steps = list(dict.fromkeys(_calls(body) or read_bullets(body)))[:_MAX_STEPS]
    if not heading or len(steps) < 2:
        return ""
    output = _NUMBERED_HOW_TO.sub("", heading).strip(" ?.") or heading
    names = ", ".join(f"`{name}`" for name in [*names_in([body])][:3])
    head = f"PROCEDURE\nHeading: {heading}\nOutput: {output[0].lower()}{output[1:]}"
    resources = names or f"what {heading!r} starts from"
    return f"{head}\nInput: {resources}\n{numbered(steps)}"


def _sections(text: str) -> list[list[str]]:
    """Return each heading with the text below it, and "" with any text before the first heading."""
    sections = [["", ""]]
    for row, is_code in lines(text):
        if not is_code and (heading := _HEADING.match(row)):
            sections.append([heading[1].rstrip(" \t#"), ""])
        else:
            sections[-1][1] += row
    return sections
