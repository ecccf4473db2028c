"""Patches of numbered steps or paragraphs: the changes alone, in lines that name a part by its present number.

    3: …     or [3] …     replaces part 3
    3+: …    or [3+] …    adds a part after part 3; 0+ adds one before the first
    3-       or [3-]      removes part 3
    3>: …                 adds to the end of step 3

All other parts stay as they are. Steps are named without brackets, paragraphs with them, because a paragraph may begin
with "1." itself. References to steps ("step 4", "steps 2-4") follow where numbers move.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from typing_extensions import TypedDict

from stepcraft.errors import UnreadableReply
from stepcraft.text import markdown
from stepcraft.text.clean import clean, is_unchanged, unfenced, without_markers
from stepcraft.text.lists import is_closing_remark, read_steps
from stepcraft.text.sections import UNCHANGED

_ADDRESS = re.compile(
    r"(?:[-*\u2022][ \t]{1,3})?(?P<mark>\*\*|__|`)?"
    r"(?:(?i:step)[ \t]{0,2}|\u7b2c|\u6b65\u9aa4[ \t]?)?(?P<number>[0-9]{1,3})\u6b65?"
    r"(?:[ \t]?(?P<add>\+)(?:(?:\*\*|__|`)?[:.)\uff1a]|(?=[\s*_`]|$))"
    r"|[ \t]?(?P<extend>>)(?:\*\*|__|`)?[:.)\uff1a]"
    r"|(?P<remove>[-\u2013\u2014\u2212](?![0-9\w>+])|[ \t][-\u2013\u2014\u2212](?=[*_` \t]{0,3}$))"
    r"|(?:\*\*|__|`)?(?P<replace>[:\uff1a])(?=[\s*_`]|[^\x00-\x7f]|[A-Z\[]|$)"
    r"|(?P<dotted>[.)])(?=[\s*_`]|$))"
)
_BRACKETED = re.compile(
    r"(?P<mark>\*\*|__|`)?\[(?P<number>[0-9]{1,3})(?:\](?=[+\-\u2013\u2014\u2212]))?"
    r"(?:(?P<add>\+)|(?P<remove>[-\u2013\u2014\u2212]))?\]?(?<=[\]+\-\u2013\u2014\u2212])"
    r"(?:\*\*|__|`)?:?(?=[\s*_`]|[^\x00-\x7f]|$)(?P<dotted>(?!))?(?P<extend>(?!))?"
)
_NUMBER = r"[0-9]{1,3}(?![0-9]|[.,][0-9]{3}|\.[0-9])"
_BETWEEN = r"[ \t]{0,2}(?:,[ \t]{0,2}(?:and|or)?|-|\u2013|\u2014|&|and|or|to|through)[ \t]{0,2}"
_REFERENCE = re.compile(
    rf"(?<![\w-])(?:steps[ \t]{{1,2}}{_NUMBER}(?:{_BETWEEN}{_NUMBER}){{0,40}}|step[ \t]{{1,2}}{_NUMBER})",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"[0-9]{1,3}")


class StepChange(TypedDict):
    """A change of one step, by the number that it had before."""

    step: int
    """The number of the step; for an added one, of the step that it follows, 0 before the first."""
    before: str
    """Its text before, "" for an added step."""
    after: str
    """Its text after, "" for a removed step."""


Kind = Literal["replace", "extend", "add", "remove"]


class Change(NamedTuple):
    """One line of a patch."""

    kind: Kind
    step: int
    text: str


@dataclass(frozen=True)
class Patch:
    """The changes that a reply asks for, and what in it cannot be applied."""

    changes: tuple[Change, ...]
    problems: tuple[str, ...] = ()
    of: Literal["step", "paragraph"] = "step"

    def apply(self, steps: Sequence[str]) -> list[str]:
        """Return the changed list; references to its steps carry the new numbers.

        A reference to a removed step becomes one to the step before it, or to the first.
        """
        present = dict(enumerate(steps, 1))
        for kind, step, text in self.changes:
            if kind in {"replace", "extend"}:
                present[step] = text if kind == "replace" else _extended(present[step], text)
        removed = {change.step for change in self.changes if change.kind == "remove"}
        added: dict[int, list[str]] = {}
        for change in self.changes:
            if change.kind == "add":
                added.setdefault(change.step, []).append(change.text)
        changed = list(added.get(0, ()))
        numbers: dict[int, int] = {}
        for number, after in present.items():
            if number not in removed:
                changed.append(after)
            numbers[number] = max(1, len(changed))
            changed += added.get(number, ())
        if self.of == "paragraph" or all(number == new for number, new in numbers.items()):
            return changed
        return [_renumbered(step, numbers) for step in changed]

    def record(self, steps: Sequence[str]) -> list[StepChange]:
        """Return the changes with the texts before and after, without markers of doubt."""
        record: list[StepChange] = []
        present = dict(enumerate(steps, 1))
        for kind, step, text in self.changes:
            before = "" if kind == "add" else present[step]
            after = _extended(before, text) if kind == "extend" else text
            if kind != "add":
                present[step] = after
            record.append(StepChange(step=step, before=without_markers(before), after=without_markers(after)))
        return record


def _extended(step: str, text: str) -> str:
    """A step with more text at its end, on a new line behind code and before it."""
    ends_in_code = step.rpartition("\n")[2].strip().startswith(("```", "~~~"))
    return f"{step}{chr(10) if ends_in_code or text.startswith(('```', '~~~')) else ' '}{text}"


class _Entry(NamedTuple):
    """A line that names a part, with the lines below it."""

    address: re.Match[str]
    lines: list[tuple[str, bool]]
    """Each with whether it is code."""

    @property
    def number(self) -> int:
        return int(self.address["number"])

    @property
    def kind(self) -> Kind:
        if self.address["extend"]:
            return "extend"
        return "add" if self.address["add"] else "remove" if self.address["remove"] else "replace"


def read_patch(reply: str, count: int) -> Patch | list[str]:
    """Read the changes of a list of `count` steps, or the whole list where the reply is one.

    Lines like "3. …" are changes only where they cannot be a list: their numbers do not begin with 1 or leave one out.
    A line that names a step that is not there, that has no text, or that changes a step again is left out and told as
    one of the patch's problems.

    Raises:
        UnreadableReply: There is neither a change nor a list nor a statement that nothing changes, the changes
            remove every step, or it cannot be told whether the reply is a list or a patch.
    """
    text = unfenced(clean(reply))
    entries = _entries(text, _ADDRESS)
    numbers = [entry.number for entry in entries]
    whole = numbers == list(range(1, len(numbers) + 1))
    if not entries:
        if any(map(is_unchanged, text.strip().splitlines()[:1] + text.strip().splitlines()[-1:])):
            return Patch(())
        raise UnreadableReply(f'there were neither changes such as "3: ..." nor {UNCHANGED} in it.')
    grows = all(before < after for before, after in pairwise(numbers))
    if all(entry.address["dotted"] for entry in entries) and (whole or not grows):
        steps = [step for step in read_steps(text) if without_markers(step).strip()]
        if len(steps) >= count:
            return _of_list(steps, count)
        raise UnreadableReply(
            f"it lists fewer than the {count} steps, and does not say whether they replace all of them. Name each "
            'change, as in "3: ...", and each step that goes, as in "3-".'
        )
    if whole and len(entries) > count and all(entry.kind == "replace" for entry in entries):
        texts = [_text(entry, last=entry is entries[-1]) for entry in entries]
        if all(without_markers(text).strip() for text in texts):
            return _of_list(texts, count)
    return _checked(entries, count, "step")


def read_paragraphs(reply: str, count: int) -> Patch | None:
    """Read the changes of a text of `count` numbered paragraphs; None where no line of the reply names one.

    A line that names a paragraph that is not there, that has no text, or that changes a paragraph again is left out
    and told as one of the patch's problems.

    Raises:
        UnreadableReply: The changes remove every paragraph.
    """
    entries = _entries(unfenced(clean(reply)), _BRACKETED)
    return _checked(entries, count, "paragraph") if entries else None


def names_paragraph(line: str) -> bool:
    """Whether a line begins as a change of a paragraph would."""
    return _BRACKETED.match(line) is not None


def _of_list(texts: list[str], count: int) -> Patch | list[str]:
    """Return the list; where it says of steps no more than that they are unchanged, what it changes and adds."""
    if not any(map(is_unchanged, texts)):
        return texts
    changes = [
        Change("replace", number, text) if number <= count else Change("add", count, text)
        for number, text in enumerate(texts, 1)
        if not is_unchanged(text)
    ]
    return Patch(tuple(changes))


def _entries(text: str, form: re.Pattern[str]) -> list[_Entry]:
    """Return the lines at the margin that name a part; what stands before the first is an introduction."""
    lines = [(line.rstrip().expandtabs(4), code) for line, code in markdown.lines(text, unclosed=False)]
    found: dict[int, re.Match[str]] = {}
    for place, (line, code) in enumerate(lines):
        if not code and (address := form.match(line.lstrip())):
            found[place] = address
    margin = min((_indent(lines[place][0]) for place in found), default=0) + 1
    found = {place: address for place, address in found.items() if _indent(lines[place][0]) <= margin}
    if not all(address["dotted"] for address in found.values()):
        found = _without_inner_lists(found)
    starts = [*found, len(lines)]
    return [
        _Entry(found[start], [(found[start].string[found[start].end() :], False), *lines[start + 1 : stop]])
        for start, stop in pairwise(starts)
    ]


def _without_inner_lists(found: dict[int, re.Match[str]]) -> dict[int, re.Match[str]]:
    """Return the addresses without the lines "1. …", "2. …" of a list inside a step."""
    kept: dict[int, re.Match[str]] = {}
    last, inner = 0, False
    for place, address in found.items():
        number = int(address["number"])
        inner = address["dotted"] is not None and (inner or number == 1 or number <= last)
        if not inner:
            kept[place], last = address, number
    return kept


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _text(entry: _Entry, *, last: bool) -> str:
    """Return the text of an entry, its further lines without their common indentation."""
    (first, _), *below = entry.lines
    mark = entry.address["mark"]
    first = first.strip()
    if mark == "`":
        first = first.replace("`", "", 1).strip()
    elif mark and mark not in entry.address[0][entry.address.end("mark") - entry.address.start() :]:
        first = first.removeprefix(mark).strip() if first.startswith(mark) else mark + first
    kept: list[str] = []
    for place, (line, code) in enumerate(below):
        after_blank = place > 0 and not below[place - 1][0]
        if last and after_blank and not code and is_closing_remark(line.strip()):
            break
        kept.append(line)
    shift = min((_indent(line) for line in kept if line), default=0)
    return "\n".join(
        [first, *(line[shift:] for line in kept)] if first else [line[shift:] for line in kept]
    ).strip()


def _checked(entries: Sequence[_Entry], count: int, of: Literal["step", "paragraph"]) -> Patch:
    changes: list[Change] = []
    problems: list[str] = []
    changed: set[int] = set()
    removed = {entry.number for entry in entries if entry.kind == "remove"}
    for entry in entries:
        kind, number = entry.kind, entry.number
        text = "" if kind == "remove" else _text(entry, last=entry is entries[-1])
        if not (0 if kind == "add" else 1) <= number <= count:
            problems.append(f"{of} {number} is not there: the {of}s are 1 to {count}.")
        elif kind != "remove" and is_unchanged(text):
            continue
        elif kind != "remove" and not without_markers(text).strip():
            problems.append(f"the change of {of} {number} has no text.")
        elif (kind in {"replace", "remove"} and number in changed) or (
            kind == "extend" and number in removed
        ):
            problems.append(f"{of} {number} is changed twice.")
        else:
            changes.append(Change(kind, number, text))
            if kind in {"replace", "remove"}:
                changed.add(number)
    gone = sum(change.kind == "remove" for change in changes)
    if gone == count and not any(change.kind == "add" for change in changes):
        raise UnreadableReply(f"it removes every {of}.")
    return Patch(tuple(changes), tuple(problems), of)


def _renumbered(text: str, numbers: dict[int, int]) -> str:
    """Return the text with the new numbers in its references to steps, except in code."""

    def follow(reference: re.Match[str]) -> str:
        return _DIGITS.sub(lambda digits: str(numbers.get(int(digits[0]), digits[0])), reference[0])

    parts, end = [], 0
    for start, stop in markdown.outside_code(text):
        parts += [text[end:start], _REFERENCE.sub(follow, text[start:stop])]
        end = stop
    return "".join([*parts, text[end:]])
