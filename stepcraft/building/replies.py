"""The text format in which models read and write procedures, and its parsing.

Models label the values (`OUTPUT: …`) and number the steps below them.
"""

import re
from collections import defaultdict
from collections.abc import Iterable

from stepcraft.errors import BadInput
from stepcraft.memory.procedure import Content, Procedure
from stepcraft.text.clean import one_line, unfenced
from stepcraft.text.lists import item_start, numbered, read_bullets, read_steps
from stepcraft.text.sections import Section

PROCEDURE_FORMAT = """\
there follow a line OUTPUT:, a line INPUT: with its resources separated by commas, and a line
STEPS:, under which each step begins on a new line with its number and a full stop: "1. ...". Code
of more than one line stands under its step, between ``` fences. Nothing after that."""
"""The format of a procedure in the replies of `compare` and `repair`."""
CUT_OFF = "the procedure in it was cut off by the token limit."
"""Why a reply's procedure is not used, although it can be read."""

_LABEL = re.compile(
    r"^[\s#*_>`-]*+(output|input|heading|reason|sentence|difference|verdict|cause|procedure)"
    r"[*_` ]*+[:\uff1a][*_]*+",
    re.IGNORECASE | re.MULTILINE,
)
STEPS = re.compile(r"^[\s#*_>`-]*+steps[*_` ]*+[:\uff1a][*_]*+", re.IGNORECASE | re.MULTILINE)
"""The label above the steps."""


def sections_of(procedures: Iterable[Content]) -> list[Section]:
    """Return procedures as sections of a prompt, numbered from 1."""
    return [
        Section("procedure", str(number), as_text(procedure))
        for number, procedure in enumerate(procedures, 1)
    ]


def as_text(procedure: Content) -> str:
    """Return a procedure in the format in which models read and write procedures."""
    steps = numbered(procedure["steps"])
    return f"OUTPUT: {procedure['output']}\nINPUT: {procedure['input']}\nSTEPS:\n{steps}"


def labelled(text: str, first_step: re.Pattern[str]) -> tuple[defaultdict[str, str], list[str]]:
    """Return the labelled values in a text ("" if missing), and the steps below them."""
    head, *rest = first_step.split(text, maxsplit=1)
    labels = _LABEL.split(head)
    texts = zip(map(str.lower, labels[1::2]), map(str.strip, labels[2::2]), strict=True)
    values = defaultdict(str, texts)
    for name in {"output", "input"} & {*values}:
        values[name] = _on_one_line(values[name])
    return values, read_steps("".join(rest))


def unfit(procedure: Content) -> str:
    """Return why a procedure in a reply cannot be kept, or "" if it can."""
    try:
        Procedure.from_dict(procedure)
    except BadInput as error:
        return f"cannot be kept: {error}."
    return ""


def unknown(names: Iterable[str], nowhere: str) -> str:
    """Return why a procedure in a reply cannot be kept if names in it were not in the prompt."""
    return (
        f"has {', '.join(names)}, {nowhere}. Write it with the names, options and numbers that "
        "they have."
    )


def rewritten(reply: str) -> tuple[defaultdict[str, str], Content | None]:
    """Return the labelled values in a reply, and the procedure in it if there is one."""
    texts, steps = labelled(unfenced(reply), STEPS)
    for name, value in texts.items():
        line = value.partition("\n")[0].strip(" *")
        texts[name] = re.sub(r"\A(_+)([^_]+)\1\Z", r"\2", line)
    if not (steps or "output" in texts):
        return texts, None
    output, needs = one_line(texts["output"]), one_line(texts["input"])
    return texts, Content(output=output, input=needs, steps=steps)


def _on_one_line(value: str) -> str:
    """Return the items of a list, or the first paragraph, as one line."""
    first, _, below = value.partition("\n")
    is_list = below and (item_start(first) or first.endswith(":"))
    if is_list and (items := read_bullets(value)):
        texts = (" ".join(item.split()).strip(" ,;") for item in items)
        return ", ".join(re.sub(r"\A(\*+)([^*]+)\1\Z", r"\2", item) for item in texts)
    return " ".join(value.partition("\n\n")[0].split())
