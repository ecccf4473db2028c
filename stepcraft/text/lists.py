"""Lists as chat models and people write them, read whatever their bullets, and written in one style."""

import itertools
import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from stepcraft.text import markdown
from stepcraft.text.clean import clean

_HEADED, _STEP, _CHINESE, _NUMBER, _LETTER, _BULLET = range(6)
"""Ranks of bullets. Where several stand at the margin, a later rank lists what belongs to an earlier one."""
_RANKS = {"step": _STEP, "chinese": _CHINESE, "number": _NUMBER, "letter": _LETTER}

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
_DASH = re.compile(
    r"(?:[-*+\u2013\u2014\u00b7](?=\s|$)|[\u2022\u2023\u25e6\u25aa\u25a0\u25cf\u25cb])(?:\s{1,3}\[[ xX]\](?=\s|$))?"
)
_SECOND = re.compile(rf"(?P<bold>\*\*|__)?{_STEP_WORD}")
_HEADING = re.compile(r"#{1,6}(?=\s|$)")
_LETTERS = frozenset(string.ascii_letters)
_LETTERED = frozenset(".)")

_OPENING = re.compile(
    r"(?:(?:sure|certainly|of course|absolutely|okay|great|got it)[,!.:]|(?:here(?:'s| is| are)|below (?:is|are))\b)",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"(?:let me know|i hope|hope (?:this|that|it)|feel free|note that i\b|please (?:let me know|note that i\b)"
    r"|if you(?:'d like| would like| have any| need (?:any|more|further|additional|help)| want me)"
    r"|would you like|do you want me|happy (?:coding|cooking|baking|building)\b|enjoy!|good luck|that's it|by following"
    r"|(?:these|the above) (?:steps|changes|edits|updates|revisions)|this (?:updated|revised|procedure|list|version)"
    r"|with these|in summary|i(?:'ve| have) (?:also |now )?(?:added|updated|revised|kept|removed|included|changed|made)"
    r"|\u5e0c\u671b|\u5982\u679c\u60a8|\u5982\u679c\u4f60|\u5982\u6709|\u5982\u9700)",
    re.IGNORECASE,
)
_BOLD_TITLE = re.compile(r"(\*\*|__)[^*_]{1,200}\1:?")
_QUESTION = re.compile(
    r"(?:\*\*|__)?(?:question|q)\s?\d{0,3}\s?(?:\*\*|__)?[:.)\uff1a](?:\*\*|__)?\s", re.IGNORECASE
)
_QUOTED = re.compile(
    r"([\"'`\u201c\u2018\u00ab]|\*\*)([^\"`\u201c\u201d*]*)([\"'`\u201d\u2019\u00bb]|\*\*)"
)
_BLANKS_AND_MARKS = " \t\n*_`~#>-[]|"


class _Line(NamedTuple):
    """A line that is not blank, or that belongs to a code block."""

    raw: str
    """The line without the blanks at its end."""
    text: str
    """The line without indentation and bullet."""
    indent: int
    rank: int | None
    """The rank of its bullet, None if it has none."""
    code: bool
    loose: bool
    """Whether a blank line stands before it."""

    @property
    def heading(self) -> bool:
        """Whether it is a heading; a single `#` only after a blank line, as it may be a remark in code."""
        if self.code or self.rank is not None or not _HEADING.match(self.text):
            return False
        return self.loose or self.text.startswith("##")

    @property
    def titled(self) -> bool:
        """Whether it is a paragraph that announces what follows, such as `**Steps:**`."""
        titled = self.text.endswith((":", "\uff1a")) or _BOLD_TITLE.fullmatch(self.text) is not None
        return self.loose and self.rank is None and not self.code and titled

    def begins_part(self, margin: int, *, headed: bool) -> bool:
        """Whether it is a heading of the next part; below items that are headings, deeper ones are content."""
        return self.heading and self.indent <= margin and not headed

    def is_paragraph(self, margin: int) -> bool:
        """Whether it begins a paragraph at the margin."""
        return self.loose and self.rank is None and not self.code and self.indent <= margin


def read_steps(text: str) -> list[str]:
    """Return the steps of a list, in order, without their bullets.

    Sub-bullets, paragraphs and code blocks stay with their step as further lines. Headings, announcements and closing
    remarks are dropped. In a text without bullets every line is a step; a single line is no list.
    """
    lines = _lines(clean(text))
    return _items(lines) or _unbulleted(lines)


