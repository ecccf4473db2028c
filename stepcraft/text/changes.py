"""Changes of a text in numbered parts: read from a model's reply, placed, checked and applied.

A change is a block in the form of a merge conflict, with an explicit end:

    <<<<<<< PART 3
    words copied exactly from the part
    =======
    what replaces them
    >>>>>>> END

An empty upper half appends to the part; `<<<<<<< AFTER 3` inserts a part. Everything outside of
blocks is ignored. All old words are found in the original text, and a change that does not fit
exactly one place there, or that would damage the text's Markdown, is refused with its reason.
"""

import itertools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Literal, NamedTuple

from typing_extensions import TypedDict

from stepcraft.schema import described
from stepcraft.text.clean import CJK
from stepcraft.text.structure import damage, glue

_START = re.compile(
    r"[ \t]*<{5,}[ \t]*(PART|AFTER)[ \t#]*(\d{1,4})(?:\.\d{1,4})?\b.*", re.IGNORECASE
)
_MIDDLE = re.compile(r"[ \t]*={5,}[ \t]*")
_END = re.compile(r"[ \t]*>{5,}[ \t]*(?:(?:END|REPLACE|PART|AFTER)\b.*)?", re.IGNORECASE)
_WRAPPED = re.compile(
    r"(?:```|~~~)[^\n`]*\n(.+)\n(?:```|~~~)|`([^`]+)`|\"([^\"]+)\"|'([^']+)'"
    r"|[\u201c\u201e]([^\u201c-\u201e]+)[\u201c\u201d]|\u00ab([^\u00ab\u00bb]+)\u00bb",
    re.DOTALL,
)
_NO_WORDS = re.compile(r"[ \t>]*(?:(?:[-*+\u2022]|\d{1,3}[.)])[ \t]+)?")
_IN_NUMBER = re.compile(r"[.,]\d")
_CLUSTER = re.compile(
    "[\\S\\s][\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\u3099\u309a]*+"
)
_PLAIN = {
    **dict.fromkeys(map(ord, "\u2018\u2019\u201a\u201b\u2032\u0060\u00b4"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb"), '"'),
    **dict.fromkeys((*range(0x2010, 0x2016), 0x2212), "-"),
    **dict.fromkeys((0xAD, *range(0x200B, 0x2010), *range(0x2060, 0x2065), 0xFEFF), ""),
}
_SPACELESS = re.compile(
    f"[{CJK}\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\uac00-\ud7af]"
)
"""Characters of scripts without blanks between words, and of Korean, whose particles have none."""


@described
class Change(TypedDict):
    """One change of a text in numbered parts."""

    part: int
    """The number of the part, from 1."""
    kind: Literal["replace", "append", "insert"]
    """Replace words of the part, append to it, or insert a part behind it."""
    old: str
    """The words that are replaced; "" otherwise."""
    new: str
    """The words that replace them, or that are added."""


class Problem(NamedTuple):
    """Why a change cannot be made."""

    change: Change
    reason: str


class Edited(NamedTuple):
    """A text in parts after its changes."""

    parts: list[str]
    """The parts, an inserted one behind the part that it follows; a part can be empty."""
    origins: list[int]
    """The number, from 1, of the original part that each part comes from; 0 for an inserted one."""
    made: list[Change]
    """The changes that were made, each with the part that it changed."""
    refused: list[Problem]
    """The changes that were not made."""


class _Edit(NamedTuple):
    """A change with its place in the original text."""

    part: int
    """The index of the part."""
    start: int
    stop: int
    new: str
    change: Change


def read_changes(reply: str, parts: Sequence[str]) -> tuple[list[Change], list[Problem], str]:
    """Return the changes of a reply, its incomplete blocks, and the text outside of blocks.

    Args:
        reply: The model's reply.
        parts: The parts, which decide where a block has several lines that could be its middle.
    """
    changes: list[Change] = []
    problems: list[Problem] = []
    outside: list[str] = []
    head: re.Match[str] | None = None
    body: list[str] = []

    def finish(*, closed: bool) -> None:
        if head is None:
            return
        change = _change(head, body, parts)
        if closed and change:
            changes.append(change)
        else:
            old = "\n".join(itertools.takewhile(lambda line: not _MIDDLE.fullmatch(line), body))
            shown = Change(part=int(head[2]), kind="replace", old=old[:200], new="")
            missing = (
                "=======" if closed or not any(map(_MIDDLE.fullmatch, body)) else ">>>>>>> END"
            )
            problems.append(Problem(shown, f'the block has no line "{missing}"'))

    for line in reply.split("\n"):
        if start := _START.fullmatch(line.rstrip("\r")):
            finish(closed=False)
            head, body = start, []
        elif head is None:
            outside.append(line)
        elif _END.fullmatch(line.rstrip("\r")) and any(map(_MIDDLE.fullmatch, body)):
            finish(closed=True)
            head = None
        else:
            body.append(line.rstrip("\r"))
    finish(closed=False)
    return changes, problems, "\n".join(outside)


def _change(head: re.Match[str], body: list[str], parts: Sequence[str]) -> Change | None:
    """Return the change of a block; None if it has no middle line.

    The old or the new words may have a line of equal signs themselves, such as a heading's. The
    last line that gives old words of the part is the middle then.
    """
    changes: list[Change] = []
    middles = [place for place, line in enumerate(body) if _MIDDLE.fullmatch(line)]
    exact = [place for place in middles if body[place].strip() == "======="]
    for place in exact or middles:
        old = "\n".join(body[:place]).strip("\n")
        new = "\n".join(body[place + 1 :]).strip("\n")
        if head[1].upper() == "AFTER":
            new = "\n".join(filter(None, [old, new]))
            changes.append(Change(part=int(head[2]), kind="insert", old="", new=new))
        elif old.strip():
            changes.append(Change(part=int(head[2]), kind="replace", old=old, new=new))
        else:
            changes.append(Change(part=int(head[2]), kind="append", old="", new=new))
    fitting = [each for each in changes if isinstance(_placed(each, parts), _Edit)]
    return [*changes[:1], *fitting][-1] if changes else None


def apply_changes(parts: Sequence[str], changes: Sequence[Change], between: str = "") -> Edited:
    """Return the parts after the changes, and what became of each change.

    All places are found in the original parts, so that two changes can swap words. Outside of the
    changed places every character stays as it is.

    Args:
        parts: The parts.
        changes: The changes, by the numbers of the parts.
        between: What joins the parts to one Markdown text, which no change may damage.
    """
    text = between.join(parts)
    starts = [0, *accumulate(len(part) + len(between) for part in parts)]
    edits: list[_Edit] = []
    refused: list[Problem] = []
    for change in changes:
        edit = _placed(change, parts)
        if isinstance(edit, Problem):
            refused.append(edit)
        elif _is_idle(edit, parts) or any(_is_same(edit, other) for other in edits):
            continue
        elif any(_overlap(edit, other) for other in edits):
            refused.append(Problem(change, "it overlaps with another change"))
        elif reason := _damage(edit, text, starts[edit.part]):
            refused.append(Problem(change, reason))
        else:
            edits.append(edit)
    texts, origins = _applied(parts, edits)
    if text.strip() and not any(each.strip() for each in texts):
        refused += [Problem(edit.change, "nothing of the text would be left") for edit in edits]
        edits = []
        texts, origins = _applied(parts, edits)
    made = [Change(**{**edit.change, "part": edit.part + 1}) for edit in edits]
    return Edited(texts, origins, made, refused)


def _applied(parts: Sequence[str], edits: Sequence[_Edit]) -> tuple[list[str], list[int]]:
    texts: list[str] = []
    origins: list[int] = []
    for number, part in enumerate(parts):
        text, inserted = part, list[str]()
        for edit in sorted(edits, key=lambda edit: (edit.start, edit.stop), reverse=True):
            if edit.part == number and edit.change["kind"] == "insert":
                inserted.insert(0, edit.new)
            elif edit.part == number:
                text = text[: edit.start] + edit.new + text[edit.stop :]
        texts += [text, *inserted]
        origins += [number + 1, *[0] * len(inserted)]
    return texts, origins


def _damage(edit: _Edit, text: str, offset: int) -> str:
    if edit.change["kind"] == "insert":
        return damage("", 0, 0, edit.new)
    return damage(text, offset + edit.start, offset + edit.stop, edit.new)


def _is_same(edit: _Edit, other: _Edit) -> bool:
    return edit[:4] == other[:4] and edit.change["kind"] == other.change["kind"]


def _is_idle(edit: _Edit, parts: Sequence[str]) -> bool:
    """Tell whether an edit changes nothing: its words, or what it appends, are there already."""
    if edit.change["kind"] == "replace":
        return parts[edit.part][edit.start : edit.stop] == edit.new
    new = edit.change["new"].strip()
    return not new or (edit.change["kind"] == "append" and new in parts[edit.part])


def _overlap(edit: _Edit, other: _Edit) -> bool:
    return edit.part == other.part and edit.start < other.stop and other.start < edit.stop


def _placed(change: Change, parts: Sequence[str]) -> _Edit | Problem:
    """Return a change with its place.

    Words that are not in the part that is named are sought in all others.
    """
    named = change["part"] - 1
    exists = 0 <= named < len(parts)
    if change["kind"] != "replace":
        if not exists and not (change["kind"] == "insert" and change["part"] == 0):
            return Problem(change, f"there is no part {change['part']}")
        new = change["new"].strip("\n")
        if change["kind"] == "insert":
            return _Edit(max(named, 0), 0, 0, new, change)
        part = parts[named]
        end = len(part.rstrip())
        new = _with_newlines_of(part, glue(part, new) + new if end else new)
        return _Edit(named, end, end, new, change)
    matches = _matches(change, parts[named]) if exists else []
    if len(matches) > 1:
        times = f"its words occur {len(matches)} times in the part"
        return Problem(change, f"{times}: copy more of the words around them")
    if not matches:
        others = [_matches(change, part) for part in parts]
        unique = [number for number, places in enumerate(others) if len(places) == 1]
        if len(unique) != 1:
            inside = exists and change["old"] in parts[named]
            where = "occur there only inside longer words or numbers" if inside else "are not there"
            reason = f"its words {where}" if exists else f"there is no part {change['part']}"
            return Problem(change, f"{reason}: copy them exactly")
        [named], [matches] = unique, [others[unique[0]]]
    start, stop, new = matches[0]
    new = _with_newlines_of(parts[named], new)
    return _Edit(named, *_without_blanks(parts[named], start, stop, new), change)


def _with_newlines_of(part: str, new: str) -> str:
    return new.replace("\n", "\r\n") if "\r\n" in part else new


def _matches(change: Change, part: str) -> list[tuple[int, int, str]]:
    """Return where the old words of a change are in a part, each place with what replaces them.

    They are sought as they are, then whatever their blanks, quotes and dashes, then without the
    quotes, backticks or fence around both halves of the change.
    """
    old, new = change["old"], change["new"]
    halves = [(old, new)]
    if _unwrapped(old) != old and (not new or _unwrapped(new) != new):
        halves.append((_unwrapped(old), _unwrapped(new)))
    folded, starts, stops = _folded(part)
    for words, replacement in halves:
        if not words.strip():
            continue
        if places := [*_occurrences(words, part)]:
            return [(start, stop, replacement) for start, stop in places]
        sought, *_ = _folded(words.strip())
        if places := [*_occurrences(sought, folded)]:
            exact = replacement if words == words.strip() else replacement.strip()
            return [(starts[start], stops[stop - 1], exact) for start, stop in places]
    return []


def _unwrapped(half: str) -> str:
    """Return one half of a change without the quotes, backticks or fence around all of it."""
    wrapped = _WRAPPED.fullmatch(half.strip())
    return next(filter(None, wrapped.groups())) if wrapped else half


def _occurrences(words: str, text: str) -> Iterator[tuple[int, int]]:
    """Yield where words are in a text, not inside a longer word or number."""
    start = text.find(words) if words else -1
    while start >= 0:
        stop = start + len(words)
        left, right = text[max(0, start - 2) : start], text[stop : stop + 2]
        is_inside = (
            (_is_letter(left[-1:]) and _is_letter(words[0]))
            or (_is_letter(words[-1]) and _is_letter(right[:1]))
            or (words[0].isdigit() and _IN_NUMBER.fullmatch(left[::-1]))
            or (words[-1].isdigit() and _IN_NUMBER.fullmatch(right))
        )
        if not is_inside:
            yield start, stop
        start = text.find(words, start + 1)


def _is_letter(character: str) -> bool:
    """Tell whether a character belongs to a word of a script that puts blanks between words."""
    if not character or _SPACELESS.match(character):
        return False
    return character == "_" or unicodedata.category(character)[0] in "LMN"


@lru_cache(maxsize=256)
def _folded(text: str) -> tuple[str, list[int], list[int]]:
    """Return a text in plain typography, and the offsets at which each character of it came from.

    Blanks become one space, quotes and dashes ASCII's, full-width forms the ordinary ones.
    """
    folded: list[str] = []
    starts: list[int] = []
    stops: list[int] = []
    for cluster in _CLUSTER.finditer(text):
        plain = unicodedata.normalize("NFKC", cluster[0]).translate(_PLAIN)
        plain = " " if plain.isspace() else plain
        if plain == " " and folded and folded[-1] == " ":
            stops[-1] = cluster.end()
            continue
        folded += plain
        starts += [cluster.start()] * len(plain)
        stops += [cluster.end()] * len(plain)
    return "".join(folded), starts, stops


def _without_blanks(part: str, start: int, stop: int, new: str) -> tuple[int, int, str]:
    """Extend a removal to the blanks, or to the whole line, that it would leave empty."""
    if new.strip():
        return start, stop, new
    first = part.rfind("\n", 0, start) + 1
    last = part.find("\n", stop)
    last = len(part) if last < 0 else last
    before, after = part[first:start], part[stop:last]
    if not after.strip() and _NO_WORDS.fullmatch(before):
        follows = part[last:]
        if not first or part[:first].endswith("\n\n"):
            return first, last + len(follows) - len(follows.lstrip("\n")), ""
        return (first, last + 1, "") if follows else (first - 1, last, "")
    if after[:1].isspace() and (not before or before[-1:].isspace()):
        return start, stop + len(after) - len(after.lstrip()), ""
    if before[-1:].isspace() and (not after or after[0] in ".,;:!?)"):
        return start - len(before) + len(before.rstrip()), stop, ""
    return start, stop, ""
