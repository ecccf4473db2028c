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
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, islice
from typing import Literal, NamedTuple, TypeAlias

from typing_extensions import TypedDict

from stepcraft.schema import described
from stepcraft.text.blanks import kept_blanks
from stepcraft.text.claims import without_numbers
from stepcraft.text.clean import CAPITALS, SPACELESS_STOPS, STOPS, stems
from stepcraft.text.lists import item_start, without_number
from stepcraft.text.markdown import code, code_blocks
from stepcraft.text.matching import WORD, loose_occurrences, occurrences
from stepcraft.text.sentences import pieces
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
_WRAPPED = re.compile(
    r"\s*(?:(?:```|~~~)[^\n`]*\n(.+)\n[ \t]*(?:```|~~~)"
    r"|[`\"'\u201c\u201e\u00ab](.+)[`\"'\u201c\u201d\u00bb])\s*",
    re.DOTALL,
)
_MARKER = re.compile(r"[ \t]*(?:(?:[-*+\u2022]|\d{1,3}[.)]|#{1,6}|>)[ \t]+(?:\[[ xX]\][ \t]+)?)*")
"""The markers of list items, headings and quotations at the beginning of a line."""
_STOPPED = re.compile(rf"(?:\d|\w{{4}}|(?![.!?\u2026]))[{STOPS}{SPACELESS_STOPS}]\Z")
"""A full stop that does not belong to an abbreviation such as "etc."."""
_FOLLOWED = re.compile(rf"[{SPACELESS_STOPS}] ?\S|[{STOPS}] [{CAPITALS}]")
"""A full stop and the beginning of the next sentence."""
_CASELESS = re.compile(rf"[{STOPS}] (?:[\"'\u2018\u201c\u201e\u00ab]|[^\W\d_a-z])")
"""A full stop and an opening quote, or a letter of a script without capitals."""
_AROUND = re.compile(
    r"(?<![*_~\w])(?P<mark>\*{1,3}|_{1,3}|~~)\n(?P=mark)|(?<!\w)\(\n\)|\uff08\n\uff09"
    r"|\u300c\n\u300d|\u201c\n\u201d|\u201e\n\u201c|\u00ab\n\u00bb|(?P<code>(?<!`)`\n`(?!`))"
    r"|(?<![\w!])\[\n\](?:\([^()\n]*\)|\[[^\[\]\n]*\])"
)
"""Emphasis, brackets, curly quotes or a link around words, whose place the line break takes."""
_LEAST_WORDS = 3
"""The minimum number of words to look for outside the named part; fewer could match by chance."""
_Search: TypeAlias = Callable[[str, str], Iterator[tuple[int, int]]]
_BELOW = re.compile(r"\n?([ \t]+)(\S.*)")
_STEP = re.compile(r"^(?:#{1,6} )?(?:\*\*)?(?:step )?(\d{1,3})[.):]", re.IGNORECASE | re.MULTILINE)
_MOST_MIDDLES = 20
_NO_PART = "there is no such part"
_MOST_REFUSED = 20
"""After this many refusals, a group of changes that does damage is refused as a whole."""


@described
class Change(TypedDict):
    """A single change to a text in numbered parts."""

    part: int
    """The number of the part, starting at 1."""
    kind: Literal["replace", "append", "insert"]
    """Replace words in the part, append to it, or insert a new part after it."""
    old: str
    """The words to replace, or "" for other kinds of changes."""
    new: str
    """The words that replace them or are added."""


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


class _Edit(NamedTuple):
    """A change located in the original text."""

    part: int
    """The number of the part, starting at 1, or 0 for text inserted before the first part."""
    start: int
    stop: int
    new: str
    kind: str
    change: Change


def read_changes(reply: str, parts: Sequence[str]) -> tuple[list[Change], list[Problem], str]:
    """Return the changes in a reply, its unusable blocks, and the text outside of blocks.

    List and quotation prefixes on the lines of a block are removed, and so are statement numbers.
    """
    changes: list[Change] = []
    problems: list[Problem] = []
    is_ambiguous = any(_START.search(part) or _END.search(part) for part in parts)
    outside, *blocks = _START.split(reply.replace("\r\n", "\n"))
    for margin, kind, number, label, block in zip(*[iter(blocks)] * 5, strict=True):
        body, *rest = _END.split(without_numbers(_at_margin(block, margin)))
        outside += "".join(rest)
        change = _change(kind, int(number or -1), body, parts)
        old = label.strip(" \t:.-#*>\u27e7")
        if not isinstance(change, str) and change["kind"] == "append" and len(old) > 1:
            # The old words may be on the same line as the label.
            replacing = Change(part=change["part"], kind="replace", old=old, new=change["new"])
            change = replacing if isinstance(_placed(replacing, parts), _Edit) else change
        if not rest:
            change = 'the block has no line ">>>>>>> END"'
        elif is_ambiguous:
            change = "the text has lines itself that look like a block's"
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


