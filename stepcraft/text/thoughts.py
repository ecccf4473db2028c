"""A draft's thoughts (RAT §3.2). Joined again, they are the draft."""

import re
from collections.abc import Iterator
from itertools import pairwise

from stepcraft.text.markdown import lines

_HEADING = re.compile(
    r"[ \t]{0,3}(?:#{1,6}[ \t]+\S.*"  # # Heading
    r"|(\*\*|__)\S(?:(?!\1)[^\n]){0,200}\1:?[ \t]*"  # **Heading**
    r"|\S[^\n]{0,200}\n[ \t]{0,3}(?:=+|-{2,})[ \t]*)"  # an underlined line
)
_STEP = re.compile(r"\W{0,6}step[ \t]+\d{1,3}\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]")
_ITEM = re.compile(r"[ \t]*(?:[-*+\u2022]|\d{1,3}[.)\u3001])[ \t]")


def split_thoughts(draft: str) -> list[str]:
    """Split a draft into its thoughts, each with the blank lines that follow it.

    A thought ends at a blank line, and before each `STEP 1:` of a list of such steps. A heading
    belongs to the thought below it and an indented paragraph to the list item above it; fenced code
    is never split.
    """
    thoughts: list[str] = []
    below_heading = in_item = False
    for part in (part for block in _blocks(draft) for part in _at_steps(block)):
        continues = in_item and part.startswith(("  ", "\t")) and not _ITEM.match(part)
        if thoughts and (below_heading or continues):
            thoughts[-1] += part
        else:
            thoughts.append(part)
        below_heading, in_item = _is_heading(part), continues or bool(_ITEM.match(part))
    return thoughts


def _blocks(draft: str) -> Iterator[str]:
    """Yield the blocks between blank lines, each with those that follow it."""
    block = ""
    ends = False
    for line, code in lines(draft):
        if ends and block.strip() and line.strip():
            yield block
            block = ""
        ends = not line.strip() and not code
        block += line
    if block:
        yield block


def _at_steps(block: str) -> list[str]:
    """Split a block before each STEP if it lists several."""
    rows = list(lines(block))
    starts = [place for place, (row, code) in enumerate(rows) if not code and _STEP.match(row)]
    if len(starts) < 2:
        return [block]
    cuts = sorted({0, *starts, len(rows)})
    return ["".join(row for row, _ in rows[start:end]) for start, end in pairwise(cuts)]


def _is_heading(part: str) -> bool:
    """Tell whether a part is a heading, or a rule (---), so that it belongs to the next."""
    block = part.strip("\r\n").rstrip().replace("\r", "")
    return not _WORD.search(block) or _HEADING.fullmatch(block) is not None
