"""Find what the evidence contradicts in a sentence: a number, a time, a date or a name."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from stepcraft.text.clean import stems, terms
from stepcraft.text.names import has_word

_WORDS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve"),
)
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "last")
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_VALUE = re.compile(
    rf"(?P<date>\b\d{{1,2}}(?:st|nd|rd|th)?[ ](?:{_MONTH})(?:,?[ ]\d{{4}})?\b"
    rf"|\b(?:{_MONTH})[ ]\d{{1,2}}(?:st|nd|rd|th)?\b(?:,?[ ]\d{{4}}\b)?|\b\d{{4}}-\d\d-\d\d\b)"
    r"|(?P<time>\b\d{1,2}(?::\d\d)?[ ]?(?:[ap]m\b|[ap]\.m\.)|\b\d{1,2}:\d\d\b)"
    r"|(?P<percentage>\d+(?:[.,]\d+)*[ ]?(?:%|percent\b))"
    r"|(?P<amount>[$€£][ ]?\d+(?:[.,]\d+)*)"
    r"|(?P<year>\b(?:1[5-9]|20)\d\d\b(?!\.\d))"
    rf"|(?P<number>\b\d+(?:[.,]\d+)*(?!\w)|\b(?:{'|'.join(_WORDS)})\b)"
    rf"|(?P<ordinal>\b(?:{'|'.join(_ORDINALS)}|\d+(?:st|nd|rd|th))\b)"
    rf"|(?P<month>\b(?:{_MONTH})\b)|(?P<day>\b(?:{'|'.join(_DAYS)})(?=s?\b))"
    r"|(?P<name>(?<=[^.!?:\s\d][ ])\b[A-Z][\w-]*(?:[ ][A-Z][\w-]*)*)",
)
_KINDS = stems(" ".join(_VALUE.groupindex))
_UNIQUE = {"percentage", "amount", "date", "year", "month", "day"}
"""The kinds for which a sentence with a single value needs no adjacent word in common."""
_NEGATION = re.compile(r"\b(?:not?|never|none|cannot|without)\b|n['\u2019]t\b", re.IGNORECASE)
_LEAST_SHARE = 0.75
"""The minimum share of a statement's words that the evidence has besides the value."""
_SUPPORT = 0.9
"""The minimum share of a statement's words that a sentence needs to support it."""
_LENGTH = 1_000
"""The maximum length of a statement or sentence that is compared."""


class Value(NamedTuple):
    """A number, a time, a date or a name in a sentence."""

    kind: str
    start: int
    stop: int
    text: str
    meaning: str
    before: frozenset[str]
    """The word before it."""
    behind: frozenset[str]
    """The two words after it."""


class Sentence(NamedTuple):
    """A sentence with its values."""

    text: str
    title: str
    """The title of its passage."""
    place: str
    """The id of its passage."""
    values: tuple[Value, ...]
    pairs: tuple[tuple[str, str], ...]
    """The words of the sentence, each with the preceding one; a value is represented by its kind.
    """
    is_negative: bool


def sentence(text: str, title: str = "", place: str = "") -> Sentence:
    """Parse a sentence for use with `corrected`."""
    text = text[:_LENGTH]
    values: list[Value] = []
    for match in _VALUE.finditer(text):
        meaning = re.sub(r"[\s.,](?=\D|\Z)|[\s,]", "", match[0].casefold())
        if match.lastgroup == "number" and meaning in _WORDS:
            meaning = str(_WORDS.index(meaning))
        before = re.findall(r"\w+", text[max(match.start() - 40, 0) : match.start()].casefold())[
            -1:
        ]
        behind = re.findall(r"\w+", text[match.end() : match.end() + 60])[:2]
        near = frozenset(before), stems(" ".join(behind))
        values.append(Value(str(match.lastgroup), *match.span(), match[0], meaning, *near))
    kinds = terms(_VALUE.sub(lambda value: f" {value.lastgroup} ", text))
    negative = _NEGATION.search(text) is not None
    return Sentence(text, title, place, tuple(values), tuple(pairwise(kinds)), negative)


def supports(other: Sentence, statement: Sentence) -> bool:
    """Return whether a sentence in the evidence says the same as a statement, judging by words.

    It must have nearly all of its words, and every number, time, date and name.
    """
    words, whole = stems(statement.text), f"{other.title}\n{other.text}"
    meanings = {value.meaning for value in other.values}
    return (
        len(words & stems(whole)) >= max(1, _SUPPORT * len(words))
        and other.is_negative == statement.is_negative
        and all(
            value.meaning in meanings or has_word(whole, value.text) for value in statement.values
        )
    )


def corrected(statement: Sentence, evidence: Sequence[Sentence]) -> tuple[str, str] | None:
    """Return a statement with one value corrected from the evidence, and the passage's id.

    The sentence says the same apart from the value, as far as words can tell. If two sentences
    differ, or more than one value does, None is returned.
    """
    is_row = statement.text.lstrip().startswith("|")
    if is_row or not statement.values or len(statement.text) == _LENGTH:
        return None
    corrections = [
        (len(stems(text) & stems(other.text)), text, other.place)
        for other in evidence
        if other.values and (text := _as_in(statement, other))
    ]
    most = max((fit for fit, _, _ in corrections), default=0)
    best = {text: place for fit, text, place in reversed(corrections) if fit == most}
    return best.popitem() if len(best) == 1 else None


def _as_in(statement: Sentence, other: Sentence) -> str:
    """Return a statement with the one value that differs from a sentence replaced, or ""."""
    meanings = {value.meaning for value in other.values}
    wrong = [value for value in statement.values if value.meaning not in meanings]
    if len(wrong) != 1 or statement.is_negative != other.is_negative:
        return ""
    [value] = wrong
    stated = {each.meaning for each in statement.values}
    others = [
        each for each in other.values if each.kind == value.kind and each.meaning not in stated
    ]
    alike = [each for each in others if _stand_alike(value, each)]
    alike = alike or (others if value.kind in _UNIQUE else [])
    if len({each.meaning for each in alike}) != 1:
        return ""
    text = statement.text
    words = stems(text[: value.start] + text[value.stop :])
    shared = words & (stems(other.text) | stems(other.title))
    if len(shared) < max(2, _LEAST_SHARE * len(words)) or _differ(statement, other):
        return ""
    # Many names occur in similar places, so the sentences must be nearly the same.
    if value.kind == "name" and shared != words | (stems(other.text) - stems(alike[0].text)):
        return ""
    return text[: value.start] + alike[0].text + text[value.stop :]


def _stand_alike(value: Value, other: Value) -> bool:
    """Return whether two values share an adjacent word; for numbers, that is their unit."""
    if value.behind & other.behind:
        return True
    return value.kind != "number" and bool(value.before & other.before)


def _differ(statement: Sentence, other: Sentence) -> bool:
    """Return whether a word is preceded by a different one, as in "green tea" and "black tea"."""
    ours, theirs = stems(statement.text) | _KINDS, stems(f"{other.text} {other.title}") | _KINDS
    qualified = {word for before, word in other.pairs if not stems(before) <= ours}
    return any(
        word in qualified and not stems(before) <= theirs for before, word in statement.pairs
    )