def _change(kind: str, number: int, body: str, parts: Sequence[str]) -> Change | str:
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
        old, new = body[: middle.start()].strip("\n"), body[middle.end() :].strip("\n")
        begins_item = (
            body[middle.end() :].startswith("\n\n") and item_start(new) and not item_start(old)
        )
        change = Change(part=number, kind="append", old="", new=new)
        if "AFTER" in kind.upper():
            change = Change(part=number, kind="insert", old="", new=new or old)
        elif old.strip():
            new = f"\n{new}" if begins_item else new
            change = Change(part=number, kind="replace", old=old, new=new)
        changes.append(change)
    fitting = (change for change in reversed(changes) if isinstance(_placed(change, parts), _Edit))
    return changes[0] if len(changes) == 1 else next(fitting, changes[0])


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
    refused: list[Problem] = []
    edits = _edits(parts, changes, between, refused)
    text = between.join(parts)
    sound: list[_Edit] = []

    def add(some: list[_Edit]) -> None:
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
    first, second = _placed(change, parts), _placed(other, parts)
    if isinstance(first, str) or isinstance(second, str) or first.part != second.part:
        return False
    if first.kind == second.kind != "replace":
        words, others = stems(first.new), stems(second.new)
        is_same = others <= words and 4 * len(others) >= 3 * len(words) > 0
        return is_same and first.new.split()[0] == second.new.split()[0]
    return max(first.start, second.start) < min(first.stop, second.stop)


def _edits(
    parts: Sequence[str], changes: Sequence[Change], between: str, refused: list[Problem]
) -> list[_Edit]:
    """Return located changes, ordered and without duplicates; add the others to `refused`."""
    edits: dict[tuple[object, ...], _Edit] = {}
    for change in changes:
        edit = _placed(change, parts)
        if isinstance(edit, _Edit) and edit.kind == "insert" and not between:
            edit = edit._replace(kind="append") if edit.part else _NO_PART
        if not isinstance(edit, str) and (reason := opened(change["old"], change["new"])):
            edit = reason
        if isinstance(edit, _Edit) and between and _holds_steps(edit, parts):
            edit = "its new words are several steps: write a block for each step"
        if isinstance(edit, str):
            refused.append(Problem(change, edit))
        elif not _is_idle(edit, parts):
            edits.setdefault(edit[:5], edit)
    ordered = _apart(sorted(edits.values(), key=lambda edit: edit[:3]), parts)
    replacing = [edit for edit in ordered if edit.kind == "replace"]
    starts = [edit[:2] for edit in replacing]
    stops = sorted((edit.part, edit.stop) for edit in replacing)
    separate: list[_Edit] = []
    for edit in ordered:
        begun = bisect_left(starts, (edit.part, edit.stop))
        if edit.kind == "replace" and begun - bisect_right(stops, edit[:2]) > 1:
            refused.append(Problem(edit.change, "it overlaps with another change"))
        else:
            separate.append(edit)
    return separate


def _holds_steps(edit: _Edit, parts: Sequence[str]) -> bool:
    """Return whether an edit replaces a step with several numbered ones, or inserts several."""
    new = edit.change["new"].lstrip()
    numbers = [int(item[1]) for item in _STEP.finditer(new)][:2]
    if not _STEP.match(new) or len(numbers) < 2 or numbers[1] != numbers[0] + 1:
        return False
    return edit.kind == "insert" or (edit.start == 0 and not _STEP.match(parts[edit.part - 1]))


def _apart(edits: list[_Edit], parts: Sequence[str]) -> list[_Edit]:
    """Return ordered edits such that no two removals cover the same whitespace."""
    apart = edits[:1]
    for edit in edits[1:]:
        before = apart[-1]
        shared = parts[edit.part - 1][edit.start : before.stop] if edit.part else ""
        is_shared = before.part == edit.part and shared.isspace() and not edit.new
        apart.append(edit._replace(start=before.stop) if is_shared else edit)
    return apart


def _applied(
    parts: Sequence[str], edits: Sequence[_Edit], between: str
) -> tuple[list[str], list[int]]:
    """Return the parts and their origins after ordered edits have been applied."""
    by_part: dict[int, list[_Edit]] = {}
    for edit in edits:
        by_part.setdefault(edit.part, []).append(edit)
    texts: list[str] = []
    origins: list[int] = []
    for number, part in enumerate(["", *parts]):
        text, end, inserted = "", 0, list[str]()
        for edit in _merged(by_part.get(number, []), part):
            if edit.kind == "insert":
                inserted.append(edit.new)
                continue
            text, end = text + part[end : edit.start], edit.stop
            if edit.kind != "replace":
                text += glue(text, edit.new).replace("\n", _newline(part))
            text += edit.new
        text += part[end:]
        if between and text != part and without_number(part) == part:
            text = without_number(text)
        texts += [text, *map(without_number, inserted)]
        origins += [number, *[0] * len(inserted)]
    return texts[1:], origins[1:]