def read_bullets(text: str) -> list[str]:
    """Return the items of a list, in order, without their bullets; a text without bullets has none.

    "Step 2:" at the beginning of an item stays, since it says what the item is about.
    """
    return _items(_lines(clean(text), keep_step=True))


def read_lines(text: str) -> list[str]:
    """Return the lines of a text, each once, without bullets, quotes or "Q:", headings and announcements."""
    found: dict[str, str] = {}
    for line in _lines(clean(text)):
        content = _unquoted(_QUESTION.sub("", _unquoted(line.text), count=1))
        if not (line.code or line.heading or _is_remark(content)) and content.strip(
            _BLANKS_AND_MARKS
        ):
            found.setdefault(content.casefold(), content)
    return list(found.values())


def numbered(steps: Sequence[str], *, code_at_margin: bool = False) -> str:
    """Return the steps as "1. …", with further lines indented below; `read_steps` reads them back.

    With `code_at_margin`, the lines of code stand as they are, so that a model that copies them copies their indentation.
    """
    written: list[str] = []
    for number, step in enumerate(steps, 1):
        bullet = f"{number}. "
        first, *rest = (
            (line.rstrip("\n"), code and code_at_margin)
            for line, code in markdown.lines(step or "\n")
        )
        written.append(bullet + first[0])
        written += [" " * len(bullet) + line if line and not code else line for line, code in rest]
    return "\n".join(written)


def is_closing_remark(line: str) -> bool:
    """Tell whether a line begins as models' remarks after a list do ("Let me know if …")."""
    return _CLOSING.match(line.replace("\u2019", "'")) is not None


def _lines(text: str, *, keep_step: bool = False) -> list[_Line]:
    """Return the lines of a text without blank ones and rules outside of code, and without a fence around the list."""
    lines: list[_Line] = []
    loose = True
    for line, code in markdown.lines(_unwrapped(text).expandtabs(4), unclosed=False):
        raw = line.rstrip()
        body = raw.lstrip()
        indent = len(raw) - len(body)
        rule = not code and (_is_rule(body) or body in ("```", "~~~"))
        if code:
            lines.append(_Line(raw, body, indent, None, code=True, loose=loose))
        elif body and not rule:
            rank, content = _bullet(body, keep_step=keep_step)
            lines.append(_Line(raw, content, indent, rank, code=False, loose=loose))
        loose = not body or rule
    return lines


def _unwrapped(text: str) -> str:
    """Return the text without the code fence around its list: the first fence if an item follows it, and its end."""
    found = list(markdown.fences(text))
    if not found:
        return text
    opening, *others = found
    first = text[opening.stop :].partition("\n")[2].lstrip()[:200].partition("\n")[0]
    before = (row.strip() for row in text[: opening.start].split("\n"))
    if (
        not first
        or _bullet(first)[0] is None
        or any(row and _bullet(row)[0] is not None for row in before)
    ):
        return text
    closing = [fence for fence in others if fence.mark == opening.mark and not fence.info]
    dropped = {fence.start for fence in (opening, *closing[-1:])}
    starts = itertools.accumulate((len(row) + 1 for row in text.split("\n")), initial=0)
    return "\n".join(
        row for start, row in zip(starts, text.split("\n"), strict=False) if start not in dropped
    )


def _bullet(body: str, *, keep_step: bool = False) -> tuple[int | None, str]:
    """Return the rank of the bullet that a line begins with, and the text after it.

    A second bullet, as in "1. Step 1: …", goes too, unless `keep_step` keeps each "Step 1:".
    """
    if body[0] in _LETTERS and not _LETTERED.intersection(body[:6]) and body[:4].lower() != "step":
        return None, body  # the quick way out for most lines of prose
    if match := _DASH.match(body):
        rank, rest = _BULLET, body[match.end() :].lstrip()
    elif match := _ORDINAL.match(body):
        kind = next(name for name in _RANKS if match[name])
        rank = _HEADED if match["hash"] else _RANKS[kind]
        if keep_step and kind == "step":
            return rank, body.lstrip("# ")
        rest = _after_bold(body[match.end() :], match["bold"], match[kind])
    else:
        return None, body
    if not keep_step and (match := _SECOND.match(rest)):
        rest = _after_bold(
            rest[match.end() :], match["bold"], match[0].removeprefix(match["bold"] or "")
        )
    return rank, rest


