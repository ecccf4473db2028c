"""Lists as chat models and people write them, read whatever their bullets, written in one style."""

import re
import textwrap
import unicodedata
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

from stepcraft.text import markdown
from stepcraft.text.clean import unfenced

_DOTS = "\u2022\u2023\u2043\u2219\u00b7\u30fb\uff65\u25cf\u25e6\u25aa\u25ab\u25b8\u25ba"
_CIRCLED = "\u2460-\u249b\u24eb-\u24fe\u2776-\u2793\u3220-\u3229\u3280-\u3289"
"""Numbers from 1 in a circle, in parentheses or with a full stop, as one character."""
_KEYCAP = "\ufe0f?\u20e3"
_HAN = "[\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341]{1,3}"
_TITLE = r"(?:\#{1,6}\s++)?(?:\*\*)?"
_COLON = r"\s?(?:\uff1a|(?:\.-|[:.)\u2013\u2014\uff0e\uff09\u3001\uff0c-])(?![\d\u00aa\u00ba]))"
_WORDS = r"""[^\d\n:.,;!?|`*_=<>/\\"'(){}$%+~^&@\u2013\u2014\uff08\uff0c\uff1a\u3001-]"""
"""A character of the words before the number of a label."""
_BULLET = re.compile(
    rf"""
    (?P<dash>[-*+\u2013\u2014{_DOTS}](?![-*_ \t]*+$)(?:\s\[[ xX]\])?(?=\s|$)|[{_DOTS}])
    |{_TITLE}(?:
        (?P<number>\d{{1,3}})(?:\*\*)?(?:
            [.)](?=\s|$|\*\*|(?![\da-zA-Z_\u00aa\u00ba])\w)|[\uff0e\uff09\u3001](?!\d)
        )
        |(?P<bracket>[(\uff08]\d{{1,3}}[)\uff09]|[{_CIRCLED}]|\d{_KEYCAP})(?=\s|$|\*\*)
    )
    """,
    re.VERBOSE,
)
"""A bullet or a number: "1. Install" has one, "3.5 GB" and "16:9" have none."""
_STEP = re.compile(
    rf"{_TITLE}(?:step\s(?=\d)|\u7b2c(?=\w{{1,3}}\u6b65))(?P<label>\d{{1,3}}|{_HAN})"
    rf"(?:\sof\s\d{{1,3}}|\u6b65)?(?:{_COLON}|\*\*(?:{_COLON})?|$)",
    re.IGNORECASE | re.VERBOSE,
)
_COUNTED = re.compile(
    rf"""
    (?P<title>\#{{1,6}}\s++)?(?:\*\*)?
    (?P<before>[(\uff08]?{_WORDS}{{0,24}}?)
    (?P<number>\d{{1,3}}(?!\d)|{_HAN}|[{_CIRCLED}]|(?<![^\s(*\uff08])[a-zA-Z](?=[)\uff09]))
    (?:{_KEYCAP}|(?<=[{_CIRCLED}])
        |(?P<after>[^\W\d_]{{0,6}})(?:\s[^\W\d_]{{1,4}}\s\d{{1,3}})?
            (?:{_COLON}|\*\*(?:{_COLON})?|(?(title)$|(?!)))
    )
    """,
    re.VERBOSE,
)
"""A number, or a label such as "Step 1:" in any language, if others count on from it."""
_HEADING = re.compile(r"(#{1,6})\s")
_QUOTED = re.compile('^["\u201c]([^"\u201c\u201d]*)["\u201d]$')
_COLONS = (":", "\uff1a")


