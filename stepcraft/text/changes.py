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
    heads = list(_HEAD.finditer(reply))
    changes: list[Change] = []
    for head, stop in zip(heads, _ends(heads, reply), strict=True):
        block = reply[head.end() : stop]
        labels = list(_LABEL.finditer(block))
        old = ""
        for label, end in zip(labels, _ends(labels, block), strict=True):
            text = block[label.end() : end].strip("\n").rstrip()
            if label[1] == "OLD":
                old = text
            elif text or old:
                kind = _KINDS[label[1]]
                changes.append(
                    Change(
                        part=int(head[1]), kind=kind, old=old if kind == "replace" else "", new=text
                    )
                )
                old = ""
    return [change for change in changes if change["old"] or change["kind"] != "replace"]


def _ends(matches: Sequence[re.Match[str]], text: str) -> list[int]:
    """Return where what follows each match ends: at the next one, or with the text."""
    return [*(match.start() for match in matches[1:]), len(text)][: len(matches)]


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
    added: dict[int, list[str]] = {}
    for change in changes:
        place = _place(change, texts)
        if place is None:
            lost.append(change)
        elif change["kind"] == "replace":
            start, stop = _span(change["old"], texts[place]) or (0, 0)
            texts[place] = texts[place][:start] + change["new"] + texts[place][stop:]
        elif change["kind"] == "after":
            added.setdefault(place, []).append(change["new"] + between)
            texts[place] = texts[place].rstrip("\n") + between
        elif change["new"].strip() not in texts[place]:
            body = texts[place].rstrip()
            is_line = "\n" in change["new"] or _LINE.match(change["new"])
            glue = "\n" if is_line else " "
            glue = "\n\n" if body.endswith("```") or "```" in change["new"] else glue
            texts[place] = body + glue + change["new"] + texts[place][len(body) :]
    return [
        part for place, text in enumerate(texts) for part in (text, *added.get(place, []))
    ], lost


def _place(change: Change, parts: Sequence[str]) -> int | None:
    """Return the index of the part that a change is for, or of the only one with its old words."""
    named = change["part"] - 1
    exists = 0 <= named < len(parts)
    if change["kind"] != "replace":
        return named if exists else None
    if exists and _span(change["old"], parts[named]):
        return named
    places = [place for place, part in enumerate(parts) if _span(change["old"], part)]
    return places[0] if len(places) == 1 else None


def _span(old: str, text: str) -> tuple[int, int] | None:
    """Return where words stand in a text, also where only their blanks differ."""
    start = text.find(old)
    if start >= 0:
        return start, start + len(old)
    match = re.search(r"\s+".join(map(re.escape, old.split())), text) if old.split() else None
    return match.span() if match else None
