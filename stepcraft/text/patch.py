"""Patches of numbered steps or paragraphs: the changes alone, in lines that name a part by its present number.

    3: …     or [3] …     replaces part 3
    3+: …    or [3+] …    adds a part after part 3; 0+ adds one before the first
    3-       or [3-]      removes part 3
    3>: …                 adds to the end of step 3
    3~: …                 replaces a passage of step 3 by what follows "=>" on the next line

All other parts stay as they are. Steps are named without brackets, paragraphs with them, because a paragraph may begin
with "1." itself. References to steps ("step 4", "steps 2-4") follow where numbers move.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple

from typing_extensions import TypedDict

from stepcraft.errors import UnreadableReply
from stepcraft.schema import described
from stepcraft.text import markdown
from stepcraft.text.clean import clean, is_unchanged, unfenced, without_markers
from stepcraft.text.lists import is_closing_remark, read_steps
from stepcraft.text.sections import UNCHANGED

_ADDRESS = re.compile(
    r"(?:[-*\u2022][ \t]{1,3})?(?P<mark>\*\*|__|`)?"
    r"(?:(?i:step)[ \t]{0,2}|\u7b2c|\u6b65\u9aa4[ \t]?)?(?P<number>[0-9]{1,3})\u6b65?"
    r"(?:[ \t]?(?P<add>\+)(?:(?:\*\*|__|`)?[:.)\uff1a]|(?=[\s*_`]|$))"
    r"|[ \t]?(?P<inside>[>~])(?:\*\*|__|`)?[:.)\uff1a]"
    r"|(?P<remove>[-\u2013\u2014\u2212](?![0-9\w>~+])|[ \t][-\u2013\u2014\u2212](?=[*_` \t]{0,3}$))"
    r"|(?:\*\*|__|`)?(?P<replace>[:\uff1a])(?=[\s*_`]|[^\x00-\x7f]|[A-Z\[]|$)"
    r"|(?P<dotted>[.)])(?=[\s*_`]|$))"
)
_BRACKETED = re.compile(
    r"(?P<mark>\*\*|__|`)?\[(?P<number>[0-9]{1,3})(?:\](?=[+\-\u2013\u2014\u2212]))?"
    r"(?:(?P<add>\+)|(?P<remove>[-\u2013\u2014\u2212]))?\]?(?<=[\]+\-\u2013\u2014\u2212])"
    r"(?:\*\*|__|`)?:?(?=[\s*_`]|[^\x00-\x7f]|$)(?P<dotted>(?!))?(?P<inside>(?!))?"
)
_NUMBER = r"[0-9]{1,3}(?![0-9]|[.,][0-9]{3}|\.[0-9])"
_BETWEEN = r"[ \t]{0,2}(?:,[ \t]{0,2}(?:and|or)?|-|\u2013|\u2014|&|and|or|to|through)[ \t]{0,2}"
_REFERENCE = re.compile(
    rf"(?<![\w-])(?:steps[ \t]{{1,2}}{_NUMBER}(?:{_BETWEEN}{_NUMBER}){{0,40}}|step[ \t]{{1,2}}{_NUMBER})",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"[0-9]{1,3}")
_WORD = re.compile(r"\S+")
_ARROW = re.compile(r"^[ \t]*+=>[ \t]?", re.MULTILINE)
_QUOTES = {"`": "`", '"': '"', "'": "'", "\u201c": "\u201d"}


@described
class StepChange(TypedDict):
    """A change of one step, by the number that it had before."""

    step: int
    """The number of the step; for an added one, of the step that it follows, 0 before the first."""
    before: str
    """Its text before, "" for an added step."""
    after: str
    """Its text after, "" for a removed step."""


class Change(NamedTuple):
    """The change of a part, or a part that is added."""

    kind: Literal["replace", "add", "remove"]
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

        A reference to a removed step becomes one to the added step with the same first line, which it moved to, or else
        to the step before it, or to the first.
        """
        present = dict(enumerate(steps, 1))
        present |= {change.step: change.text for change in self.changes if change.kind == "replace"}
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
        new = {text for texts in added.values() for text in texts}
        for step in removed:
            moved = (
                place
                for place, text in enumerate(changed, 1)
                if text in new and _alike(text, steps[step - 1])
            )
            numbers[step] = next(moved, numbers[step])
        if self.of == "paragraph" or all(number == new for number, new in numbers.items()):
            return changed
        return [_renumbered(step, numbers) for step in changed]

    def record(self, steps: Sequence[str]) -> list[StepChange]:
        """Return the changes with the texts before and after, without markers of doubt."""
        return [
            StepChange(
                step=step,
                before="" if kind == "add" else without_markers(steps[step - 1]),
                after=without_markers(text),
            )
            for kind, step, text in self.changes
        ]


