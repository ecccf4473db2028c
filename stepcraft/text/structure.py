"""Markdown structure that edits must not damage: code, tables, lists, formulas."""

import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise, takewhile

from stepcraft.text.clean import CJK, SPACELESS_STOPS, STOPS
from stepcraft.text.lists import item_start
from stepcraft.text.markdown import DELIMITER, code_blocks, lines, outside_code

_BLOCK = re.compile(
    r"[ ]{2,}\S|\t|[ ]?(?:#{1,6}\s|[|><]|\$\$|\\[\[be]|\[[^\]\n]+\]:|```|~~~"
    r"|(\*\*|__)[^*_\n]+\1:?\s*$|[\W_]*$)"
)
"""Beginnings of lines that are not running text, such as headings, rules or definitions."""
_DELIMITER = re.compile(rf"{DELIMITER}\s*")
_TAIL = 5_000
"""The number of trailing characters searched for the start of the last paragraph."""
_ENDED = re.compile(
    rf"[{STOPS}{SPACELESS_STOPS}](?:\[[^\]\n]*\]|\([^()\n]*\)|[\W_\u00b2\u00b3\u00b9])*$"
)
"""The end of a sentence, with its citation marks and closing brackets."""
_LEAD = re.compile(
    r"[^\w\s*\"'`(\[\u2018-\u201f]"
    r"|(?P<label>(?:\*\*)?[^\W_][^\n:*]{0,30}:(?:\*\*)?\s)"
    r"|(?P<number>[^\W_]{1,4}(?:[.)]\s|[ ]?[\u2013\u2014-]\s|[\uff09\u3001]))"
)
_CELL_END = re.compile(r"(?<!\\)\|")
_NUMBERED = re.compile(r"([ \t>]*+)(\d{1,3})[.)]\s")
_PAIRS = (
    ("$$", "$$"),
    (r"\[", r"\]"),
    (r"\]", r"\["),
    (r"\(", r"\)"),
    (r"\)", r"\("),
    ("<!--", "-->"),
    ("-->", "<!--"),
    ("**", "**"),
    ("__", "__"),
    ("[", "]"),
    ("]", "["),
    ("](", ")"),
    ("`", "\0"),
)
"""Marks and their counterparts; a backtick outside of code spans has none."""
_PAIRED = re.compile(r"[`~$\\<>*_\[\]]")
"""The characters of these marks, of fences and of tags."""
_TAG = re.compile(
    r"<(/?)(a|b|code|del|details|div|em|i|ol|pre|s|span|strong|su[bp]|summary|table|u|ul)\b[^<>]*>",
    re.IGNORECASE,
)
_FRONT_MATTER = re.compile(r"(---|\+\+\+)[ \t\r]*\n(?:(?!\1).*\n)*?\1[ \t\r]*(?:\n|\Z)")


def damage(before: str, after: str) -> str:
    """Return the damage done by turning one text into another, or "" if there is none.

    A line of code must remain code, and a row must stay in its table. There must be no new faults:
    unclosed code or formulas, rows that do not fit their header, numbers out of order, or items
    that continue a paragraph.
    """
    (lines_before, faults_before), (lines_after, faults_after) = map(_structure, (before, after))
    gone = {line for line, kind in lines_before - lines_after if kind}
    if any(line in gone for line, _ in lines_after - lines_before):
        return "it would change what is code or a table around it"
    return next(iter(faults_after - faults_before), "")


def opened(old: str, new: str) -> str:
    """Return the damage done by new words with an unpaired mark that the old words lack, or ""."""
    if not _PAIRED.search(new):
        return ""
    return next(iter(_unpaired(new) - _unpaired(old)), "")


