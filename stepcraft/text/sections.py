"""Named sections of a prompt, which keep material from outside apart from instructions.

A section is `<name id="…">`, the text and `</name>`, each on its own line. A tag inside the text that could open or
close a section, or that a model could take for such a tag, gets another opening bracket; nothing else is changed. The
keyless model reads prompts with `parse`.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate

from stepcraft.text.clean import clean

NAMES = (
    "answer",
    "conversation",
    "doubts",
    "edits",
    "evidence",
    "goal",
    "names",
    "notes",
    "plan",
    "plans",
    "procedure",
    "question",
    "reply_format",
    "resources",
    "rest",
    "steps",
    "text",
    "thought",
    "titles",
)
"""All section names. A node that needs another one adds it here."""

CONTENT = "NO UPDATE REQUIRED"
"""The reply of a critic that finds nothing to change."""

FAMILIAR = "FAMILIAR"
"""The verdict of a model that knows what a goal is about."""

UNFAMILIAR = "UNFAMILIAR"
"""The verdict of a model that does not."""

UNCHANGED = "NO CHANGE"
"""The reply of a revision that leaves the text as it is."""

NO_INFO = "<no_info>"
"""The reply of a planner to a question that needs no retrieval."""

COMPLETE = "<complete>"
"""The reply of a planner when the answer covers the question."""

REACHED = "REACHED"
"""The verdict of a reader who can reach the output of a procedure with its steps alone, and on a run that did what it was
asked for."""

FAILED = "NOT REACHED"
"""The verdict on a run that did not."""

UNDECIDED = "UNDECIDED"
"""The verdict of the keyless model on any procedure."""

NOT_SAID = "The procedures do not say."
"""The reply to a question that the evidence does not answer."""

_NAME = "|".join(NAMES)
_TAG_END = re.compile(
    rf"""\s*+(?:/\s*+(?:{_NAME})|(?:{_NAME})(?:\s++id\s*+=\s*+(?:"[^"\n]*+"|'[^'\n]*+'))?+)\s*+>""",
    re.IGNORECASE,
)
"""The rest of a tag after its opening bracket; models read blanks inside a tag as if they were not there."""
_NEUTRALISED = {"<": "\u2039", "\uff1c": "\u3008", "\ufe64": "\u27e8"}
"""The characters that NFKC makes `<` of, and what replaces each in a tag: none of that NFKC makes `<`."""
_RESTORED = {other: bracket for bracket, other in _NEUTRALISED.items()}
_BRACKET = re.compile(f"([{''.join([*_NEUTRALISED, *_RESTORED])}])")
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that are not displayed: Unicode's default-ignorable ones, interlinear marks and the empty Braille cell."""
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

    A tag is recognised in any case, with any blanks, with invisible characters in it, and in letters and signs that
    are another form of the ASCII ones, such as full-width ones (Unicode's NFKC).

    Raises:
        ValueError: the name is not among `NAMES`.
    """
    if name not in NAMES:
        raise ValueError(f"{name!r} is not a section name; add it to stepcraft.text.sections.NAMES")
    attribute = f' id="{id}"' if id else ""
    return f"<{name}{attribute}>\n{_with_brackets(clean(text), _NEUTRALISED)}\n</{name}>"


def restored(text: str) -> str:
    """Return a reply with the tags that `section` neutralised as they were in the material."""
    return _with_brackets(text, _RESTORED)


def _with_brackets(text: str, others: Mapping[str, str]) -> str:
    """Return the text with another opening bracket in each section tag.

    Args:
        text: the text.
        others: the opening brackets, and what replaces each.
    """
    if not any(bracket in text for bracket in others):
        return text
    parts = _BRACKET.split(text)
    plain = [part if part.isascii() else _plain(part) for part in parts]
    whole = "".join(plain)
    return "".join(
        others[part] if part in others and _TAG_END.match(whole, end) else part
        for part, end in zip(parts, accumulate(map(len, plain)), strict=True)
    )


def _plain(text: str) -> str:
    """Return the text as a model may read it: in NFKC, without invisible characters."""
    return _INVISIBLE.sub("", unicodedata.normalize("NFKC", clean(text)))


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