def _merged(edits: list[_Edit], part: str) -> list[_Edit]:
    """Return ordered edits with neighbouring removals as one, for the whitespace around them."""
    merged: list[_Edit] = []
    for edit in edits:
        before = merged[-1] if merged else edit
        between = part[before.stop : edit.start]
        is_next = not (before.new or edit.new or between.strip())
        ends_line = not part[edit.stop :].partition("\n")[0].strip()
        if merged and is_next and (ends_line or "\n" not in between):
            words = part[before.start : edit.stop]
            start = before.start + len(words) - len(words.lstrip())
            stop = before.start + len(words.rstrip())
            start, stop, _ = _without_blanks(part, start, stop, "")
            merged[-1] = before._replace(start=start, stop=stop)
        else:
            merged.append(edit)
    return merged


def _is_idle(edit: _Edit, parts: Sequence[str]) -> bool:
    """Return whether an edit changes nothing because its new words are already there."""
    if edit.kind == "replace":
        return parts[edit.part - 1][edit.start : edit.stop] == edit.new
    new, part = edit.new.strip(), parts[edit.part - 1]
    return not new or (
        edit.kind == "append"
        and any(_is_whole(part, start, stop) for start, stop in occurrences(new, part))
    )


def _newline(text: str) -> str:
    """Return the line break that a text uses most."""
    windows, old = text.count("\r\n"), text.count("\r")
    if old > windows and "\n" not in text:
        return "\r"
    return "\r\n" if windows and 2 * windows >= text.count("\n") else "\n"


def _is_whole(part: str, start: int, stop: int) -> bool:
    """Return whether a span of a part consists of whole lines or sentences."""
    ends = {"", "\n", *STOPS, *SPACELESS_STOPS}
    before, behind = part[:start].rstrip(" \t")[-1:], part[stop:].lstrip(" \t\r")[:1]
    return before in ends and (behind in {"", "\n"} or part[stop - 1] in ends)


def _placed(change: Change, parts: Sequence[str]) -> _Edit | str:
    """Locate a change in the text, or return the reason why it cannot be made.

    If the words are not in the part that the change names, all other parts are searched.
    """
    number, kind = change["part"], change["kind"]
    exists = 0 < number <= len(parts)
    if kind != "replace":
        return _added(change, parts)
    matches = {number: _matches(change, parts[number - 1])} if exists else {}
    if not any(matches.values()):
        elsewhere = {other: _matches(change, part) for other, part in enumerate(parts, 1)}
        matches = {other: places for other, places in elsewhere.items() if places}
        if len(matches) != 1:
            return "its words are not there: copy them exactly" if exists else _NO_PART
        [(other, [(start, stop, _), *_])] = matches.items()
        is_long = len(WORD.findall(change["old"])) >= _LEAST_WORDS
        if exists and not (is_long or _is_whole(parts[other - 1], start, stop)):
            return f"its words are not there, but in part {other}: name that part for them"
    [(number, places)] = matches.items()
    if len(places) > 1:
        return "its words occur several times in the part: copy more of the words around them"
    part = parts[number - 1]
    start, stop, new = _without_blanks(part, *places[0])
    reason = _misfit(part, start, stop, new)
    return reason or _Edit(number, start, stop, new, kind, change)


def _added(change: Change, parts: Sequence[str]) -> _Edit | str:
    """Return an addition at the end of its part, or the reason why it cannot be made."""
    number, kind = change["part"], change["kind"]
    part = parts[number - 1] if 0 < number <= len(parts) else None
    if part is None and not (kind == "insert" and number == 0):
        return _NO_PART
    if any(not block.closed for block in code_blocks(part or "")):
        return "the part ends within code"
    end = len((part or "").rstrip())
    new = change["new"].strip("\n").replace("\n", _newline("".join(parts)))
    return _Edit(number, end, end, new, kind, change)


def _misfit(part: str, start: int, stop: int, new: str) -> str:
    """Return why the new words do not fit in place of the old ones, or "" if they do."""
    old, behind = part[start:stop], part[stop:].partition("\n")[0]
    if "\n" in new.strip("\n") and "\n" not in old and behind.strip():
        return "its new words have several lines, but its old words are a piece of one"
    item = old.lstrip("\n")
    below = _BELOW.match(part, stop)
    if not new and below and item_start(item):
        indent = len(item) - len(item.lstrip(" \t"))
        if len(below[1]) > indent or not item_start(below[2]):
            return "it would leave the rest of its list item to the item above"
    return ""


