"""Lists as chat models and people write them, read whatever their bullets, written in one style."""

import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

from stepcraft.text import markdown
from stepcraft.text.clean import clean

_HEADING_RANK, _STEP_RANK, _NUMBER_RANK, _BULLET_RANK = range(4)
"""Ranks of items. Where several stand at the margin, a later rank belongs to an earlier one."""

_STEP = (
    r"(?i:step)\s?\d{1,3}(?:\s?(?:/|of)\s?\d{1,3})?\s?(?:\*\*|__)?\s?(?:[:.)\uff1a\u2013-](?!\d)|$)"
    r"|\u7b2c\d{1,3}\u6b65[:\uff1a\u3001]?"
)
_NUMBER = (
    r"[0-9\uff10-\uff19]{1,3}(?:\\?[.)](?=\s|$|[A-Z`\[*_]|[^\x00-\x7f])|[\u3001\uff09\uff0e](?!\d)"
    r"|:(?=\s|$))|[(][0-9]{1,3}[)](?=\s)|\uff08[0-9]{1,3}\uff09|[\u2460-\u2473]"
)
"""The number of an item: "1.Install" has one, "3.5 GB" and "16:9" have none."""
_ITEM = re.compile(
    rf"(?P<hash>#{{1,6}}\s+)?(?P<bold>\*\*|__)?(?:(?P<step>{_STEP})|(?P<number>{_NUMBER}))"
    r"|(?P<dash>(?:[-*+\u2013](?=\s|$)|\u2022)(?:\s\[[ xX]\](?=\s))?)"
)
_HEADING = re.compile(r"#{1,6}(?=\s)")
_LABEL = re.compile(r"(?:\*\*)?(?:question|q)\s?\d{0,3}\s?[:.)](?:\*\*)?\s", re.IGNORECASE)
_CLOSING = re.compile(r"let me know|(?:i )?hope\b|feel free|would you like", re.IGNORECASE)
_QUOTED = re.compile(r"([\"'\u201c])([^\"\u201c\u201d]*)[\"'\u201d]")
_MARKS = " \t\n*_`~#>-[]|"


class _Line(NamedTuple):
    """A line that is not blank, or that belongs to a code block."""

    raw: str
    """The line without the blanks at its end."""
    text: str
    """The line without indentation, bullet and number."""
    indent: int
    rank: int | None
    """The rank of the item that it begins, None if it begins none."""
    code: bool
    after_blank: bool

    @property
    def heading(self) -> int:
        """The level of a heading, 0 for other lines; a single `#` may be a remark in code."""
        level = _HEADING.match(self.raw.lstrip())
        is_heading = level and not self.code and (self.after_blank or level.end() > 1)
        return level.end() if level and is_heading else 0


def read_steps(text: str) -> list[str]:
    """Return the steps of a list, in order, without bullets and numbers.

    What stands below an item stays with it. Headings and what stands before the list and behind it
    are dropped. In a text without items every line is a step; a single line is no list.
    """
    lines = _lines(text)
    return _items(lines) or _without_items(lines)


def read_bullets(text: str) -> list[str]:
    """Return the items of a list, in order; a text without items has none.

    "Step 2:" at the beginning of an item stays, since it says what the item is about.
    """
    return _items(_lines(text, step_words=False))


def read_lines(text: str) -> list[str]:
    """Return the lines of a text, each once, without bullets, quotes, labels and headings."""
    contents: dict[str, str] = {}
    for line in _lines(text):
        content = _LABEL.sub("", _unquoted(line.text), count=1)
        passed_over = line.code or (line.heading and line.rank is None) or _CLOSING.match(content)
        if not passed_over and content.strip(_MARKS) and not content.endswith((":", ":**")):
            contents.setdefault(content.casefold(), _unquoted(content))
    return list(contents.values())


def numbered(steps: Sequence[str], *, code_at_margin: bool = False) -> str:
    """Return the steps as "1. …", with further lines indented below; `read_steps` reads them back.

    With `code_at_margin`, the lines of code stand as they are, so that a model that copies them
    copies their indentation.
    """
    written: list[str] = []
    for number, step in enumerate(steps, 1):
        bullet = f"{number}. "
        for place, (line, code) in enumerate(markdown.lines(step or "\n")):
            row = line.rstrip("\n")
            indented = " " * len(bullet) + row if row and not (code and code_at_margin) else row
            written.append(indented if place else bullet + row)
    return "\n".join(written)


