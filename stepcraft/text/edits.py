"""Locate a change in a text, and fit its new words into the place of the old ones."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, islice
from typing import Literal, NamedTuple, TypeAlias

from typing_extensions import TypedDict

from stepcraft.schema import described
from stepcraft.text.blanks import kept_blanks, line_break
from stepcraft.text.clean import CAPITALS, SPACELESS_STOPS, STOPS
from stepcraft.text.lists import item_start, without_number
from stepcraft.text.markdown import code, code_blocks
from stepcraft.text.matching import WORD, loose_occurrences, occurrences
from stepcraft.text.sentences import pieces

NO_PART = "there is no such part"

_Search: TypeAlias = Callable[[str, str], Iterator[tuple[int, int]]]
_WRAPPED = re.compile(
    r"\s*(?:(?:```|~~~)[^\n`]*\n(.+)\n[ \t]*(?:```|~~~)"
    r"|[`\"'\u201c\u201e\u00ab](.+)[`\"'\u201c\u201d\u00bb])\s*",
    re.DOTALL,
)
_MARKERS = re.compile(r"[ \t]*(?:(?:[-*+\u2022]|\d{1,3}[.)]|#{1,6}|>)[ \t]+(?:\[[ xX]\][ \t]+)?)+")
"""The markers of list items, headings and quotations at the beginning of a line."""
_WITHOUT_ORDINAL = re.compile(_MARKERS.pattern.replace("[.)]", "[)]"))
"""The same markers except "5. ", an ordinal where the line itself has no number."""
_STOPPED = re.compile(rf"(?:\d|\w{{4}}|(?![.!?\u2026]))[{STOPS}{SPACELESS_STOPS}]\Z")
"""A full stop that does not belong to an abbreviation such as "etc."."""
_FOLLOWED = re.compile(rf"[{SPACELESS_STOPS}] ?\S|[{STOPS}] [{CAPITALS}]")
"""A full stop and the beginning of the next sentence."""
_CASELESS = re.compile(rf"[{STOPS}] (?:[\"'\u2018\u201c\u201e\u00ab]|[^\W\d_a-z])")
"""A full stop and an opening quote, or a letter of a script without capitals."""
_COMMAS = tuple(",;:\uff0c\uff1a\uff1b")
_AROUND = re.compile(
    r"(?<![*_~\w])(?P<mark>\*{1,3}|_{1,3}|~~)\n(?P=mark)|(?<!\w)\(\n\)|\uff08\n\uff09"
    r"|\u300c\n\u300d|\u201c\n\u201d|\u201e\n\u201c|\u00ab\n\u00bb|(?P<code>(?<!`)`\n`(?!`))"
    r"|(?<![\w!])\[\n\](?:\([^()\n]*\)|\[[^\[\]\n]*\])"
)
"""Emphasis, brackets, curly quotes or a link around words, which a line break represents."""
_BELOW = re.compile(r"\n?([ \t]+)(\S.*)")
_OPERATOR = re.compile(r"\s*[/%@<>=&|^!*]{1,2}\s")
"""An operator at the start of a line of code; a minus there looks like a list marker."""
_PROSE_FENCE = re.compile(
    r"[ \t>]*(?:`{3,}|~{3,})\s*(?:(?:text|txt|md|markdown)\b.*)?", re.IGNORECASE
)
"""The opening fence of a block that may contain prose rather than code."""
LEAST_WORDS = 3
"""The minimum number of words to look for outside the named part, or beside a number in a block;
fewer could match by chance.
"""


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


class Edit(NamedTuple):
    """A change located in the original text."""

    part: int
    """The number of the part, starting at 1, or 0 for text inserted before the first part."""
    start: int
    stop: int
    new: str
    kind: str
    change: Change


def located(change: Change, parts: Sequence[str]) -> Edit | str:
    """Locate a change in the text, or return the reason why it cannot be made.

    If the words are not in the part that the change names, all other parts are searched.
    """
    number, kind, old = change["part"], change["kind"], change["old"]
    if kind != "replace":
        return _addition(change, parts)
    exists = 0 < number <= len(parts)
    places = _places(old, change["new"], parts[number - 1]) if exists else []
    if not places:
        everywhere = [_places(old, change["new"], part) for part in parts]
        matching = [other for other, places in enumerate(everywhere, 1) if places]
        if len(matching) != 1:
            return "its words are not there: copy them exactly" if exists else NO_PART
        [number] = matching
        places = everywhere[number - 1]
        is_long = len(WORD.findall(old)) >= LEAST_WORDS
        if exists and not (is_long or is_whole(parts[number - 1], *places[0][:2])):
            return f"its words are not there, but in part {number}: name that part for them"
    if len(places) > 1:
        return "its words occur several times in the part: copy more of the words around them"
    part, (start, stop, new) = parts[number - 1], places[0]
    if not new.strip():
        (start, stop), new = removal(part, start, stop), ""
    return _misfit(part, start, stop, new) or Edit(number, start, stop, new, kind, change)


def _addition(change: Change, parts: Sequence[str]) -> Edit | str:
    """Return an addition at the end of its part, or the reason why it cannot be made."""
    number, kind = change["part"], change["kind"]
    if not (0 < number <= len(parts) or (kind == "insert" and number == 0)):
        return NO_PART
    part = parts[number - 1] if number else ""
    if any(not block.closed for block in code_blocks(part)):
        return "the part ends within code"
    end = len(part.rstrip())
    new = change["new"].strip("\n").replace("\n", line_break("".join(parts)))
    return Edit(number, end, end, new, kind, change)


def in_code(part: str, start: int, stop: int) -> bool:
    """Return whether a span of a part is inside a code block or span."""
    return any(first < start and stop <= last for first, last in _code(part))


@lru_cache(maxsize=256)
def _code(part: str) -> list[tuple[int, int]]:
    return [*code(part)]


def _places(old: str, new: str, part: str) -> list[tuple[int, int, str]]:
    """Return up to two places (start, stop) of the old words, each with its replacement."""
    for search, words, replacement in _forms(old, new):
        places: list[tuple[int, int, str]] = []
        for start, stop in islice(search(words, part), 2):
            line = part[part.rfind("\n", 0, start) + 1 : start]
            after = part[stop : stop + 60]
            is_code = in_code(part, start, stop)
            fitting = _with_marker(words, replacement, line, is_code=is_code)
            if fitting.strip() and (not is_code or _in_prose(part, start)):
                fitting = _stopped(words, fitting, line, after)
            by = kept_blanks(
                part[start:stop], words, fitting, line, line_break(part), is_code=is_code
            )
            places += [] if by is None else [(start, stop, by)]
        if places:
            return places
    return []


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


def _in_prose(part: str, place: int) -> bool:
    """Return whether a place is in a fenced block that may have prose, by what its fence says."""
    blocks = (block for block in code_blocks(part) if block.start <= place < block.stop)
    fence = next((part[block.start :].partition("\n")[0] for block in blocks), None)
    return fence is not None and _PROSE_FENCE.fullmatch(fence) is not None


def _with_marker(old: str, new: str, line: str, *, is_code: bool) -> str:
    """Return the new words with the list marker that the text requires.

    Args:
        old: The words that they replace.
        new: The new words. Models often copy more or less context than with the old words.
        line: The beginning of the line, up to the old words.
        is_code: Whether the words are in code, where a marker may be code itself.
    """
    if not new.strip():
        return new
    old_markers, new_markers = _MARKERS.match(old), _MARKERS.match(new)
    if old_markers and not new_markers and not line.strip():
        if not is_code or _is_reworded(old_markers, new):
            new = old_markers[0] + new.lstrip()
    elif new_markers and not old_markers and _MARKERS.fullmatch(line):
        copied = new_markers if any(map(str.isdigit, line)) else _WITHOUT_ORDINAL.match(new)
        new = new[copied.end() :] if copied else new
    return new


def _is_reworded(marker: re.Match[str], new: str) -> bool:
    """Return whether new words are another text behind a single marker, such as of a comment.

    Otherwise they are code of their own, as is a line of which they only leave out the marker.
    """
    text = marker.string[marker.end() :].strip()
    is_one_line = "\n" not in marker.string + new
    is_single = len(marker[0].split()) == 1 and not _OPERATOR.match(new)
    return is_one_line and is_single and new.strip() != text


def _stopped(old: str, new: str, line: str, after: str) -> str:
    """Return the new words with a surplus full stop removed or a missing one added."""
    if new[-1] in STOPS + SPACELESS_STOPS:
        clause_goes_on = after.startswith(_COMMAS) and _STOPPED.search(new)
        is_stop_extra = new[-1] != old[-1] and (
            after.startswith(new[-1]) or (clause_goes_on and _ends_sentence(line + new, " Xy"))
        )
        return new[:-1] if is_stop_extra else new
    behind = old[-1] + after
    is_followed = _FOLLOWED.match(behind) or (_STOPPED.search(old) and _CASELESS.match(behind))
    is_word = unicodedata.category(new[-1])[0] in "LMN"
    return new + old[-1] if is_followed and is_word and _ends_sentence(line + old, after) else new


def _ends_sentence(text: str, after: str) -> bool:
    """Return whether a text ends a sentence before other text, as "Dr." does not."""
    return len(text) in accumulate(map(len, pieces(text + after)))


def removal(part: str, start: int, stop: int) -> tuple[int, int]:
    """Return the span to remove for some words, including any whitespace and signs they leave."""
    first = part.rfind("\n", 0, start) + 1
    last = stop + len(part[stop:].partition("\n")[0])
    before, after = part[first:start], part[stop:last]
    rest = before + after
    if rest[item_start(rest) :].strip(" \t\r>#*_+-\u2022") in {"", "."}:
        return _line_removal(part, first, last)
    around = _AROUND.search(f"{before}\n{after}")
    spans = [(begin, end) for begin, end in _code(part) if begin < start < end]
    if around and spans == ([(start - 1, stop + 1)] if around["code"] else []):
        opening, _, closing = around[0].partition("\n")
        return removal(part, start - len(opening), stop + len(closing))
    if before[-1:] in {"", " "}:
        stop += len(after) - len(after.lstrip(" "))
    if before.strip() and after.lstrip(" \r")[:1] in {"", *".,;:!?)"}:
        start = first + len(before.rstrip(" "))
    return start, stop


def _line_removal(part: str, first: int, last: int) -> tuple[int, int]:
    """Return the span to remove for some lines, with the line breaks that separate them."""
    above, below = part[:first], part[last:]
    blank = above[len(above.rstrip()) :]
    if not below.strip():  # the part ends here
        end = first - len(blank if blank.count("\n") > 1 else blank.lstrip(" \t"))
        last -= part.endswith("\r", 0, last)
        return end, last if above.strip() else len(part)
    if blank.count("\n") == 1:  # within a paragraph or list
        return first, last + 1
    return first, len(part) - len(below.lstrip("\r\n"))


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


def is_whole(part: str, start: int, stop: int) -> bool:
    """Return whether a span of a part consists of whole lines or sentences."""
    ends = {"", "\n", *STOPS, *SPACELESS_STOPS}
    before, behind = part[:start].rstrip(" \t")[-1:], part[stop:].lstrip(" \t\r")[:1]
    return before in ends and (behind in {"", "\n"} or part[stop - 1] in ends)