def _alike(text: str, step: str) -> bool:
    """Whether two texts have the same first line."""
    return without_markers(text).split("\n")[0].split() == without_markers(step).split("\n")[0].split()


class _Entry(NamedTuple):
    """A line that names a part, with the lines below it."""

    address: re.Match[str]
    lines: list[tuple[str, bool]]
    """Each with whether it is code."""

    @property
    def number(self) -> int:
        return int(self.address["number"])

    @property
    def kind(self) -> Literal["replace", "inside", "add", "remove"]:
        if self.address["inside"]:
            return "inside"
        return "add" if self.address["add"] else "remove" if self.address["remove"] else "replace"


def read_patch(reply: str, steps: Sequence[str]) -> Patch | list[str]:
    """Read the changes of a list of steps, or the whole list where the reply is one.

    Lines like "3. …" are changes only where they cannot be a list: their numbers do not begin with 1 or leave one out.
    A line that names a step or a passage that is not there, that has no text, or that changes a step again is left out
    and told as one of the patch's problems.

    Raises:
        UnreadableReply: There is neither a change nor a list nor a statement that nothing changes, the changes
            remove every step, or it cannot be told whether the reply is a list or a patch.
    """
    text, count = unfenced(clean(reply)), len(steps)
    entries = _entries(text, _ADDRESS)
    numbers = [entry.number for entry in entries]
    whole = numbers == list(range(1, len(numbers) + 1))
    if not entries:
        if any(map(is_unchanged, text.strip().splitlines()[:1] + text.strip().splitlines()[-1:])):
            return Patch(())
        raise UnreadableReply(f'there were neither changes such as "3: ..." nor {UNCHANGED} in it.')
    grows = all(before < after for before, after in pairwise(numbers))
    if all(entry.address["dotted"] for entry in entries) and (whole or not grows):
        listed = [step for step in read_steps(text) if without_markers(step).strip()]
        if len(listed) >= count:
            return _of_list(listed, count)
        raise UnreadableReply(
            f"it lists fewer than the {count} steps, and does not say whether they replace all of them. Name each "
            'change, as in "3: ...", and each step that goes, as in "3-".'
        )
    if whole and len(entries) > count and all(entry.kind == "replace" for entry in entries):
        texts = [_text(entry, last=entry is entries[-1]) for entry in entries]
        if all(without_markers(text).strip() for text in texts):
            return _of_list(texts, count)
    return _checked(entries, steps, "step")


def read_paragraphs(reply: str, count: int) -> Patch | None:
    """Read the changes of a text of `count` numbered paragraphs; None where no line of the reply names one.

    A line that names a paragraph that is not there, that has no text, or that changes a paragraph again is left out
    and told as one of the patch's problems.

    Raises:
        UnreadableReply: The changes remove every paragraph.
    """
    entries = _entries(unfenced(clean(reply)), _BRACKETED)
    return _checked(entries, [""] * count, "paragraph") if entries else None


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
    text = "\n".join(part for line in text.split("\n") for part in _without_fence(line, form))
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


def _without_fence(line: str, form: re.Pattern[str]) -> list[str]:
    """An address, and the code fence that was opened behind it on its line, where one was."""
    address = form.match(line.lstrip()) if "```" in line or "~~~" in line else None
    if not address or not (fence := address.string[address.end() :].lstrip()).startswith(("```", "~~~")):
        return [line]
    return [line[: _indent(line)] + address[0], line[: _indent(line)] + fence]


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