def _after_bold(rest: str, bold: str | None, marker: str) -> str:
    """Return the text after a bullet; bold that opens before the bullet ends with it or goes on in the text."""
    rest = rest.lstrip()
    if not bold or bold in marker:
        return rest
    if rest.startswith(bold):
        return rest.removeprefix(bold).lstrip()
    return bold + rest if rest else rest


def _is_rule(body: str) -> bool:
    return len(body) > 2 and body[0] in "-*_=" and not body.replace(" ", "").strip(body[0])


def _items(lines: list[_Line]) -> list[str]:
    """Return the items at the margin, each with the lines below it."""
    counts = Counter(line.rank for line in lines)
    # A lone "C. " may begin a name, a lone "# 1." a title.
    ranks = {
        rank
        for rank in range(_BULLET + 1)
        if counts[rank] >= (2 if rank in (_HEADED, _LETTER) else 1)
    }
    margin = min((line.indent for line in lines if line.rank in ranks), default=0) + 1
    items = [
        (n, line.rank)
        for n, line in enumerate(lines)
        if line.indent <= margin and line.rank in ranks
    ]
    if not items:
        return []
    first = items[0][1]
    starts = [number for number, rank in items if rank <= first]
    if later := _after_preliminaries(lines, starts):
        return _items(lines[later:])
    headed = any(lines[start].rank == _HEADED for start in starts)
    bodies = [lines[start + 1 : end] for start, end in itertools.pairwise([*starts, len(lines)])]
    last = _last_body(bodies, margin, headed=headed)
    bodies = [*(_body(body, margin, headed=headed) for body in bodies[:-1]), last]
    found = (_step(lines[start], body) for start, body in zip(starts, bodies, strict=True))
    return [step for step in found if step.strip(_BLANKS_AND_MARKS)]


def _after_preliminaries(lines: list[_Line], starts: list[int]) -> int:
    """Return where the list begins if other bullets stand before it, parted from its numbers by a title; else 0."""
    for before, start in itertools.pairwise(starts):
        if (lines[start].rank or 0) < (lines[starts[0]].rank or 0):
            last = lines[start - 1]
            return start if start - 1 > before and (last.titled or last.heading) else 0
    return 0


def _body(body: list[_Line], margin: int, *, headed: bool) -> list[_Line]:
    """Return the lines of a step that another one follows, without the title of the next part."""
    kept = list(itertools.takewhile(lambda line: not line.begins_part(margin, headed=headed), body))
    if kept and kept[-1].indent <= margin and kept[-1].titled:
        kept.pop()
    return kept


def _last_body(bodies: list[list[_Line]], margin: int, *, headed: bool) -> list[_Line]:
    """Return the last step's lines, without closing remarks, and without paragraphs if no other step has one."""
    paragraphs = len(bodies) == 1 or any(
        line.is_paragraph(margin) for body in bodies[:-1] for line in body
    )

    def belongs(line: _Line) -> bool:
        if line.code or line.indent > margin:
            return True
        remark = is_closing_remark(line.text) or line.begins_part(margin, headed=headed)
        return not remark and (paragraphs or not line.is_paragraph(margin))

    return list(itertools.takewhile(belongs, bodies[-1]))


def _step(start: _Line, body: list[_Line]) -> str:
    """Return a step as one text, its further lines without their common indentation."""
    if not body:
        return start.text
    shift = min((line.indent for line in body if line.text), default=0)
    lines = [line.raw[shift:] for line in body]
    return "\n".join([start.text, *lines] if start.text else lines).strip("\n")


def _unbulleted(lines: list[_Line]) -> list[str]:
    """Return each line as a step, a code block with the line above it; nothing if fewer than two are left."""
    end = len(lines)
    while end and not lines[end - 1].code and is_closing_remark(lines[end - 1].text):
        end -= 1
    steps: list[list[str]] = []
    for line in lines[:end]:
        if line.code and steps:
            steps[-1].append(line.raw)
        elif (
            not line.heading
            and line.text.strip(_BLANKS_AND_MARKS)
            and (steps or not _is_remark(line.text))
        ):
            steps.append([line.raw.strip()])
    return ["\n".join(step) for step in steps] if len(steps) > 1 else []


def _is_remark(text: str) -> bool:
    """Tell whether a line announces what follows or is a closing remark."""
    announces = _OPENING.match(text.replace("\u2019", "'")) and not text.endswith("?")
    return bool(announces or text.endswith((":", ":**", "\uff1a")) or is_closing_remark(text))


def _unquoted(text: str) -> str:
    match = _QUOTED.fullmatch(text.strip())
    return match[2].strip() if match else text.strip()
