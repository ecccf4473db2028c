"""The lines of a list: which bullet each begins with, how far it is indented, whether it is code."""

import re
import string
from collections.abc import Iterator
from typing import NamedTuple

HEADED, STEP, CHINESE, NUMBER, LETTER, BULLET = range(6)
"""Ranks of bullets: when several stand at the margin, the later ones list what belongs to the earlier ones."""

_COUNT = "(?:[0-9\uff10-\uff19]{1,3}|[\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341]{1,4})"
_TIGHT = r"(?!\d)(?=\s|$|[A-Z`\[]|\*\*|__|[^\x00-\x7f])"  # "1.Install" is numbered, "3.5 GB" is not
_STEP_WORD = (
    r"(?:(?i:step)\s{0,2}(?:\d{1,3}|(?i:one|two|three|four|five|six|seven|eight|nine|ten))(?:\s?(?:/|of)\s?\d{1,3})?"
    r"\s{0,3}(?:\*\*|__)?\s{0,3}(?:[:.)\uff1a\u3001\u2013\u2014-](?!\d)|$)"
    rf"|\u7b2c{_COUNT}\u6b65(?:\*\*|__)?[:\uff1a\u3001\uff0c,.\u3002]?|\u6b65\u9aa4\s?{_COUNT}(?:\*\*|__)?[:\uff1a\u3001.\uff0e])"
)
_ORDINAL = re.compile(
    r"(?P<hash>#{1,6}\s{1,3})?(?P<bold>\*\*|__)?(?:"
    rf"(?P<step>{_STEP_WORD})"
    r"|(?P<number>[0-9]{1,3}\\?[.)]"
    rf"{_TIGHT}|[(][0-9]{{1,3}}[)]{_TIGHT}|[0-9]{{1,3}}:(?=\s|$)"
    r"|(?:[0-9]{1,3}|[\uff10-\uff19]{1,3})[\u3001\uff09\uff1a]|(?:[0-9]{1,3}|[\uff10-\uff19]{1,3})\uff0e(?!\d)"
    r"|[\uff10-\uff19]{1,3}\.(?!\d)|\uff08[0-9\uff10-\uff19]{1,3}\uff09|[\u2460-\u2473]|[0-9]\ufe0f?\u20e3)"
    r"|(?P<chinese>[(\uff08]?[\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341]{1,3}[\u3001\uff0e\uff09.)])"
    r"|(?P<letter>[(]?(?:[A-Za-z]|[ivx]{1,5}|[IVX]{1,5})[.)](?=\s|$)))"
)
_BULLET = re.compile(
    r"(?:[-*+\u2013\u2014\u00b7](?=\s|$)|[\u2022\u2023\u25e6\u25aa\u25a0\u25cf\u25cb])(?:\s{1,3}\[[ xX]\](?=\s|$))?"
)
_AGAIN = re.compile(rf"(?P<bold>\*\*|__)?{_STEP_WORD}")
_LETTERS = frozenset(string.ascii_letters)
_LETTERED = frozenset(".)")
_RANKS = {"step": STEP, "chinese": CHINESE, "number": NUMBER, "letter": LETTER}
_FENCE = re.compile(r"(`{3,}|~{3,})\s{0,3}([^\s`]{0,40})")
_HEADING = re.compile(r"#{1,6}(?=\s|$)")


class Line(NamedTuple):
    """One line of a list that has something on it, or that belongs to a code block."""

    raw: str
    """As it was written, without the space at its end."""
    text: str
    """Without indentation and bullet."""
    indent: int
    rank: int | None
    """Of its bullet, None if it has none."""
    code: bool
    loose: bool
    """Whether a blank line stands before it."""

    @property
    def heading(self) -> bool:
        """Whether it is a heading in Markdown; a single `#` only after a blank line, as it may be a remark in code."""
        return (
            self.rank is None
            and not self.code
            and _HEADING.match(self.text) is not None
            and (self.loose or self.text.startswith("##"))
        )