class _Line(NamedTuple):
    """A line that is not blank, or that belongs to a code block."""

    raw: str
    """The line without the blanks at its end."""
    text: str
    """The line without indentation, bullet, number and label."""
    after_blank: bool = False
    mark: str = ""
    """What the line begins with: "dash", "number", "label" ("Step 1:") or "bracket" ("(1)").

    For what counts on, the category of its number, which begins with a capital letter, and its
    words; "" for prose, "code" in a code block.
    """
    number: int = 0

    @property
    def indent(self) -> int:
        """The columns before the first character."""
        columns = self.raw.expandtabs(4)
        return len(columns) - len(columns.lstrip())

    @property
    def level(self) -> int:
        """The level of a heading at the margin, 0 for other lines."""
        heading = None if self.mark == "code" else _HEADING.match(self.raw)
        return len(heading[1]) if heading else 0

    def behind(self, begin: re.Match[str], mark: str, number: str) -> "_Line":
        """Return the line without its beginning, which is a bullet, a number or a label."""
        text = self.text[begin.end() :].lstrip()
        if begin[0].count("**") == 1:  # it ends there, or further on
            text = f"**{text}".removeprefix("****").lstrip()
        return self._replace(text=text, mark=mark, number=_value(number))

    def begun(self, *patterns: re.Pattern[str]) -> "_Line":
        """Return the line without its beginning; a label behind a number leaves it a number."""
        line = self
        for pattern in patterns:
            if (begin := pattern.match(line.text)) and (kind := begin.lastgroup):
                line = line.behind(begin, "number" if line.mark == "number" else kind, begin[kind])
        return line


def read_steps(text: str) -> list[str]:
    """Return the steps of a list, in order, without bullets, numbers and labels such as "Step 1:".

    What stands below an item stays with it. Headings and what stands before the list and behind it
    are dropped. In a text without items every line is a step; a single line is no list.
    """
    lines = _lines(text)
    return _items(lines) or _without_items(lines)


def read_bullets(text: str) -> list[str]:
    """Return the items of a list, in order; a text without items has none.

    "Step 2:" at the beginning of an item stays, since it says what the item is about.
    """
    return _items(_lines(text, labels=False))


def read_lines(text: str) -> list[str]:
    """Return the lines of a text, each once, without bullets, quotes, headings and code."""
    contents: dict[str, str] = {}
    for line in _lines(text):
        content = _QUOTED.sub(r"\1", line.text)
        is_heading = not line.mark and line.level
        if content and line.mark != "code" and not is_heading and not content.endswith(_COLONS):
            contents.setdefault(content.casefold(), content)
    return list(contents.values())


def item_start(line: str) -> int:
    """Return the length of the indentation and the bullet or number that a line begins with.

    It is 0 for a line that begins no item. A number that only the next one shows to be a number,
    as in "1 - Install", does not count.
    """
    text = line.lstrip()
    begin = _BULLET.match(text) or _STEP.match(text)
    return len(line) - len(text) + begin.end() if begin else 0


def without_number(step: str) -> str:
    """Return a step without the number or label that it begins with; a bullet stays."""
    first, _, below = step.strip("\n").partition("\n")
    line = _Line(first, first.lstrip()).begun(_BULLET, _STEP)
    return step if line.mark in ("", "dash") else _joined(line, [below])


def numbered(steps: Sequence[str], *, code_at_margin: bool = False) -> str:
    """Return the steps as "1. …", with further lines indented below; `read_steps` reads them back.

    With `code_at_margin`, the lines of code stand as they are, so that a model that copies them
    copies their indentation.
    """
    written: list[str] = []
    for number, step in enumerate(steps, 1):
        bullet = f"{number}. "
        blank = " " * len(bullet)
        rows = [
            line if line == "\n" or (code and code_at_margin) else blank + line
            for line, code in markdown.lines(step.rstrip("\n"))
        ]
        written.append(bullet + "".join(rows).removeprefix(blank))
    return "\n".join(written)


def _value(number: str) -> int:
    """Return the value of digits, a circled number, a Chinese numeral below 20, or a letter."""
    if number.isdecimal():
        return int(number)
    return sum(int(unicodedata.numeric(figure, ord(figure) & 31)) for figure in number)


def _counted(line: _Line, *, labels: bool) -> _Line:
    """Return the line as it reads where others count on from its number or label."""
    begin = _COUNTED.match(line.text)
    words = begin.expand(r"\g<before>\g<after>") if begin else ""
    if not begin or (any(map(str.isalpha, words)) and not labels):
        return line
    separator = line.text[begin.end("number") : begin.end()]
    mark = unicodedata.category(begin["number"][0]) + (words or separator)
    mark = "number" if mark in ("Nd.", "Nd)") else mark
    return line.behind(begin, mark, begin["number"])