def _checked(entries: Sequence[_Entry], parts: Sequence[str], of: Literal["step", "paragraph"]) -> Patch:
    changes: list[Change] = []
    problems: list[str] = []
    places: dict[int, int] = {}
    for entry in entries:
        kind, number = entry.kind, entry.number
        text = "" if kind == "remove" else _text(entry, last=entry is entries[-1])
        earlier = changes[places[number]] if number in places and kind != "add" else None
        if not (0 if kind == "add" else 1) <= number <= len(parts):
            problems.append(f"{of} {number} is not there: the {of}s are 1 to {len(parts)}.")
        elif kind != "remove" and is_unchanged(text):
            continue
        elif kind != "remove" and not without_markers(text).strip():
            problems.append(f"the change of {of} {number} has no text.")
        elif earlier and (kind != "inside" or earlier.kind == "remove"):
            problems.append(f"{of} {number} is changed twice.")
        elif kind == "inside":
            before = earlier.text if earlier else parts[number - 1]
            adds = entry.address["inside"] == ">"
            if not (after := _extended(before, text) if adds else _substituted(before, text)):
                problems.append(f'the words before "=>" do not stand exactly once in {of} {number}.')
            else:
                at = places.setdefault(number, len(changes))
                changes[at : at + 1] = [Change("replace", number, after)]
        else:
            places |= {} if kind == "add" else {number: len(changes)}
            changes.append(Change(kind, number, text))
    gone = sum(change.kind == "remove" for change in changes)
    if gone == len(parts) and not any(change.kind == "add" for change in changes):
        raise UnreadableReply(f"it removes every {of}.")
    return Patch(tuple(changes), tuple(problems), of)


def _extended(step: str, text: str) -> str:
    """A step with more text at its end, on a new line behind code and before it."""
    ends_in_code = step.rpartition("\n")[2].strip().startswith(("```", "~~~"))
    return f"{step}{chr(10) if ends_in_code or text.startswith(('```', '~~~')) else ' '}{text}"


def _substituted(step: str, text: str) -> str:
    """A step with another passage in place of the one before "=>"; "" where that does not stand in it exactly once.

    Blanks and line breaks may differ, and both passages may be quoted or fenced.
    """
    if arrow := _ARROW.search(text):
        old, new = text[: arrow.start()], text[arrow.end() :]
    else:
        old, new = text.split("=>") if text.count("=>") == 1 else ("", "")
    for passage, other in ((old, new), (_bare(old), _bare(new))):
        if place := _place(passage, step):
            return f"{step[: place.start]}{_aligned(other, step[: place.start])}{step[place.stop :]}".strip()
    return ""


def _aligned(text: str, before: str) -> str:
    """A text behind another one, its lines of code moved together where its first line was written with a margin."""
    first, *rest = text.strip("\n").rstrip().split("\n")
    margin = before.rpartition("\n")[2]
    shift = len(margin) - _indent(first) if _indent(first) and not margin.strip() else 0
    moved = (" " * max(0, _indent(line) + shift) + line.lstrip() for line in rest)
    return "\n".join([first.lstrip(), *(line.rstrip() for line in moved)])


def _place(passage: str, step: str) -> slice | None:
    """Where the only occurrence of a passage is, whatever blanks and line breaks are between its words."""
    sought = " ".join(passage.split())
    spans = [word.span() for word in _WORD.finditer(step)]
    plain = " ".join(step[start:end] for start, end in spans)
    if not sought or plain.count(sought) != 1:
        return None
    at = plain.index(sought)
    starts = list(accumulate((end - start + 1 for start, end in spans), initial=0))

    def original(position: int) -> int:
        word = bisect_right(starts, position) - 1
        return spans[word][0] + position - starts[word]

    return slice(original(at), original(at + len(sought) - 1) + 1)


def _bare(text: str) -> str:
    """A text without the code fence or the quotes around it."""
    text = text.strip()
    if text.startswith(("```", "~~~")):
        return text.partition("\n")[2].rpartition("\n")[0].strip()
    return text[1:-1].strip() if text and text[1:].endswith(_QUOTES.get(text[0], "\n")) else text


def _renumbered(text: str, numbers: dict[int, int]) -> str:
    """Return the text with the new numbers in its references to steps, except in code."""

    def follow(reference: re.Match[str]) -> str:
        return _DIGITS.sub(lambda digits: str(numbers.get(int(digits[0]), digits[0])), reference[0])

    parts, end = [], 0
    for start, stop in markdown.outside_code(text):
        parts += [text[end:start], _REFERENCE.sub(follow, text[start:stop])]
        end = stop
    return "".join([*parts, text[end:]])
