"""The Markdown structure that a change of a text must not damage: code, tables, lists, formulas."""

import re
from functools import lru_cache
from typing import NamedTuple

from stepcraft.text.clean import CJK
from stepcraft.text.markdown import code_blocks, lines, outside_code

_DELIMITER = re.compile(r"[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*+\|?[ \t]*")
_CELL_END = re.compile(r"(?<!\\)\|")
_SPAN = re.compile(r"(`+)[^`\n]*+\1")
_NUMBERED = re.compile(r"([ \t>]*)(\d{1,3})[.)][ \t]")
_ITEM = re.compile(r"[ \t>]*(?:[-*+\u2022]|\d{1,3}[.)])[ \t]")
_BLOCK = re.compile(
    r"[ \t]*(?:#{1,6}[ \t]|>|\||[-*+\u2022][ \t]|\d{1,3}[.)][ \t]|```|~~~|\$\$|<!--)"
)
"""How a line begins that is no running text."""
_STRUCTURED = re.compile(r"[`~|$]|^[ \t>]*\d{1,3}[.)]", re.MULTILINE)
"""What running text has nothing of."""
_TEXT, _CODE, _ROW, _RAGGED = "text", "code", "row", "ragged row"


def damage(text: str, start: int, stop: int, new: str) -> str:
    """Return what would be damaged if a text had `new` in place of what is between two offsets.

    Lines outside of the change keep their kind: code stays code, a row stays a row of its table.
    Code blocks, code spans and formulas that were closed stay closed, rows have as many cells as
    their head, and the numbers of lists stay in order. "" if nothing is damaged.
    """
    changed = text[:start] + new + text[stop:]
    if not _STRUCTURED.search(text) and not _STRUCTURED.search(changed):
        return ""
    before, after = _structure(text), _structure(changed)
    above = text.count("\n", 0, start)
    below = len([*lines(text[stop:].partition("\n")[2])])
    if after.open_blocks > before.open_blocks:
        return "it would leave a code fence open"
    if (
        before.kinds[:above] != after.kinds[:above]
        or before.kinds[len(before.kinds) - below :] != after.kinds[len(after.kinds) - below :]
    ):
        return "it would change what is code or a table around it"
    if after.kinds.count(_RAGGED) > before.kinds.count(_RAGGED):
        return "a row of a table would have more or fewer cells than its head"
    if after.disorder > before.disorder:
        return "the numbers of a list would not be in order"
    opened = {
        "formula": after.open_formulas - before.open_formulas,
        "code span": after.open_spans - before.open_spans,
    }
    return next((f"it would leave a {name} open" for name, more in opened.items() if more > 0), "")


class _Structure(NamedTuple):
    """What a change of a text must not damage."""

    kinds: list[str]
    """The kind of each line."""
    open_blocks: int
    disorder: int
    open_formulas: int
    open_spans: int


@lru_cache(maxsize=16)  # all changes of a text are compared with it, and then made again
def _structure(text: str) -> _Structure:
    return _Structure(
        _kinds(text),
        sum(not block.closed for block in code_blocks(text)),
        _disorder(text),
        _outside_code(text, "$$") % 2,
        _outside_code(text, "`"),
    )


def glue(before: str, new: str) -> str:
    """Return what stands between a text and what is appended to it.

    Running text goes on in the same paragraph. A block of its own begins below, and so does
    anything behind code, a table, a list, a heading or a quotation.
    """
    *_, last = before.rstrip().rsplit("\n", 1)
    kind = (_kinds(before.rstrip()) or [_TEXT])[-1]
    begins_block = bool(_BLOCK.match(new))
    if kind == _TEXT and not _BLOCK.match(last) and not begins_block and "\n\n" not in new:
        return "" if re.match(f"[{CJK}\u3000-\u303f\uff00-\uffef]", last[-1:]) else " "
    goes_on = (kind in {_ROW, _RAGGED} and new.startswith("|")) or (
        kind == _TEXT and _ITEM.match(last) and _ITEM.match(new)
    )
    return "\n" if goes_on else "\n\n"


def _kinds(text: str) -> list[str]:
    """Return the kind of each line."""
    rows = list(lines(text))
    kinds: list[str] = []
    cells = 0
    for place, (line, is_code) in enumerate(rows):
        below, below_is_code = rows[place + 1] if place + 1 < len(rows) else ("", True)
        if is_code:
            cells = 0
            kinds.append(_CODE)
        elif not cells and "|" in line and not below_is_code and _is_delimiter(below, line):
            cells = _cells(line)
            kinds.append(_ROW)
        elif cells and line.strip() and not re.match(r"[ \t]*(?:#{1,6}[ \t]|<!--)", line):
            kinds.append(_ROW if _cells(line) == cells else _RAGGED)
        else:
            cells = 0
            kinds.append(_RAGGED if line.lstrip().startswith("|") else _TEXT)
    return kinds


def _is_delimiter(line: str, head: str) -> bool:
    return _DELIMITER.fullmatch(line.rstrip("\r\n")) is not None and _cells(line) == _cells(head)


def _cells(row: str) -> int:
    bare = _SPAN.sub(lambda span: span[0].replace("|", " "), row).strip().strip(">").strip()
    return len(_CELL_END.findall(bare.removeprefix("|").removesuffix("|"))) + 1


def _disorder(text: str) -> int:
    """Count the items whose number neither follows the one before nor begins a list."""
    count = 0
    last: dict[str, int] = {}
    for line, is_code in lines(text):
        if not is_code and (item := _NUMBERED.match(line)):
            indent, number = item[1], int(item[2])
            count += number not in {1, last.get(indent, 0) + 1}
            last = {key: value for key, value in last.items() if len(key) < len(indent)}
            last[indent] = number
    return count


def _outside_code(text: str, mark: str) -> int:
    """Count a mark outside of code."""
    return sum(text.count(mark, start, stop) for start, stop in outside_code(text))
