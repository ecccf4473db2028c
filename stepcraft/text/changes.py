"""Changes to a text in numbered parts: read from a model's reply, located, checked and applied.

A change is a block in the form of a merge conflict, with an explicit end:

    <<<<<<< PART 3
    words copied exactly from the part
    =======
    what replaces them
    >>>>>>> END

An empty upper half appends to the part; `<<<<<<< AFTER 3` inserts a new part. Text outside of
blocks is returned as is. All old words are located in the original text. A change that does not
match exactly one place there, or that would damage the text's Markdown, is refused with a reason.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence
from itertools import zip_longest
from typing import NamedTuple

from stepcraft.text.blanks import line_break
from stepcraft.text.citations import HEADING
from stepcraft.text.claims import without_numbers
from stepcraft.text.clean import SPACELESS_STOPS, STOPS, stems
from stepcraft.text.edits import (
    LEAST_WORDS,
    NO_PART,
    Change,
    Edit,
    in_code,
    is_whole,
    located,
    removal,
)
from stepcraft.text.lists import item_start, without_number
from stepcraft.text.matching import WORD, occurrences
from stepcraft.text.structure import damage, glue, opened

_START = re.compile(
    r"^([ \t>]*+(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?)<{5,}+[ \t]*+"
    r"((?:(?:AFTER|PART|STEP|STATEMENT|SEARCH)[ \t#:]*+)+)\u27e6?(\d{1,4}(?!\w))?(.*)\n?",
    re.IGNORECASE | re.MULTILINE,
)
_MIDDLE = re.compile(r"^[ \t]*={7}[ \t]*$", re.MULTILINE)
_LOOSE_MIDDLE = re.compile(r"^[ \t]*={5,12}[ \t]*$", re.MULTILINE)
_END = re.compile(
    r"^[ \t]*>{5,}+[ \t]*(?:(?:END|REPLACE|PART|AFTER)\b.*)?$", re.IGNORECASE | re.MULTILINE
)
_STRAY = re.compile(r"\W{0,6}(?:<{4,}[^<]|>{5,}\s*END\b|(?:OLD|NEW)\b\W{0,3}:)")
"""A line that belongs to an unreadable block."""
_STEP = re.compile(r"^(?:#{1,6} )?(?:\*\*)?(?:step )?(\d{1,3})[.):]", re.IGNORECASE | re.MULTILINE)
_ENDS_CODE = re.compile("`|~{3}")
_MOST_MIDDLES = 20
_MOST_REFUSED = 20
"""After this many refusals, a group of changes that does damage is refused as a whole."""


class Problem(NamedTuple):
    """A change that cannot be made, with the reason."""

    change: Change
    reason: str


class Edited(NamedTuple):
    """A text in parts after changes were applied to it."""

    parts: list[str]
    """The parts, including inserted ones in their places. A part can be empty."""
    origins: list[int]
    """The number (from 1) of the original part that each part comes from, or 0 if it was inserted.
    """
    applied: list[Change]
    """The changes that were made, each with the number of the part that it affected."""
    refused: list[Problem]
    """The changes that were not made."""


def read_changes(reply: str, parts: Sequence[str]) -> tuple[list[Change], list[Problem], str]:
    """Return the changes in a reply, its unusable blocks, and the text outside of blocks.

    List and quotation prefixes on the lines of a block are removed, and so are statement numbers.
    """
    changes: list[Change] = []
    problems: list[Problem] = []
    is_ambiguous = any(_START.search(part) or _END.search(part) for part in parts)
    reply = reply.replace("\r\n", "\n")
    starts = [*_START.finditer(reply)]
    outside = reply[: starts[0].start()] if starts else reply
    for start, following in zip_longest(starts, starts[1:]):
        margin, kind, number, label = start.groups()
        block = reply[start.end() : following.start() if following else None]
        body, *rest = _END.split(without_numbers(_at_margin(block, margin)))
        outside += "".join(rest)
        change: Change | str
        if not rest:
            change = 'the block has no line ">>>>>>> END"'
        elif is_ambiguous:
            change = "the text has lines itself that look like a block's"
        else:
            change = _change(kind, int(number or -1), label, body, parts)
        if isinstance(change, str):
            shown = Change(part=int(number or 0), kind="replace", old=body[:200], new="")
            problems.append(Problem(shown, change))
        else:
            changes.append(change)
    for line in filter(_STRAY.match, outside.split("\n")):
        shown = Change(part=0, kind="replace", old=line[:200], new="")
        problems.append(Problem(shown, 'a block begins with a line "<<<<<<< PART <number>"'))
    return changes, problems, outside


def _at_margin(block: str, margin: str) -> str:
    """Return a block without the list or quotation prefix that all its lines share."""
    blanks = re.sub(r"[^ \t>]", " ", margin)
    rows = block.split("\n")
    ends = (at for at, row in enumerate(rows, 1) if _END.match(row.removeprefix(blanks)))
    inside = rows[: next(ends, len(rows))]
    if not all(row.startswith(blanks) or not row.strip(" \t>") for row in inside):
        return block
    return "\n".join([*(row[len(blanks) :] for row in inside), *rows[len(inside) :]])


def _change(kind: str, number: int, label: str, body: str, parts: Sequence[str]) -> Change | str:
    """Return the change in a block, or the reason why it contains none.

    If the parts themselves contain lines of equal signs, the block is split at the last such line
    above which the old words match a part.
    """
    middles = ([*_MIDDLE.finditer(body)] or [*_LOOSE_MIDDLE.finditer(body)])[:_MOST_MIDDLES]
    if not middles:
        return 'the block has no line "======="'
    if len(middles) > 1 and not any(map(_MIDDLE.search, parts)):
        return 'the block has several lines "=======": write a block for each change'
    changes: list[Change] = []
    for middle in middles:
        old, below = body[: middle.start()].strip("\n"), body[middle.end() :]
        new = below.strip("\n")
        if "AFTER" in kind.upper():
            change = Change(part=number, kind="insert", old="", new=new or old)
        elif not old.strip():
            change = Change(part=number, kind="append", old="", new=new)
        else:
            if below.startswith("\n\n") and item_start(new) and not item_start(old):
                new = f"\n{new}"  # the item begins a line of its own
            change = Change(part=number, kind="replace", old=old, new=new)
        changes.append(change)
    change = changes[0]
    if len(changes) > 1:
        change = next((each for each in reversed(changes) if _has_place(each, parts)), change)
    words = label.strip(" \t:.-#*>\u27e7")
    if change["kind"] == "append" and _may_be_old(words, change["new"]):
        # The old words may be on the same line as the label.
        replacing = Change(part=number, kind="replace", old=words, new=change["new"])
        return change if _names_title(replacing, parts) else replacing
    return change


def _may_be_old(words: str, new: str) -> bool:
    """Return whether words behind the label may be old words rather than the name of the part.

    One or two words may be if there are as few new ones, and these do not end a sentence.
    """
    count, others = len(WORD.findall(words)), len(WORD.findall(new))
    is_piece = not new.rstrip().endswith((*STOPS, *SPACELESS_STOPS))
    return count >= LEAST_WORDS or (0 < others <= count and is_piece)


def _has_place(change: Change, parts: Sequence[str]) -> bool:
    return isinstance(located(change, parts), Edit)


def _names_title(change: Change, parts: Sequence[str]) -> bool:
    """Return whether the old words are part of a heading or bold title, or nowhere in the text."""
    edit = located(change, parts)
    if isinstance(edit, str):
        return True
    part = parts[edit.part - 1]
    line = part[part.rfind("\n", 0, edit.start) + 1 :].partition("\n")[0].strip()
    return any(map(HEADING.fullmatch, (line, line[item_start(line) :].strip())))


def apply_changes(parts: Sequence[str], changes: Sequence[Change], between: str = "") -> Edited:
    """Return the parts after the changes, and the outcome of each change.

    All changes are matched against the original parts, so two of them can swap words. All other
    text stays exactly as it is. The order of the changes matters only for additions at the same
    place.

    Args:
        parts: The parts.
        changes: The changes, which refer to parts by number.
        between: The separator that joins the parts into one Markdown text, whose structure no
            change may damage. If it is "", the parts are consecutive pieces of the text, and an
            insertion is appended to its part instead of becoming a new one.
    """
    edits, refused = _edits(parts, changes, between)
    text = between.join(parts)
    sound: list[Edit] = []

    def add(some: list[Edit]) -> None:
        after, _ = _applied(parts, [*sound, *some], between)
        reason = damage(text, between.join(after))
        if text.strip() and not any(map(str.strip, after)):
            reason = "nothing of the text would be left"
        if not reason:
            sound.extend(some)
        elif len(some) > 1 and len(refused) < _MOST_REFUSED:
            add(some[: len(some) // 2])
            add(some[len(some) // 2 :])
        else:
            refused.extend(Problem(edit.change, reason) for edit in some)

    add(edits)
    applied = [Change({**edit.change, "part": edit.part}) for edit in sound]
    return Edited(*_applied(parts, sound, between), applied, refused)


def clash(change: Change, other: Change, parts: Sequence[str]) -> bool:
    """Return whether two changes replace the same words, or the first adds all the second adds."""
    first, second = located(change, parts), located(other, parts)
    if isinstance(first, str) or isinstance(second, str) or first.part != second.part:
        return False
    if first.kind == second.kind != "replace":
        words, others = stems(first.new), stems(second.new)
        is_same = others <= words and 4 * len(others) >= 3 * len(words) > 0
        return is_same and first.new.split()[0] == second.new.split()[0]
    return max(first.start, second.start) < min(first.stop, second.stop)


def _edits(
    parts: Sequence[str], changes: Sequence[Change], between: str
) -> tuple[list[Edit], list[Problem]]:
    """Return the located changes, ordered and without duplicates, and those that are refused."""
    refused: list[Problem] = []
    edits: dict[tuple[object, ...], Edit] = {}
    for change in changes:
        edit = _checked(change, parts, between)
        if isinstance(edit, str):
            refused.append(Problem(change, edit))
        elif not _is_idle(edit, parts):
            edits.setdefault(edit[:5], edit)
    ordered = _apart(sorted(edits.values(), key=lambda edit: edit[:3]), parts)
    replacing = [edit for edit in ordered if edit.kind == "replace"]
    starts = [edit[:2] for edit in replacing]
    stops = sorted((edit.part, edit.stop) for edit in replacing)
    separate: list[Edit] = []
    for edit in ordered:
        begun = bisect_left(starts, (edit.part, edit.stop))
        if edit.kind == "replace" and begun - bisect_right(stops, edit[:2]) > 1:
            refused.append(Problem(edit.change, "it overlaps with another change"))
        else:
            separate.append(edit)
    return separate, refused


def _checked(change: Change, parts: Sequence[str], between: str) -> Edit | str:
    """Locate a change, or return why it cannot be made, regardless of the other changes."""
    edit = located(change, parts)
    if isinstance(edit, str):
        return edit
    if edit.kind == "insert" and not between:
        if not edit.part:
            return NO_PART
        edit = edit._replace(kind="append")
    if reason := _opened(edit, parts):
        return reason
    if between and _holds_steps(edit, parts):
        return "its new words are several steps: write a block for each step"
    return edit


def _opened(edit: Edit, parts: Sequence[str]) -> str:
    """Return the damage done by an unpaired mark in new words; in code, only its end counts."""
    old, new = edit.change["old"], edit.change["new"]
    is_code = edit.kind == "replace" and in_code(parts[edit.part - 1], edit.start, edit.stop)
    return "" if is_code and not _ENDS_CODE.search(new) else opened(old, new)


def _holds_steps(edit: Edit, parts: Sequence[str]) -> bool:
    """Return whether an edit replaces a step with several numbered ones, or inserts several."""
    new = edit.change["new"].lstrip()
    numbers = [*map(int, _STEP.findall(new))]
    if not _STEP.match(new) or len(numbers) < 2 or numbers[1] != numbers[0] + 1:
        return False
    return edit.kind == "insert" or (edit.start == 0 and not _STEP.match(parts[edit.part - 1]))


def _is_idle(edit: Edit, parts: Sequence[str]) -> bool:
    """Return whether an edit changes nothing because its new words are already there."""
    part, new = parts[edit.part - 1], edit.new.strip()
    if edit.kind == "replace":
        return part[edit.start : edit.stop] == edit.new
    is_there = (is_whole(part, start, stop) for start, stop in occurrences(new, part))
    return not new or (edit.kind == "append" and any(is_there))


def _apart(edits: list[Edit], parts: Sequence[str]) -> list[Edit]:
    """Return ordered edits such that no two removals cover the same whitespace."""
    apart = edits[:1]
    for edit in edits[1:]:
        before = apart[-1]
        shared = parts[edit.part - 1][edit.start : before.stop] if edit.part else ""
        is_shared = before.part == edit.part and shared.isspace() and not edit.new
        apart.append(edit._replace(start=before.stop) if is_shared else edit)
    return apart


def _applied(
    parts: Sequence[str], edits: Sequence[Edit], between: str
) -> tuple[list[str], list[int]]:
    """Return the parts and their origins after ordered edits have been applied."""
    by_part: dict[int, list[Edit]] = defaultdict(list)
    for edit in edits:
        by_part[edit.part].append(edit)
    texts: list[str] = []
    origins: list[int] = []
    newline = line_break("".join(parts))
    for number, part in enumerate(["", *parts]):
        text, end, inserted = "", 0, list[str]()
        for edit in _merged(by_part[number], part):
            if edit.kind == "insert":
                inserted.append(edit.new)
                continue
            text, end = text + part[end : edit.start], edit.stop
            if edit.kind != "replace":
                text += glue(text, edit.new).replace("\n", newline)
            text += edit.new
        text += part[end:]
        if between and text != part and without_number(part) == part:
            text = without_number(text)
        texts += [text, *map(without_number, inserted)]
        origins += [number, *[0] * len(inserted)]
    return texts[1:], origins[1:]


def _merged(edits: list[Edit], part: str) -> list[Edit]:
    """Return ordered edits, merging adjacent removals so that no stray whitespace remains."""
    merged = edits[:1]
    for edit in edits[1:]:
        before = merged[-1]
        between = part[before.stop : edit.start]
        is_next = not (before.new or edit.new or between.strip())
        ends_line = not part[edit.stop :].partition("\n")[0].strip()
        if is_next and (ends_line or "\n" not in between):
            words = part[before.start : edit.stop]
            start = before.start + len(words) - len(words.lstrip())
            stop = before.start + len(words.rstrip())
            start, stop = removal(part, start, stop)
            merged[-1] = before._replace(start=start, stop=stop)
        else:
            merged.append(edit)
    return merged
