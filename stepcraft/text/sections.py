"""Named sections of a prompt, which keep material from outside apart from instructions.

A section is `<name id="…">`, the text and `</name>`, each on its own line. A tag inside a text that
could open or close a section of the same prompt gets another opening bracket; nothing else is
changed. The keyless model reads prompts with `parse`.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

from stepcraft.text.clean import clean

_NEUTRALISED = {"<": "\u2039", "\uff1c": "\u3008", "\ufe64": "\u27e8"}
"""The characters that NFKC makes `<` of, and what replaces each in a tag, which it leaves."""
_RESTORED = {other: bracket for bracket, other in _NEUTRALISED.items()}
_BRACKET = re.compile(f"([{''.join([*_NEUTRALISED, *_RESTORED])}])")
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that are not displayed: default-ignorable ones, interlinear marks, empty Braille."""
_OPENING = re.compile(r'<([a-z_]+)(?: id="([^"\n]*+)")?>\n')


class Section(NamedTuple):
    """A section of a prompt."""

    name: str
    id: str
    """The value of its `id` attribute, "" if it has none."""
    text: str


def written(sections: Sequence[Section]) -> str:
    """Write sections one below the other, with what looks like one of their tags neutralised.

    A tag is recognised in any case, with any blanks, with invisible characters in it, and in other
    forms of the ASCII letters and signs, such as full-width ones (Unicode's NFKC).
    """
    names = frozenset(section.name for section in sections) | {"reply_format"}
    return "\n\n".join(
        f"<{each.name}{_attribute(each.id)}>\n"
        f"{_with_brackets(clean(each.text), _NEUTRALISED, names)}\n</{each.name}>"
        for each in sections
    )


def restored(text: str, prompt: str) -> str:
    """Return a reply with the tags of the prompt's sections as they were in the material."""
    return _with_brackets(text, _RESTORED, frozenset(each.name for each in parse(prompt)))


def _attribute(value: str) -> str:
    quoted = value.replace('"', "'").replace("\n", " ")
    return f' id="{quoted}"' if value else ""


@lru_cache(maxsize=64)
def _tag_end(names: frozenset[str]) -> re.Pattern[str]:
    """Match the rest of a tag after its bracket; models read over blanks inside a tag."""
    name = "|".join(sorted(names))
    attribute = r"""(?:\s++id\s*+=\s*+(?:"[^"\n]*+"|'[^'\n]*+'))?+"""
    return re.compile(rf"\s*+(?:/\s*+(?:{name})|(?:{name}){attribute})\s*+>", re.IGNORECASE)


def _with_brackets(text: str, others: Mapping[str, str], names: frozenset[str]) -> str:
    """Return the text with another opening bracket in each tag of these names."""
    if not _BRACKET.search(text):
        return text
    parts = _BRACKET.split(text)
    plain = [part if part.isascii() else _plain(part) for part in parts]
    whole = "".join(plain)
    tag_end = _tag_end(names)
    return "".join(
        others[part] if part in others and tag_end.match(whole, end) else part
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
