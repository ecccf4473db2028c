"""Split a draft into thoughts (RAT §3.2) that, joined together, yield the draft again."""

import re

from stepcraft.text.markdown import lines

_HEADING = re.compile(
    r"[ \t]{0,3}(?:#{1,6}[ \t]+\S.*"  # # Heading
    r"|(\*\*|__)\S(?:(?!\1)[^\n]){0,200}\1:?[ \t]*"  # **Heading**
    r"|\S[^\n]{0,200}\n[ \t]{0,3}(?:=+|-{2,})[ \t]*)"  # an underlined heading
)
_STEP = re.compile(r"\W{0,6}step[ \t]+\d{1,3}\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]")
_ITEM = re.compile(r"[ \t]*(?:[-*+\u2022]|\d{1,3}[.)\u3001])[ \t]")


def split_thoughts(draft: str) -> list[str]:
    """Split a draft into thoughts, each with the blank lines that follow it.

    A thought ends at a blank line, and before each label such as `STEP 1:` in a list. A heading
    belongs to the thought below it, and an indented paragraph to the list item above it. Fenced
    code is never split.
    """
    rows = list(lines(draft))
    has_steps = sum(not code and _STEP.match(row) is not None for row, code in rows) > 1
    parts = [""]
    ends = False
    for row, code in rows:
        is_step = has_steps and not code and _STEP.match(row)
        if parts[-1].strip() and (is_step or (ends and row.strip())):
            parts.append("")
        parts[-1] += row
        ends = not code and not row.strip()
    thoughts: list[str] = []
    below_heading = in_item = False
    for part in filter(None, parts):
        continues = in_item and part.startswith(("  ", "\t")) and not _ITEM.match(part)
        if below_heading or continues:
            thoughts[-1] += part
        else:
            thoughts.append(part)
        below_heading, in_item = _is_heading(part), continues or bool(_ITEM.match(part))
    return thoughts


def _is_heading(part: str) -> bool:
    """Return whether a part is a heading or a rule (---) and so belongs to the next part."""
    block = part.strip("\r\n").rstrip().replace("\r", "")
    return not _WORD.search(block) or _HEADING.fullmatch(block) is not None