def lines_of(text: str, *, naming_steps: bool = False) -> list[Line]:
    """The lines of a text; blank ones and rules outside of code are dropped.

    With `naming_steps`, "Step 2:" is what a line is about, and stays in its text.
    """
    rows = [row.rstrip() for row in text.expandtabs(4).split("\n")]
    lines: list[Line] = []
    loose = True
    for row, code in zip(rows, _in_code(rows), strict=True):
        body = row.lstrip()
        rule = not code and (_is_rule(body) or body in ("```", "~~~"))  # a fence that stands alone is none
        if code:
            lines.append(Line(row, body, len(row) - len(body), None, code=True, loose=loose))
        elif body and not rule:
            rank, content = bullet(body, naming_steps=naming_steps)
            lines.append(Line(row, content, len(row) - len(body), rank, code=False, loose=loose))
        loose = not body or rule
    return lines


def bullet(body: str, *, naming_steps: bool = False) -> tuple[int | None, str]:
    """The rank of the bullet that a line without indentation begins with, and the text after it."""
    if body[0] in _LETTERS and not _LETTERED.intersection(body[:6]) and body[:4].lower() != "step":
        return None, body  # most lines of prose
    match = _BULLET.match(body)
    if match:
        rest = body[match.end() :].lstrip()
        return BULLET, rest if naming_steps else _again(rest)
    match = _ORDINAL.match(body)
    if not match:
        return None, body
    kind = next(name for name in _RANKS if match[name])
    rank = HEADED if match["hash"] else _RANKS[kind]
    if naming_steps and kind == "step":
        return rank, body.lstrip("# ")
    rest = _closed(body[match.end() :], match["bold"], match[kind])
    return rank, rest if naming_steps else _again(rest)


def _again(rest: str) -> str:
    """What follows a bullet, without a second one such as "Step 1:"."""
    match = _AGAIN.match(rest)
    return (
        _closed(rest[match.end() :], match["bold"], match[0].removeprefix(match["bold"] or ""))
        if match
        else rest
    )


def _closed(rest: str, bold: str | None, marker: str) -> str:
    """The text after a bullet; bold that was opened before the bullet ends with it or goes on in the text."""
    rest = rest.lstrip()
    if not bold or bold in marker:
        return rest
    if rest.startswith(bold):
        return rest.removeprefix(bold).lstrip()
    return bold + rest if rest else rest


def _is_rule(body: str) -> bool:
    return len(body) > 2 and body[0] in "-*_=" and not body.replace(" ", "").strip(body[0])


def _in_code(rows: list[str]) -> list[bool]:
    """Which lines stand in a code block, its fences included; an unclosed fence begins none."""
    if not any("```" in row or "~~~" in row for row in rows):
        return [False] * len(rows)
    flags: list[bool] = []
    opened: tuple[int, str] | None = None
    for number, match in enumerate(map(_fence, rows)):
        if (
            match and opened and match[1].startswith(opened[1]) and match[2] in {"", "]]"}
        ):  # a doubt ends with it
            opened = None
            flags.append(True)
            continue
        if match and not opened:
            opened = number, match[1]
        flags.append(opened is not None)
    if opened:
        flags[opened[0] :] = [False] * (len(rows) - opened[0])
    return flags


def _fence(row: str) -> re.Match[str] | None:
    body = row.lstrip()
    return _FENCE.fullmatch(body) if body[:3] in ("```", "~~~") else None


def unwrapped(text: str) -> str:
    """The text without the code fence around its list."""
    rows = text.split("\n")
    fences = [(number, match) for number, row in enumerate(rows) if (match := _fence(row))]
    if not fences or not _opens_list(rows, fences[0][0]):
        return text
    opening, match = fences[0]
    closing = [number for number, other in fences[1:] if other[1] == match[1] and not other[2]]
    dropped = {opening, closing[-1]} if closing else {opening}
    return "\n".join(row for number, row in enumerate(rows) if number not in dropped)


def _opens_list(rows: list[str], fence: int) -> bool:
    """Whether the first line in a fence is an item, and no line before it is."""
    first = next((row.strip() for row in rows[fence + 1 :] if row.strip()), "")
    return bool(first) and bullet(first)[0] is not None and not any(_items(rows[:fence]))


def _items(rows: list[str]) -> Iterator[bool]:
    return (bullet(row.strip())[0] is not None for row in rows if row.strip())
