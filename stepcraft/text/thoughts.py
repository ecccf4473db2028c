"""A draft's thoughts: where one ends and the next begins. Joined again they are the draft (RAT §3.2)."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

_LINE = re.compile(r"[^\n]*\n|[^\n]+\Z")
_FENCE = re.compile(
    r"[ \t]{0,8}(`{3,}(?![^\n]*`)|~{3,})"
)  # what ends on its own line is code within a sentence
_HEADING = re.compile(
    r"[ \t]{0,3}(?:#{1,6}[ \t]+\S.*"  # # Heading
    r"|(\*\*|__)\S(?:(?!\1)[^\n]){0,200}\1:?[ \t]*"  # **Heading**
    r"|\S[^\n]{0,200}\n[ \t]{0,3}(?:=+|-{2,})[ \t]*)"  # a line underlined
)
_STEP = re.compile(r"\W{0,6}step[ \t]+\d{1,3}\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]")
_ITEM = re.compile(r"[ \t]*(?:[-*+\u2022]|\d{1,3}[.)\u3001])[ \t]")


def split_thoughts(draft: str) -> list[str]:
    """The thoughts of a draft, each with the blank lines that follow it.

    A thought ends at a blank line, and before each `STEP 1:` of a list of such steps. A heading goes with what
    stands under it, an indented paragraph with the list item above it, and fenced code is never cut.
    """
    parts = [part for block in _blocks(draft) for part in _steps(block)]
    return list(_joined(parts))


def placed_in(draft: str, parts: Sequence[str]) -> list[str] | None:
    """The draft cut where the parts end, whatever their blanks; None if they are not the draft's text."""
    if "".join("".join(parts).split()) != "".join(draft.split()):
        return None
    ends = [place for place, character in enumerate(draft, 1) if not character.isspace()]
    cuts, written = [0], 0
    for part in parts[:-1]:
        written += len("".join(part.split()))
        cuts.append(_after_blanks(draft, ends[written - 1]) if written else 0)
    return [
        thought
        for start, end in zip(cuts, [*cuts[1:], len(draft)], strict=True)
        if (thought := draft[start:end])
    ]


def _after_blanks(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


def _blocks(draft: str) -> Iterator[str]:
    """What stands between blank lines, each with those that follow it; fenced code is one piece with its lines."""
    block, fence, blank = "", "", False
    for line in _LINE.findall(draft):
        if blank and line.strip() and not fence and block.strip():
            yield block
            block = ""
        fence = _fence_after(fence, line)
        blank = not line.strip() and not fence
        block += line
    if block:
        yield block


def _fence_after(fence: str, line: str) -> str:
    """The fence that is open after a line, "" for none."""
    mark = _FENCE.match(line)
    if not fence:
        return mark[1] if mark else ""
    closes = mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and line.strip() == mark[1]
    return "" if closes else fence


def _steps(block: str) -> Iterable[str]:
    """The block cut before each STEP, where it lists several."""
    lines, fence, starts = _LINE.findall(block), "", []
    for number, line in enumerate(lines):
        if not fence and _STEP.match(line):
            starts.append(number)
        fence = _fence_after(fence, line)
    if len(starts) < 2:
        return [block]
    cuts = [0, *(start for start in starts if start), len(lines)]
    return ["".join(lines[start:end]) for start, end in pairwise(cuts)]


def _joined(parts: Sequence[str]) -> Iterator[str]:
    """Headings with what follows them, indented paragraphs with the item before them."""
    thought, opens, listed = "", True, False
    for part in parts:
        continues = listed and part.startswith(("  ", "\t")) and not _ITEM.match(part)
        if thought and not opens and not continues:
            yield thought
            thought = ""
        thought += part
        opens, listed = _opens(part), continues or _ITEM.match(part) is not None
    if thought:
        yield thought


def _opens(part: str) -> bool:
    """Whether a part is a heading, or says nothing (a line ---), so that it belongs to the next."""
    block = part.strip("\r\n").rstrip().replace("\r", "")
    return not _WORD.search(block) or _HEADING.fullmatch(block) is not None
