"""Read the verdicts in a check's reply, line by line."""

import math
import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from stepcraft.nodes.state import Check, Verdict
from stepcraft.text.citations import without_marks
from stepcraft.text.claims import claims

_NUMBER = r"\d{1,4}(?:\.\d{1,4})?"
_RANGE = (
    r"[^\w\n]{0,2}(?:[-\u2010-\u2015~\u301c\uff5e]|\.\.\.?|\u2026|\b(?:to|through)\b)[^\w\n]{0,2}"
)
_AND = r"[^\w\n]{1,4}(?:and[^\w\n]{1,4})?"
_WORD = (
    r"(?P<part>(?:partly|partially|mostly|in part)[ \t]+)?"
    r"(?P<verdict>supported|contradicted|(?:not[ _-]?|un)(?:found|supported))\b"
)
_VERDICT = re.compile(
    r"(?:^[^\w\n]{0,8}|(?<=[;,.|\u3001\uff0c\uff1b])[ \t]{1,2})"
    r"(?:\d{1,3}[.)][ \t]{1,4}(?=\d))?"  # an item number in a list of verdicts
    r"(?:(?:PART|STATEMENT|CLAIM)S?[^\w\n]*)?"
    rf"(?P<numbers>{_NUMBER}(?:(?:{_RANGE}|{_AND}){_NUMBER})*+)"
    rf"(?:[^\w\n]|_){{1,8}}(?:(?:is|are)[ \t]+)?{_WORD}",
    re.IGNORECASE | re.MULTILINE,
)
_ANOTHER = re.compile(
    rf"(?:[,;/]|\b(?:and|but))[ \t]*{_WORD}(?=[^\w\n]*(?:p\d|by\b|$))", re.IGNORECASE | re.MULTILINE
)
"""A second verdict on the same statement."""
_BY_WEIGHT: tuple[Verdict, ...] = ("supported", "not found", "contradicted")
_ENDS = re.compile(rf"({_NUMBER})(?:{_RANGE}({_NUMBER}))?")
_PASSAGE = re.compile(r"\bp(\d{1,4})\b", re.IGNORECASE)
_QUOTED = re.compile('["\u201c\u201e\u00ab]([^"\u201c-\u201e\u00ab\u00bb]+)["\u201d\u201c\u00bb]')


class Verdicts(NamedTuple):
    """The verdicts of a reply on the statements in some parts."""

    checks: list[Check]
    unjudged: int
    """The number of statements or parts without a verdict."""
    unknown: list[str]
    """Nonexistent statement numbers and passages that its verdicts refer to."""


def read_verdicts(text: str, state: Any, group: Sequence[int]) -> Verdicts:
    """Return the verdicts on the statements in the given parts.

    A line such as "3 supported p2" is a verdict on the whole of part 3, or on those of its
    statements that have no line of their own.

    Args:
        text: The reply without its blocks.
        state: The state of the check.
        group: The numbers of the parts that were checked.
    """
    texts = {part: state["parts"][part - 1]["text"].strip("\n") for part in group}
    spans = {
        part: claims(whole) if state["by_claim"] else [(0, len(whole))]
        for part, whole in texts.items()
    }
    lines = _lines(text)
    if state["by_claim"] and len(group) == 1 and not any(each.first[1] for each in lines):
        # The statements in the only part, by their own numbers alone.
        last = max((each.last[0] for each in lines), default=0)
        if 1 < last <= len(spans[group[0]]):
            lines = [_of_part(group[0], each) for each in lines]
    checks: list[Check] = []
    unjudged = 0
    for part, whole in texts.items():
        by_number = [
            [each for each in lines if each.first[1] and each.first <= (part, number) <= each.last]
            for number in range(1, len(spans[part]) + 1)
        ]
        of_part = [
            each for each in lines if not each.first[1] and each.first <= (part, 0) <= each.last
        ]
        if len(spans[part]) != 1 and not any(by_number):
            checks += [check for each in of_part for check in _checks(each, state, part, whole)]
            unjudged += 0 if of_part else len(spans[part])
            continue
        for (start, stop), fitting in zip(spans[part], by_number, strict=True):
            statement = whole[start:stop]
            for line in fitting or of_part:
                checks += _checks(line, state, part, statement)
            unjudged += not (fitting or of_part)
    existing = {(part, number) for part in texts for number in range(len(spans[part]) + 1)}
    others = {*range(1, len(state["parts"]) + 1)} - texts.keys()
    unknown = [
        each.written for each in lines if each.first not in existing and each.first[0] not in others
    ]
    numbers = {number for each in lines for number in each.passages}
    unknown += [f"p{each}" for each in sorted(numbers) if not 0 < each <= len(state["evidence"])]
    return Verdicts(checks, unjudged, unknown)


class _Line(NamedTuple):
    """A line in a reply with a verdict on a range of statements."""

    written: str
    """The first number as written."""
    first: tuple[float, float]
    """The part and the statement, where 0 to infinity stands for the whole part."""
    last: tuple[float, float]
    verdict: Verdict
    passages: list[int]
    words: list[str]
    """The words that the line quotes."""


def _of_part(part: int, line: _Line) -> _Line:
    """Return a line on parts 2 to 3 as one on statements 2 to 3 of the given part."""
    return line._replace(first=(part, line.first[0]), last=(part, line.last[0]))


def _lines(text: str) -> list[_Line]:
    """Return the lines with verdicts, such as those on "1.1", "2", "1.1, 1.3" or "1.1-2.3"."""
    lines: list[_Line] = []
    matches = [*_VERDICT.finditer(text)]
    for line, following in zip_longest(matches, matches[1:]):
        stop = text.find("\n", line.end()) % (len(text) + 1)
        rest = text[line.end() : min(stop, following.start()) if following else stop]
        verdict: Verdict = max(
            map(_verdict, [line, *_ANOTHER.finditer(rest)]), key=_BY_WEIGHT.index
        )
        passages = [int(each) for each in _PASSAGE.findall(_QUOTED.sub("", rest))]
        for begin, end in _ENDS.findall(line["numbers"]):
            part, _, statement = begin.partition(".")
            last_part, _, last_statement = (end or begin).partition(".")
            first = float(part), float(statement or 0)
            last = float(last_part), float(last_statement or math.inf)
            if statement and end and not last_statement:  # "1.1-3"
                last = first[0], float(end)
            lines.append(_Line(begin, first, last, verdict, passages, _QUOTED.findall(rest)))
    return lines


def _verdict(match: re.Match[str]) -> Verdict:
    """Return the verdict in a match; "supported in part" counts as "not found"."""
    word = match["verdict"].lower()
    if word == "contradicted":
        return "contradicted"
    return "supported" if word == "supported" and not match["part"] else "not found"


def _checks(line: _Line, state: Any, part: int, statement: str) -> list[Check]:
    """Return a check for each detail that is not found, or else one for the whole statement."""
    details = [words for words in line.words if words in statement]
    if line.verdict != "not found":
        details = details[:1]
    return [_check(line, words, state, part, statement) for words in details or [""]]


def _check(line: _Line, words: str, state: Any, part: int, statement: str) -> Check:
    if words and not state["by_claim"]:
        sentences = [statement[start:stop] for start, stop in claims(statement)]
        statement = next((each for each in sentences if words in each), statement)
    ids = [each["id"] for each in state["evidence"]]
    return Check(
        round=state["rounds"] + 1,
        part=part,
        text=without_marks(statement).strip(),
        words=words,
        verdict=line.verdict,
        evidence=list(
            dict.fromkeys(ids[each - 1] for each in line.passages if 0 < each <= len(ids))
        ),
    )