def _lines(text: str, *, step_words: bool = True) -> list[_Line]:
    """Return the lines of a text without blank ones and rules, and without a fence around it."""
    lines: list[_Line] = []
    after_blank = True
    for line, code in markdown.lines(_unwrapped(clean(text)).expandtabs(4), unclosed=False):
        raw = line.rstrip()
        body = raw.lstrip()
        rule = not code and (body in ("```", "~~~") or (len(body) > 2 and not body.strip("-*_= ")))
        if code or (body and not rule):
            rank, content = (None, body) if code else _begun_item(body, step_words=step_words)
            lines.append(_Line(raw, content, len(raw) - len(body), rank, code, after_blank))
        after_blank = not body or rule
    return lines


def _unwrapped(text: str) -> str:
    """Return the text without a code fence around all of its list."""
    marks = list(markdown.fences(text))
    if not marks:
        return text
    first, *rest = marks
    head, body = text[: first.start], text[first.stop :].partition("\n")[2]
    begins = _ITEM.match(body.lstrip())
    if not begins or any(_ITEM.match(row.lstrip()) for row in head.split("\n")):
        return text
    closing = [fence for fence in rest if fence.mark == first.mark and not fence.info]
    if not closing:
        return head + body
    end = closing[-1]
    return head + text[len(text) - len(body) : end.start] + text[end.stop :]


def _begun_item(body: str, *, step_words: bool) -> tuple[int | None, str]:
    """Return the rank of the item that a line begins, and the line without bullet and number."""
    item = _ITEM.match(body)
    if not item:
        return None, body
    rest = body[item.end() :].lstrip()
    if item["dash"]:
        rank = _BULLET_RANK
    elif item["hash"]:
        rank = _HEADING_RANK
    else:
        rank = _STEP_RANK if item["step"] else _NUMBER_RANK
    if item["step"] and not step_words:
        return rank, body.lstrip("# ")
    bold = item["bold"]
    if bold and bold not in (item["step"] or ""):
        rest = rest.removeprefix(bold).lstrip() if rest.startswith(bold) else bold + rest
    inner = _ITEM.match(rest)
    if step_words and inner and inner["step"]:  # "1. Step 1: …"
        rest = _begun_item(rest, step_words=True)[1]
    return rank, rest


def _items(lines: list[_Line]) -> list[str]:
    """Return the items at the margin, each with the lines below it."""
    headings = sum(line.rank == _HEADING_RANK for line in lines)
    items = [
        (place, line)
        for place, line in enumerate(lines)
        if line.rank is not None and (line.rank != _HEADING_RANK or headings > 1)
    ]
    if not items:
        return []
    margin = min(line.indent for _, line in items) + 1
    at_margin = [(place, line) for place, line in items if line.indent <= margin]
    rank = min(line.rank for _, line in at_margin if line.rank is not None)
    starts = [place for place, line in at_margin if line.rank == rank]
    bodies = [
        _body(lines[start], lines[start + 1 : end])
        for start, end in itertools.pairwise([*starts, len(lines)])
    ]
    has_paragraphs = len(bodies) == 1 or any(
        _is_paragraph(line, margin) for body in bodies[:-1] for line in body
    )
    bodies[-1] = list(
        itertools.takewhile(
            lambda line: (
                not _CLOSING.match(line.text)
                # Where no other item has paragraphs, one behind the last is a remark, too.
                and (has_paragraphs or not _is_paragraph(line, margin))
            ),
            bodies[-1],
        )
    )
    steps = [_joined(lines[start], body) for start, body in zip(starts, bodies, strict=True)]
    return [step for step in steps if step.strip(_MARKS)]


def _body(start: _Line, lines: list[_Line]) -> list[_Line]:
    """Return the lines of an item, up to the heading of another part."""
    level = start.heading or 6
    return list(itertools.takewhile(lambda line: not 0 < line.heading <= level, lines))


def _is_paragraph(line: _Line, margin: int) -> bool:
    return line.after_blank and line.rank is None and not line.code and line.indent <= margin


def _joined(start: _Line, body: list[_Line]) -> str:
    """Return an item as one text, its further lines without their common indentation."""
    shift = min((line.indent for line in body if line.text), default=0)
    return "\n".join([start.text, *(line.raw[shift:] for line in body)]).strip("\n")


def _without_items(lines: list[_Line]) -> list[str]:
    """Return each line as a step, a code block with the line above it; [] for a single line."""
    steps: list[list[str]] = []
    for line in lines:
        if line.code and steps:
            steps[-1].append(line.raw)
        elif not (line.heading or _CLOSING.match(line.text)) and line.text.strip(_MARKS):
            steps.append([line.raw.strip()])
    if steps and len(steps[0]) == 1 and steps[0][0].endswith(":"):
        del steps[0]  # it announces the list
    return ["\n".join(step) for step in steps] if len(steps) > 1 else []


def _unquoted(text: str) -> str:
    match = _QUOTED.fullmatch(text.strip())
    return match[2].strip() if match else text.strip()
