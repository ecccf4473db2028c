"""Named sections of a prompt: what came from outside, fenced off so that it stays material.

A section is `<name id="…">`, the text, `</name>`, each on its own line. Inside the text every tag that bears
the name of a section of ours has its angle bracket replaced, so that no text can close its section or open
another. The keyless model reads the same sections with `parse`.
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
"""Every section name in use. A node that needs another adds it here."""

CONTENT = "NO UPDATE REQUIRED"
"""What a critic replies that has nothing to change."""

UNCHANGED = "NO CHANGE"
"""What is replied where a text is right as it stands."""

NO_INFO = "<no_info>"
"""What a planner replies to a question for whose answer nothing has to be looked up."""

COMPLETE = "<complete>"
"""What a planner replies where the answer says all that was asked."""

NOT_SAID = "The procedures do not say."
"""What is replied to a question that the evidence has no answer to."""

_TAG = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(NAMES)})\b)", re.IGNORECASE)
_NEUTRALISED = re.compile(_TAG.pattern.replace("<", "‹", 1), re.IGNORECASE)
_SECTION = re.compile(
    rf'<(?P<name>{"|".join(NAMES)})(?: id="(?P<id>[^"\n]*)")?>\n(?P<text>.*?)\n</(?P=name)>', re.DOTALL
)


@dataclass(frozen=True)
class Section:
    """One section as it was parsed: its name, its id ("" if it has none), its text."""

    name: str
    id: str
    text: str


def section(name: str, text: str, *, id: str = "") -> str:  # noqa: A002 - the attribute is called id
    """One section around a text, cleaned and with every section tag in it neutralised."""
    if name not in NAMES:
        raise ValueError(f"{name!r} is not a section name; add it to stepcraft.sections.NAMES")
    attribute = f' id="{id}"' if id else ""
    return f"<{name}{attribute}>\n{_TAG.sub('‹', clean(text))}\n</{name}>"


def restored(text: str) -> str:
    """A reply that repeats material, with the tags that `section` neutralised as they were."""
    return _NEUTRALISED.sub("<", text)


def parse(prompt: str) -> Iterator[Section]:
    """The sections of a prompt, in order."""
    for match in _SECTION.finditer(prompt):
        yield Section(match["name"], match["id"] or "", match["text"])
