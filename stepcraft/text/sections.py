"""Named sections of a prompt, which keep material from outside apart from instructions.

A section is `<name id="…">`, the text and `</name>`, each on its own line. A tag inside the text that could open or
close a section gets another angle bracket (U+2039); nothing else is changed. The keyless model reads prompts
with `parse`.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from stepcraft.text.clean import clean

NAMES = (
    "answer",
    "edits",
    "evidence",
    "goal",
    "notes",
    "plan",
    "plans",
    "question",
    "reply_format",
    "resources",
    "rest",
    "steps",
    "text",
    "thought",
)
"""All section names. A node that needs another one adds it here."""

CONTENT = "NO UPDATE REQUIRED"
"""The reply of a critic that finds nothing to change."""

UNCHANGED = "NO CHANGE"
"""The reply of a revision that leaves the text as it is."""

NO_INFO = "<no_info>"
"""The reply of a planner to a question that needs no retrieval."""

COMPLETE = "<complete>"
"""The reply of a planner when the answer covers the question."""

NOT_SAID = "The procedures do not say."
"""The reply to a question that the evidence does not answer."""

_NAME = "|".join(NAMES)
_TAG_END = rf"""(?=\s*+(?:/\s*+(?:{_NAME})|(?:{_NAME})(?:\s++id\s*+=\s*+(?:"[^"\n]*+"|'[^'\n]*+'))?+)\s*+>)"""
"""The rest of a tag after its bracket; models read blanks inside a tag as if they were not there."""
_TAG = re.compile(f"<{_TAG_END}", re.IGNORECASE)
_NEUTRALISED = re.compile(f"‹{_TAG_END}", re.IGNORECASE)
_OPENING = re.compile(rf'<({_NAME})(?: id="([^"\n]*+)")?>\n')


@dataclass(frozen=True)
class Section:
    """A parsed section."""

    name: str
    id: str
    """The value of its `id` attribute, "" if it has none."""
    text: str


def section(name: str, text: str, *, id: str = "") -> str:  # noqa: A002 - the name of the attribute
    """Return a section with this text, cleaned and with the section tags in it neutralised.

    Raises:
        ValueError: the name is not among `NAMES`.
    """
    if name not in NAMES:
        raise ValueError(f"{name!r} is not a section name; add it to stepcraft.text.sections.NAMES")
    attribute = f' id="{id}"' if id else ""
    return f"<{name}{attribute}>\n{_TAG.sub('‹', clean(text))}\n</{name}>"


def restored(text: str) -> str:
    """Return a reply with the tags that `section` neutralised as they were in the material."""
    return _NEUTRALISED.sub("<", text)


def parse(prompt: str) -> Iterator[Section]:
    """Yield the sections of a prompt, in order."""
    position = 0
    unclosed: set[str] = set()
    while match := _OPENING.search(prompt, position):
        name, position = match[1], match.end()
        stop = -1 if name in unclosed else prompt.find(f"\n</{name}>", position)
        if stop < 0:
            unclosed.add(name)  # not searched for again, which would take quadratic time
        else:
            yield Section(name, match[2] or "", prompt[position:stop])
            position = stop
