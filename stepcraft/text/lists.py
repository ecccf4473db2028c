"""Lists as chat models and people write them, read whatever their bullets, written in one style."""

import re
import textwrap
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

from stepcraft.text import markdown
from stepcraft.text.clean import unfenced

_BULLET = re.compile(
    r"(?P<dash>[-*+\u2022](?:\s\[[ xX]\])?(?=\s|$))"
    r"|(?:#{1,6}\s+)?(?P<bold>\*\*)?(?:\d{1,3}[.)](?=\s|$|\*\*)|\(\d{1,3}\)(?=\s))"
)
"""A bullet or a number: "1. Install" has one, "3.5 GB" and "16:9" have none."""
_STEP = re.compile(
    r"(?:#{1,6}\s+)?(?:\*\*step\s\d{1,3}\*\*:?"
    r"|(?P<bold>\*\*)?step\s\d{1,3}(?:\sof\s\d{1,3})?(?:\s?[:.)\u2013-](?!\d)|$))",
    re.IGNORECASE,
)
_HEADING = re.compile(r"(#{1,6})\s")
_QUOTED = re.compile('^["\u201c]([^"\u201c\u201d]*)["\u201d]$')
_NUMBER, _DASH, _TEXT, _CODE = range(4)
"""What lines begin with. Where numbers and dashes stand at the margin, numbers begin the items."""


class _Line(NamedTuple):
    """A line that is not blank, or that belongs to a code block."""

    raw: str
    """The line without the blanks at its end."""
    text: str
    """The line without indentation, bullet and number."""
    kind: int
    after_blank: bool

    @property
    def indent(self) -> int:
        """The columns before the first character."""
        columns = self.raw.expandtabs(4)
        return len(columns) - len(columns.lstrip())

    @property
    def level(self) -> int:
        """The level of a heading at the margin, 0 for other lines."""
        heading = None if self.kind == _CODE else _HEADING.match(self.raw)
        return len(heading[1]) if heading else 0


def read_steps(text: str) -> list[str]:
    """Return the steps of a list, in order, without bullets and numbers.

    What stands below an item stays with it. Headings and what stands before the list and behind it
    are dropped. In a text without items every line is a step; a single line is no list.
    """
    lines = _lines(text, _BULLET, _STEP)
    return _items(lines) or _without_items(lines)


def read_bullets(text: str) -> list[str]:
    """Return the items of a list, in order; a text without items has none.

    "Step 2:" at the beginning of an item stays, since it says what the item is about.
    """
    return _items(_lines(text, _BULLET))


def read_lines(text: str) -> list[str]:
    """Return the lines of a text, each once, without bullets, quotes, headings and code."""
    contents: dict[str, str] = {}
    for line in _lines(text, _BULLET, _STEP):
        content = _QUOTED.sub(r"\1", line.text)
        is_heading = line.kind == _TEXT and line.level
        if content and line.kind != _CODE and not is_heading and not content.endswith(":"):
            contents.setdefault(content.casefold(), content)
    return list(contents.values())


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


def _lines(text: str, *bullets: re.Pattern[str]) -> list[_Line]:
    """Return the lines of a text without blank ones and rules, and without a fence around it."""
    lines: list[_Line] = []
    after_blank = True
    for line, code in markdown.lines(unfenced(text), unclosed=False):
        raw = line.rstrip()
        kind, content = _CODE if code else _TEXT, raw.lstrip()
        is_text = content.strip("-*_=`~ ")
        for bullet in () if code else bullets:
            if begun := bullet.match(content):
                kind = _DASH if begun.lastgroup == "dash" else _NUMBER
                content = content[begun.end() :].lstrip()
                if begun.lastgroup == "bold":  # it ends there, or further on
                    content = f"**{content}".removeprefix("****").lstrip()
        if code or is_text:
            lines.append(_Line(raw, content, kind, after_blank))
        after_blank = not is_text
    return lines


def _items(lines: list[_Line]) -> list[str]:
    """Return the items at the margin, each with the lines below it."""
    items = [line for line in lines if line.kind < _TEXT]
    margin = min((line.indent for line in items), default=0) + 1  # " 9." stands above "10."
    kind = min((line.kind for line in items if line.indent <= margin), default=_NUMBER)
    starts = [
        place for place, line in enumerate(lines) if line.indent <= margin and line.kind == kind
    ]
    bodies = [
        _body(lines[start], lines[start + 1 : end])
        for start, end in pairwise([*starts, len(lines)])
    ]

    def is_inside(line: _Line) -> bool:
        return not (line.kind == _TEXT and line.after_blank and line.indent <= margin)

    # Where no other item has paragraphs at the margin, one behind the last is a remark.
    if len(bodies) > 1 and all(is_inside(line) for body in bodies[:-1] for line in body):
        bodies[-1] = list(takewhile(is_inside, bodies[-1]))
    steps = [_joined(lines[start], body) for start, body in zip(starts, bodies, strict=True)]
    return list(filter(None, steps))


def _body(start: _Line, lines: list[_Line]) -> list[_Line]:
    """Return the lines of an item, up to the heading of another part."""
    level = start.level or 6
    return list(takewhile(lambda line: not 0 < line.level <= level, lines))


def _joined(start: _Line, body: list[_Line]) -> str:
    """Return an item as one text, its further lines without their common indentation."""
    below = textwrap.dedent("\n".join(line.raw for line in body))
    return f"{start.text}\n{below}".strip("\n")


def _without_items(lines: list[_Line]) -> list[str]:
    """Return each line as a step, a code block with the line above it; [] for a single line."""
    steps: list[str] = []
    for line in lines:
        if line.kind == _CODE and steps:
            steps[-1] += f"\n{line.raw}"
        elif line.text and not line.level:
            steps.append(line.raw.strip())
    if steps and steps[0].endswith(":"):
        del steps[0]  # it announces the list
    return steps if len(steps) > 1 else []
