"""A draft's thoughts: where one ends and the next begins (RAT §3.2). Joined again, they are the draft."""

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

    A thought ends at a blank line, and before each `STEP 1:` of a list of such steps. A heading belongs to the
    thought below it and an indented paragraph to the list item above it; fenced code is never split.
    """
    thoughts: list[str] = []
    opens, listed = (
        False,
        False,
    )  # whether the last part was a heading, and whether it was a list item
    for part in (part for block in _blocks(draft) for part in _at_steps(block)):
        continues = listed and part.startswith(("  ", "\t")) and not _ITEM.match(part)
        if thoughts and (opens or continues):
            thoughts[-1] += part
        else:
            thoughts.append(part)
        opens, listed = _is_heading(part), continues or _ITEM.match(part) is not None
    return thoughts


def _blocks(draft: str) -> Iterator[str]:
    """Yield the blocks between blank lines, each with those that follow it; blank lines of code separate nothing."""
    block: list[str] = []
    blank = written = False
    for line, code in lines(draft):
        if blank and written and line.strip():
            yield "".join(block)
            block, written = [], False
        blank = not line.strip() and not code
        written = written or bool(line.strip())
        block.append(line)
    if block:
        yield "".join(block)


def _at_steps(block: str) -> list[str]:
    """Split a block before each STEP if it lists several."""
    numbered = list(enumerate(lines(block)))
    starts = [number for number, (line, code) in numbered if not code and _STEP.match(line)]
    if len(starts) < 2:
        return [block]
    cuts = [0, *(start for start in starts if start), len(numbered)]
    return ["".join(line for _, (line, _) in numbered[start:end]) for start, end in pairwise(cuts)]


def _is_heading(part: str) -> bool:
    """Tell whether a part is a heading, or a rule (---), so that it belongs to the next."""
    block = part.strip("\r\n").rstrip().replace("\r", "")
    return not _WORD.search(block) or _HEADING.fullmatch(block) is not None
