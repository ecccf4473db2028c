"""Verdicts on statements, shown where the answer contains the statement, or else in a list."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from stepcraft.nodes.checks import current_text, final_checks
from stepcraft.nodes.state import Check
from stepcraft.text.clean import clean
from stepcraft.text.markdown import code

_TOKEN = re.compile(r"\w+|\W")
_MARK = r"(?:\s*\[\^?p?\d{1,3}\]){0,9}?"


class Verdict(NamedTuple):
    """The last verdict on a statement."""

    check: Check
    has_changed: bool
    """Whether the statement has changed since."""
    passages: list[int]
    """The numbers of the deciding passages in the evidence, starting at 1."""
    others: int
    """How many of the deciding passages are not in the evidence."""
    now: str
    """The current text of a statement that was contradicted, or "" for others."""


class CheckedPiece(NamedTuple):
    """A piece of an answer with the verdict on it."""

    text: str
    verdict: str
    """The verdict, with "corrected" for a contradicted statement that was changed, or "" if there
    is none.
    """
    ends: list[Verdict]
    """The verdicts on the statements that end with this piece."""


def verdicts(result: Mapping[str, Any]) -> list[Verdict]:
    """Return the last verdict on each statement of a result."""
    numbers = {passage["id"]: number for number, passage in enumerate(result["evidence"], 1)}
    checks: list[Verdict] = []
    for check, has_changed in final_checks(result):
        passages = [numbers[id_] for id_ in check["evidence"] if id_ in numbers]
        others = len(check["evidence"]) - len(passages)
        is_corrected = has_changed and check["verdict"] == "contradicted"
        now = current_text(check, result).strip() if is_corrected else ""
        checks.append(Verdict(check, has_changed, passages, others, now))
    return checks


def checked_pieces(
    answer: str, checks: Sequence[Verdict]
) -> tuple[list[CheckedPiece], list[Verdict]]:
    """Split an answer into its statements and the text between them.

    Also return the verdicts on statements that were not located, to be listed separately.

    A statement is located in the answer only if it occurs exactly once. A span that overlaps code
    is extended to include all of that code.
    """
    blocks = [*code(answer)]
    places: list[tuple[int, int, Verdict]] = []
    rest: list[Verdict] = []
    for each in checks:
        text = each.now or each.check["words"] or each.check["text"]
        matches = [*re.finditer(_pattern(clean(text)), answer)] if text.strip() else []
        has_place = len(matches) == 1 and bool(each.now or not each.has_changed)
        if each.has_changed or not has_place:
            rest.append(each)
        if not has_place:
            continue
        cut = [matches[0].span(), *(span for span in blocks if _overlap(span, matches[0].span()))]
        places.append((min(start for start, _ in cut), max(stop for _, stop in cut), each))
    edges = sorted({0, len(answer), *(edge for start, stop, _ in places for edge in (start, stop))})
    pieces: list[CheckedPiece] = []
    for start, stop in pairwise(edges):
        around = [each for each in places if each[0] <= start and stop <= each[1]]
        inmost = min(around, key=lambda each: each[1] - each[0], default=None)
        checked = inmost[2] if inmost else None
        verdict = "corrected" if checked and checked.now else checked and checked.check["verdict"]
        ends = [each[2] for each in around if each[1] == stop]
        pieces.append(CheckedPiece(answer[start:stop], verdict or "", ends))
    return pieces, rest


def _pattern(text: str) -> str:
    """Return a pattern that matches a text across line breaks, with or without citation marks."""
    words = (_MARK.join(map(re.escape, _TOKEN.findall(each))) for each in text.split())
    return "(?<![A-Za-z0-9_])" + rf"{_MARK}\s+".join(words) + "(?![A-Za-z0-9_])"


def _overlap(span: tuple[int, int], other: tuple[int, int]) -> bool:
    return span[0] < other[1] and other[0] < span[1]
