"""Named sections of a prompt, which keep external material apart from instructions.

A section consists of `<name id="…">`, the text and `</name>`, each on its own line. A tag in the
text that could open or close a section of the same prompt gets a dot after its bracket, and
`restored` removes that dot from the reply. The keyless model reads prompts with `parse`.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stepcraft.text.clean import clean

_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters that are not displayed: default-ignorable ones, interlinear marks, blank Braille."""
_OPENING = re.compile(r'<([a-z_]+)(?: id="([^"\n]*+)")?>\n')
_BRACKET = "[<\uff1c\ufe64]"
"""The characters that NFKC turns into `<`."""
_TAG = re.compile(rf"{_BRACKET}(?=([\s/{_INVISIBLE}]*+.{{0,60}}))", re.DOTALL)
_DOT = "\u00b7"
_DOTTED = re.compile(rf"(?<={_BRACKET}){_DOT}(?![,.;:!?|)>])")


class Section(NamedTuple):
    """A section of a prompt."""

    name: str
    id: str
    """The value of its `id` attribute, or "" if it has none."""
    text: str


def written(sections: Sequence[Section]) -> str:
    """Write sections one below the other, neutralising anything that looks like one of their tags.

    Tags are recognised in upper or lower case, with whitespace or invisible characters in them, and
    in other forms of ASCII characters, such as full-width ones (Unicode's NFKC).
    """
    names = "|".join({section.name for section in sections} | {"reply_format"})
    tag = re.compile(rf"{_DOT}|[\s/]*+(?:{names})\b", re.IGNORECASE)

    def neutralised(text: str) -> str:
        return _TAG.sub(lambda it: it[0] + (_DOT if tag.match(_plain(it[1])) else ""), text)

    return "\n\n".join(
        f"<{name}{_attribute(neutralised(id_))}>\n{neutralised(clean(text))}\n</{name}>"
        for name, id_, text in sections
    )


def restored(text: str) -> str:
    """Return a reply with its tags as they were in the material."""
    return _DOTTED.sub("", text)


def _attribute(value: str) -> str:
    quoted = value.replace('"', "'").replace("\n", " ")
    return f' id="{quoted}"' if value else ""


def _plain(text: str) -> str:
    """Return the text as a model may read it, in NFKC and without invisible characters."""
    return re.sub(f"[{_INVISIBLE}]", "", unicodedata.normalize("NFKC", text))


def parse(prompt: str) -> Iterator[Section]:
    """Yield the sections in a prompt, in order."""
    position = 0
    unclosed: set[str] = set()
    while match := _OPENING.search(prompt, position):
        name, position = match[1], match.end()
        stop = -1 if name in unclosed else prompt.find(f"\n</{name}>", position)
        if stop < 0:
            unclosed.add(name)  # not searched for again, as that would take quadratic time
        else:
            yield Section(name, match[2] or "", prompt[position:stop])
            position = stop
