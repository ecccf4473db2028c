"""The verdicts in the reply of a check, line by line."""

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from stepcraft.nodes.state import Check, Verdict
from stepcraft.text.citations import without_marks
from stepcraft.text.claims import claims

_VERDICT = re.compile(
    r"^[^\w\n]{0,8}(?:(?:PART|STATEMENT|CLAIM)S?[^\w\n]*)?(?P<numbers>\d{1,4}(?:\.\d{1,4})?"
    r"(?:[^\w\n]{1,4}(?:(?:and|to)[^\w\n]{1,4})?\d{1,4}(?:\.\d{1,4})?)*+)"
    r"(?:[^\w\n]|_){1,8}(?:(?:is|are)[ \t]+)?"
    r"(?P<verdict>supported|contradicted|(?:not[ _-]?|un)(?:found|supported))\b(?P<rest>[^\n]*)$",
    re.IGNORECASE | re.MULTILINE,
)
_PASSAGE = re.compile(r"\bp(\d{1,4})\b", re.IGNORECASE)
_QUOTED = re.compile('["\u201c\u201e\u00ab]([^"\u201c-\u201e\u00ab\u00bb]+)["\u201d\u201c\u00bb]')


def read_verdicts(text: str, state: Any, group: Sequence[int]) -> tuple[list[Check], int]:
    """Return the verdicts on the statements of these parts, and how many statements have none.

    A line such as "3 supported p2" is a verdict on the whole of part 3, or on those of its
    statements that have no line of their own.

    Args:
        text: The reply without its blocks.
        state: The state of the check.
        group: The numbers of the parts that were checked.
    """
    lines = _lines(text)
    checks: list[Check] = []
    unjudged = 0
    for part in group:
        whole = state["parts"][part - 1]["text"].strip("\n")
        spans = claims(whole) if state["by_claim"] else []
        by_number = [
            [each for each in lines if each.first[1] and each.first <= (part, number) <= each.last]
            for number in range(1, len(spans) + 1)
        ]
        of_part = [
            each for each in lines if not each.first[1] and each.first <= (part, 0) <= each.last
        ]
        if len(spans) != 1 and not any(by_number):
            checks += [_check(each, state, part, whole) for each in of_part]
            unjudged += 0 if of_part else len(spans)
            continue
        for (start, stop), fitting in zip(spans, by_number, strict=True):
            checks += [_check(each, state, part, whole[start:stop]) for each in fitting or of_part]
            unjudged += not (fitting or of_part)
    return checks, unjudged


class _Line(NamedTuple):
    """What a line of a reply says of the statements between two numbers."""

    first: tuple[float, float]
    """The part and the statement; 0 to infinity are the whole part."""
    last: tuple[float, float]
    verdict: Verdict
    passages: list[int]
    words: str
    """The words that were not found, "" for the whole statement."""


def _lines(text: str) -> list[_Line]:
    """Return the lines with verdicts, on "1.1", "2", "1.1, 1.3" or "1.1-2.3"."""
    verdicts: list[_Line] = []
    for line in _VERDICT.finditer(text):
        word = line["verdict"].lower()
        verdict = cast("Verdict", word if word in {"supported", "contradicted"} else "not found")
        passages = [int(each) for each in _PASSAGE.findall(_QUOTED.sub("", line["rest"]))]
        for piece in re.split(r"[,;&/\u3001]|and", line["numbers"]):
            ends = [end.partition(".") for end in re.findall(r"\d+(?:\.\d+)?", piece)]
            first = float(ends[0][0]), float(ends[0][2] or 0)
            last = float(ends[-1][0]), float(ends[-1][2] or math.inf)
            verdicts += [
                _Line(first, last, verdict, passages, words)
                for words in _QUOTED.findall(line["rest"]) or [""]
            ]
    return verdicts


def _check(line: _Line, state: Any, part: int, statement: str) -> Check:
    words = line.words if line.words in statement else ""
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
        evidence=[ids[each - 1] for each in line.passages if 0 < each <= len(ids)],
    )