def _matches(change: Change, part: str) -> list[tuple[int, int, str]]:
    """Return up to two places where a change's old words match, each with its replacement."""
    for search, old, new in _forms(change["old"], change["new"]):
        places: list[tuple[int, int, str]] = []
        for start, stop in islice(search(old, part), 2):
            line = part[part.rfind("\n", 0, start) + 1 : start]
            fitting = _fitted(old, new, line, part[stop : stop + 60])
            by = kept_blanks(part[start:stop], old, fitting, line, _newline(part))
            places += [] if by is None else [(start, stop, by)]
        if places:
            return places
    return []


def _fitted(old: str, new: str, line: str, after: str) -> str:
    """Return the new words with the list marker and full stop that the text requires.

    Args:
        old: The words that they replace.
        new: The new words. Models often copy more or less of the context than in the old words.
        line: The beginning of the line, up to the old words.
        after: The characters after the old words.
    """
    mine, theirs = (_MARKER.match(each) for each in (old, new))
    if not new.strip() or not mine or not theirs:
        return new
    if mine[0].strip() and not theirs[0].strip() and not line.strip():
        new = mine[0] + new.lstrip()
    elif theirs[0].strip() and not mine[0].strip() and line.strip() and _MARKER.fullmatch(line):
        new = new[theirs.end() :]
    clause_ends = after[:1] in ",;:\uff0c\uff1a\uff1b" and _STOPPED.search(new)
    ends_again = new[-1] in STOPS + SPACELESS_STOPS and (after[:1] == new[-1] or clause_ends)
    if ends_again and after and new[-1] != old[-1]:
        return new[:-1]
    behind = old[-1] + after
    is_followed = _FOLLOWED.match(behind) or (_STOPPED.search(old) and _CASELESS.match(behind))
    is_word = unicodedata.category(new[-1])[0] in "LMN"
    ends = accumulate(map(len, pieces(f"{line}{old}{after}")))  # not after "Dr."
    return new + old[-1] if is_followed and is_word and len(line) + len(old) in ends else new


@lru_cache(maxsize=4096)
def _forms(old: str, new: str) -> list[tuple[_Search, str, str]]:
    """Return the forms of the old words to look for, each with its replacement.

    The words are first looked for verbatim, then ignoring differences in whitespace, quotes and
    dashes. Both searches are then repeated without any quotes, backticks or fence around both
    halves, or without a leading number.
    """
    halves = [(old, new)]
    if _unwrapped(old) != old and (not new or _unwrapped(new) != new):
        halves.append((_unwrapped(old), _unwrapped(new)))
    if without_number(old) != old:
        halves.append((without_number(old), without_number(new)))
    return [
        form
        for words, by in halves
        for form in ((occurrences, words, by), (loose_occurrences, words.strip(), by.strip()))
    ]


def _unwrapped(half: str) -> str:
    """Return one half of a change without any quotes, backticks or fence that enclose it."""
    wrapped = _WRAPPED.fullmatch(half)
    return wrapped[1] or wrapped[2] if wrapped else half


def _without_blanks(part: str, start: int, stop: int, new: str) -> tuple[int, int, str]:
    """Extend a removal to cover leftover whitespace, or a line that would be left empty."""
    if new.strip():
        return start, stop, new
    first = part.rfind("\n", 0, start) + 1
    last = part.find("\n", stop) if "\n" in part[stop:] else len(part)
    before, after = part[first:start], part[stop:last]
    rest = before + after
    if rest[item_start(rest) :].strip(" \t\r>#*_+-\u2022") in {"", "."}:
        above, below = part[:first], part[last:]
        blank = above[len(above.rstrip()) :]
        if not below.strip():
            end = first - len(blank if blank.count("\n") > 1 else blank.lstrip(" \t"))
            last -= part.endswith("\r", 0, last)
            return end, last if above.strip() else len(part), ""
        if blank.count("\n") == 1:
            return first, last + 1, ""
        return first, len(part) - len(below.lstrip("\r\n")), ""
    around = _AROUND.search(f"{before}\n{after}")
    spans = [(begin, end) for begin, end in code(part) if begin < start < end]
    if around and spans == ([(start - 1, stop + 1)] if around["code"] else []):
        opening, _, closing = around[0].partition("\n")
        return _without_blanks(part, start - len(opening), stop + len(closing), "")
    if before[-1:] in {"", " "}:
        stop += len(after) - len(after.lstrip(" "))
    if before.strip() and after.lstrip(" \r")[:1] in {"", *".,;:!?)"}:
        start = first + len(before.rstrip(" "))
    return start, stop, ""
