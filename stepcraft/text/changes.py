"""Changes of a text in numbered parts, as a model replies with them.

    PART 3              PART 3          PART 3
    OLD: some words     ADD: a line     AFTER: a new part
    NEW: other words

OLD and NEW put other words in place of some, ADD adds to the end of a part, AFTER a part behind it.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from typing_extensions import TypedDict

from stepcraft.schema import described

_HEAD = re.compile(r"^[ \t>*_#`]*PART[ \t]+(\d{1,4})[ \t*_:`]*$", re.MULTILINE | re.IGNORECASE)
_LABEL = re.compile(r"^[ \t*_`]*(OLD|NEW|ADD|AFTER)[*_`]*:[*_]*[ \t]?", re.MULTILINE)
_LINE = re.compile(r"[-*+|#>]|\d{1,3}[.)]\s")
"""How an addition begins that needs a line of its own: an item, a row, a heading, a quotation."""
_KINDS: dict[str, Literal["replace", "add", "after"]] = {
    "NEW": "replace",
    "ADD": "add",
    "AFTER": "after",
}


@described
class Change(TypedDict):
    """One change of a part."""

    part: int
    """The number of the part, from 1."""
    kind: Literal["replace", "add", "after"]
    """Other words in place of some, words at the end of the part, or a new part behind it."""
    old: str
    """The words that are replaced; "" where words are added."""
    new: str
    """The words that take their place, or that are added."""


def read_changes(reply: str) -> list[Change]:
    """Return the changes in a reply, in order; what is none is passed over."""
    changes: list[Change] = []
    _, *blocks = _HEAD.split(reply)
    for part, block in zip(blocks[::2], blocks[1::2], strict=True):
        old = ""
        _, *fields = _LABEL.split(block)
        for label, field in zip(fields[::2], fields[1::2], strict=True):
            text = field.strip("\n").rstrip()
            if label == "OLD":
                old = text
            elif old if label == "NEW" else text:
                kind = _KINDS[label]
                replaced = old if kind == "replace" else ""
                changes.append(Change(part=int(part), kind=kind, old=replaced, new=text))
                old = ""
    return changes


def misplaced(changes: Iterable[Change], parts: Sequence[str]) -> list[Change]:
    """Return the changes whose part does not exist, or whose old words stand in no part."""
    return [change for change in changes if _place(change, parts) is None]


def apply_changes(
    parts: Sequence[str], changes: Iterable[Change], between: str = ""
) -> tuple[list[str], list[Change]]:
    """Return the parts after the changes, and the changes whose old words are gone by then.

    Args:
        parts: The parts.
        changes: The changes, by the numbers that the parts have now.
        between: What stands at the end of a part before a new one.
    """
    texts, lost = list(parts), list[Change]()
    added: list[list[str]] = [[] for _ in parts]
    for change in changes:
        place, new = _place(change, texts), change["new"]
        if place is None:
            lost.append(change)
            continue
        text = texts[place]
        if change["kind"] == "replace":
            start, stop = _span(change["old"], text) or (0, 0)
            texts[place] = text[:start] + new + text[stop:]
        elif change["kind"] == "after":
            added[place].append(new + between)
            texts[place] = text.rstrip("\n") + between
        elif new.strip() not in text:
            body = text.rstrip()
            glue = "\n" if "\n" in new or _LINE.match(new) else " "
            glue = "\n\n" if body.endswith("```") or "```" in new else glue
            texts[place] = body + glue + new + text[len(body) :]
    return [part for text, new in zip(texts, added, strict=True) for part in (text, *new)], lost


def _place(change: Change, parts: Sequence[str]) -> int | None:
    """Return the index of the part that a change is for: as named, or the only one that fits."""
    fitting = [
        place
        for place, part in enumerate(parts)
        if change["kind"] != "replace" or _span(change["old"], part)
    ]
    if change["part"] - 1 in fitting:
        return change["part"] - 1
    return fitting[0] if len(fitting) == 1 else None


def _span(old: str, text: str) -> tuple[int, int] | None:
    """Return where words stand in a text, also where only their blanks differ."""
    words = r"\s+".join(map(re.escape, old.split()))
    match = re.search(re.escape(old), text) or (re.search(words, text) if words else None)
    return match.span() if match else None