def _lines(text: str, *, labels: bool = True) -> list[_Line]:
    """Return the lines of a text without blank ones and rules, and without a fence around it."""
    lines: list[_Line] = []
    latest: dict[tuple[str, int], tuple[int, _Line]] = {}
    after_blank = True
    for row, is_code in markdown.lines(unfenced(text), unclosed=False):
        raw = row.rstrip()
        line = _Line(raw, raw.lstrip(), after_blank, "code" if is_code else "")
        is_text = line.text.strip("-*_=`~\u2013\u2014 ")
        if is_text and not is_code:
            line = line.begun(_BULLET, *[_STEP] * labels)
            candidate = line if line.mark else _counted(line, labels=labels)
            key = candidate.mark, line.indent // 2
            counts_on = key in latest and latest[key][1].number + 1 == candidate.number
            if counts_on:
                place, lines[place] = latest[key]
                line = candidate
            if counts_on or candidate.number == 1:
                latest[key] = len(lines), candidate
        if is_code or is_text:
            lines.append(line)
        after_blank = not is_text
    return lines


def _items(lines: list[_Line]) -> list[str]:
    """Return the items at the margin, each with the lines below it."""
    items = [line for line in lines if line.mark not in ("", "code")]
    margin = min((line.indent for line in items), default=0) + 1  # " 9." stands above "10."
    items = [line for line in items if line.indent <= margin]
    marks = _marks([line for line in items if line.mark != "dash"] or items)
    starts = [
        place for place, line in enumerate(lines) if line.indent <= margin and line.mark in marks
    ]
    bodies = [
        _body(lines[start], lines[start + 1 : end])
        for start, end in pairwise([*starts, len(lines)])
    ]

    def is_inside(line: _Line) -> bool:
        return bool(line.mark) or not line.after_blank or line.indent > margin

    # Where no other item has paragraphs at the margin, one behind the last is a remark.
    if len(bodies) > 1 and all(is_inside(line) for body in bodies[:-1] for line in body):
        bodies[-1] = list(takewhile(is_inside, bodies[-1]))
    steps = [
        _joined(lines[start], [line.raw for line in body])
        for start, body in zip(starts, bodies, strict=True)
    ]
    return list(filter(None, steps))


def _marks(items: list[_Line]) -> set[str]:
    """Return what the items of a list begin with: the numbers or labels that enclose others.

    Those run on behind others, as "Part 2:" does behind "1. 2." below "Part 1:". Where "3." runs on
    below "Part 2:", the numbers are the items.
    """
    seen: set[tuple[str, int]] = set()
    running: set[str] = set()
    for before, line in pairwise(items):
        seen.add((before.mark, before.number))
        if before.mark != line.mark and (line.mark, line.number - 1) in seen:
            running.add(line.mark)
    if running:
        return {max(running)}  # "number" before "label", and both before those that count on
    return {line.mark for line in items if line.mark.islower() >= items[0].mark.islower()}


def _body(start: _Line, lines: list[_Line]) -> list[_Line]:
    """Return the lines of an item, up to the heading of another part."""
    level = start.level or 6
    return list(takewhile(lambda line: not 0 < line.level <= level, lines))


def _joined(start: _Line, below: list[str]) -> str:
    """Return an item as one text, its further lines without their common indentation."""
    rows = textwrap.dedent("\n".join(below))
    return f"{start.text}\n{rows}".strip("\n")


def _without_items(lines: list[_Line]) -> list[str]:
    """Return each line as a step, a code block with the line above it; [] for a single line."""
    steps: list[str] = []
    for line in lines:
        if line.mark == "code" and steps:
            steps[-1] += f"\n{line.raw}"
        elif line.text and not line.level:
            steps.append(line.raw.strip())
    if steps and steps[0].endswith(_COLONS):
        del steps[0]  # it announces the list
    return steps if len(steps) > 1 else []
