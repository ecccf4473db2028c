"""Reading the lists that models and people write, whatever their bullets; writing the one style of ours."""

import itertools
import re
from collections import Counter

from stepcraft.text.bullets import BULLET, HEADED, LETTER, Line, lines_of, unwrapped
from stepcraft.text.clean import clean

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
_QUOTED = re.compile(r"([\"'`\u201c\u2018\u00ab]|\*\*)([^\"`\u201c\u201d*]*)([\"'`\u201d\u2019\u00bb]|\*\*)")
_NOTHING = " \t\n*_`~#>-[]|"


def read_steps(text: str) -> list[str]:
    """The steps of a list, in order, without their bullets.

    Sub-bullets, paragraphs and code blocks stay with their step as further lines. Headings, preamble and closing
    remarks are dropped. Without any bullets every line is a step; a single line is no list.
    """
    lines = lines_of(unwrapped(clean(text)))
    return _items(lines) or _plain(lines)


def read_bullets(text: str) -> list[str]:
    """The items of a list, in order, without their bullets; unlike `read_steps`, nothing where nothing is bulleted.

    "Step 2:" at the beginning of an item stays: it says what the item is about.
    """
    return _items(lines_of(unwrapped(clean(text)), naming_steps=True))


def read_lines(text: str) -> list[str]:
    """The lines of a text, each once, without bullets, quotes or "Q:"; headings and preamble are dropped."""
    found: dict[str, str] = {}
    for line in lines_of(unwrapped(clean(text))):
        content = _unquoted(_QUESTION.sub("", _unquoted(line.text), count=1))
        if not line.code and not line.heading and content.strip(_NOTHING) and not _is_remark(content):
            found.setdefault(content.casefold(), content)
    return list(found.values())


def numbered(steps: list[str] | tuple[str, ...]) -> str:
    """The steps as "1. …", further lines indented below the text of their step; `read_steps` reads it back."""
    return "\n".join(_numbered(number, step) for number, step in enumerate(steps, 1))


def _numbered(number: int, step: str) -> str:
    bullet_text = f"{number}. "
    first, *rest = step.split("\n")
    return "\n".join(
        [bullet_text + first, *(" " * len(bullet_text) + line if line else line for line in rest)]
    )


def _items(lines: list[Line]) -> list[str]:
    """The items at the margin, each with the lines below it."""
    ranks = _ranks(lines)
    margin = min((line.indent for line in lines if line.rank in ranks), default=0) + 1
    at_margin = [(number, line.rank) for number, line in enumerate(lines) if line.indent <= margin]
    items = [(number, rank) for number, rank in at_margin if rank is not None and rank in ranks]
    if not items:
        return []
    first = items[0][1]
    starts = [number for number, rank in items if rank <= first]
    if later := _after_preliminaries(lines, starts):
        return _items(lines[later:])
    return _split(lines, starts, margin)


def _ranks(lines: list[Line]) -> set[int]:
    """The ranks whose lines are items: a lone "C. " may begin a name, a lone "# 1." a title."""
    counts = Counter(line.rank for line in lines)
    return {rank for rank in range(BULLET + 1) if counts[rank] >= (2 if rank in (HEADED, LETTER) else 1)}


def _after_preliminaries(lines: list[Line], starts: list[int]) -> int:
    """Where the list begins if the bullets before it are of another one: a title parts them from its numbers."""
    for before, start in itertools.pairwise(starts):
        if (lines[start].rank or 0) < (lines[starts[0]].rank or 0):
            last = lines[start - 1]
            return start if start - 1 > before and (_is_title(last) or last.heading) else 0
    return 0


def _split(lines: list[Line], starts: list[int], margin: int) -> list[str]:
    """The lines as steps that begin at `starts`, without what is no step's own."""
    headed = any(lines[start].rank == HEADED for start in starts)
    bodies = [lines[start + 1 : end] for start, end in itertools.pairwise([*starts, len(lines)])]
    last = _tail(bodies, margin, headed=headed)
    bodies = [*(_own(body, margin, headed=headed) for body in bodies[:-1]), last]
    found = (_step(lines[start], body) for start, body in zip(starts, bodies, strict=True))
    return [step for step in found if step.strip(_NOTHING)]


def _is_title(line: Line) -> bool:
    titled = line.text.endswith((":", "\uff1a")) or _BOLD_TITLE.fullmatch(line.text) is not None
    return line.loose and line.rank is None and not line.code and titled


def _own(body: list[Line], margin: int, *, headed: bool) -> list[Line]:
    """The lines of a step that another one follows: without the title of the next part."""
    if not body:
        return body
    kept = list(itertools.takewhile(lambda line: not _is_part(line, margin, headed=headed), body))
    if kept and kept[-1].indent <= margin and _is_title(kept[-1]):
        kept.pop()
    return kept


def _is_part(line: Line, margin: int, *, headed: bool) -> bool:
    """Whether a heading begins another part of the text; under items that are headings, deeper ones are content."""
    return line.heading and line.indent <= margin and not headed


def _tail(bodies: list[list[Line]], margin: int, *, headed: bool) -> list[Line]:
    """The lines of the last step: without closing remarks, and without paragraphs if no other step has one."""
    paragraphs = len(bodies) == 1 or any(_is_paragraph(line, margin) for body in bodies[:-1] for line in body)

    def belongs(line: Line) -> bool:
        if line.code or line.indent > margin:
            return True
        remark = _CLOSING.match(line.text.replace("\u2019", "'")) or _is_part(line, margin, headed=headed)
        return not remark and (paragraphs or not _is_paragraph(line, margin))

    return list(itertools.takewhile(belongs, bodies[-1]))


def _is_paragraph(line: Line, margin: int) -> bool:
    return line.loose and line.rank is None and not line.code and line.indent <= margin


def _step(start: Line, body: list[Line]) -> str:
    """One step as a text: its further lines without their common indentation."""
    if not body:
        return start.text
    indents = [line.indent for line in body if line.text]
    shift = min(indents, default=0)
    lines = [line.raw[shift:] for line in body]
    return "\n".join([start.text, *lines] if start.text else lines).strip("\n")


def _plain(lines: list[Line]) -> list[str]:
    """Each line as a step, a code block with the line above it; nothing if fewer than two are left."""
    while lines and not lines[-1].code and _CLOSING.match(lines[-1].text.replace("\u2019", "'")):
        lines = lines[:-1]
    steps: list[str] = []
    for line in lines:
        if line.code and steps:
            steps[-1] += "\n" + line.raw
        elif not line.heading and line.text.strip(_NOTHING) and not (not steps and _is_remark(line.text)):
            steps.append(line.raw.strip())
    return steps if len(steps) > 1 else []


def _is_remark(text: str) -> bool:
    """Whether a line announces what follows or takes leave."""
    plain = text.replace("\u2019", "'")
    announces = _OPENING.match(plain) and not plain.endswith("?")
    return bool(announces or plain.endswith((":", ":**", "\uff1a")) or _CLOSING.match(plain))


def _unquoted(text: str) -> str:
    match = _QUOTED.fullmatch(text.strip())
    return match[2].strip() if match else text.strip()