@lru_cache(maxsize=2)
def _structure(text: str) -> tuple[Counter[tuple[str, str]], Counter[str]]:
    """Return how often each line occurs, by text and kind, and how often each fault does."""
    kinds: Counter[tuple[str, str]] = Counter()
    faults: Counter[str] = Counter()
    numbers: dict[str, int] = {}
    cells, place = 0, ""
    for (line, is_code), (below, _) in pairwise([*lines(text), ("", False)]):
        if is_code or not line.strip() or ("|" not in line and _BLOCK.match(line)):
            cells = 0
        elif not cells and "|" in line and _DELIMITER.fullmatch(below):
            cells = _cells(line) if _cells(line) == _cells(below) else 0
        if cells or (not is_code and line.lstrip(" \t>").startswith("|")):
            faults["a row of a table would not fit its head"] += _cells(line) != cells
        if not is_code and (item := _NUMBERED.match(line)):
            indent, number = item[1], int(item[2])
            is_next = number in {1, numbers.get(indent, 0) + 1}
            faults["the numbers of a list would not be in order"] += not is_next
            numbers = {key: last for key, last in numbers.items() if len(key) < len(indent)}
            numbers[indent] = number
            faults["it would turn a list into running text"] += place == "text" and number != 1
        is_item = item_start(line) > 0
        if is_code or (_BLOCK.match(line) and not is_item):
            place = ""
        else:
            place = "list" if is_item else place or "text"
        kinds[line.strip(), "code" if is_code else "table" if cells else ""] += bool(line.strip())
    faults.update(_unpaired(text))
    is_open = text.startswith(("---", "+++")) and not _FRONT_MATTER.match(text)
    faults["it would leave its front matter open"] = is_open
    return kinds, faults


def _unpaired(text: str) -> Counter[str]:
    """Return how often each kind of mark or tag in a text has no counterpart."""
    faults: Counter[str] = Counter()
    faults["it would leave a code fence open"] = sum(not each.closed for each in code_blocks(text))
    # "<>" in place of code is not a mark and does not form one with the text around it.
    prose = "<>".join(text[start:stop] for start, stop in outside_code(text))
    for opening, closing in _PAIRS:
        count = prose.count(opening)
        unpaired = count % 2 if opening == closing else max(count - prose.count(closing), 0)
        faults[f"it would leave {opening} without its counterpart"] = unpaired
    tags = Counter[str]()
    for closing, name in _TAG.findall(prose):
        tags[name.lower()] += -1 if closing else 1
    for name, count in tags.items():
        faults[f"it would leave <{name}> or its end alone"] = abs(count)
    return faults


def _cells(row: str) -> int:
    return len(_CELL_END.findall(row.strip(" \t>\r\n").removeprefix("|").removesuffix("|"))) + 1


def glue(before: str, new: str) -> str:
    """Return the separator to insert between a text and the text appended to it.

    A sentence continues a paragraph of sentences. Any other text begins on a new line, and so does
    anything that follows code, a table, a list, a heading or a quotation.
    """
    paragraph = [*takewhile(str.strip, reversed(before[-_TAIL:].splitlines()))]
    last, *above = paragraph or [""]
    has_block = any(_BLOCK.match(line) or item_start(line) for line in [*paragraph, new])
    is_prose = not has_block and "\n" not in new
    if not paragraph or (is_prose and _ENDED.search(last) and not _alike(last, new)):
        return "" if re.match(rf"[{CJK}\u3000-\u303f\uff00-\uffef]|$", before[-1:]) else " "
    if above and is_prose:
        needs_hard_break = above[0].endswith("  ") and not last.endswith("  ")
        return "  \n" if needs_hard_break else "\n"
    is_table = any(map(_DELIMITER.fullmatch, above)) and "|" in last
    is_row = "|" in new and is_table and _cells(new.partition("\n")[0]) == _cells(last)
    is_item = item_start(new) and any(map(item_start, paragraph))
    is_quoted = new.startswith(">") and last.startswith(">")
    return "\n" if is_row or is_item or is_quoted else "\n\n"


def _alike(line: str, new: str) -> bool:
    """Return whether two lines begin with the same symbol, or both with a label or a number."""
    leads = [_LEAD.match(text.strip()) for text in (line, new)]
    kinds = [lead and (lead.lastgroup or lead[0]) for lead in leads]
    return kinds[0] is not None and kinds[0] == kinds[1]
