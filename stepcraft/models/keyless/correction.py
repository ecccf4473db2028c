"""Find statements that occur in the evidence word for word, or with one value changed."""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from stepcraft.text.clean import terms

_NUMBERS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve"),
)
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_MONTH = "|".join(_MONTHS)
_TH = r"(?:st|nd|rd|th)?"
_TOKEN = re.compile(
    rf"(?P<date>\b\d{{1,2}}{_TH}[ ](?:{_MONTH})\b(?:,?[ ]\d{{4}}\b)?"
    rf"|\b(?:{_MONTH})[ ]\d{{1,2}}{_TH}\b(?:,?[ ]\d{{4}}\b)?|\b\d{{4}}-\d\d-\d\d\b)"
    # The full stop after "a.m" may also end the sentence.
    r"|(?P<time>\b(?:[01]?\d(?::[0-5]\d)?[ ]?(?i:[ap]m\b|[ap]\.m\b(?:\.(?=\s+\w))?)"
    r"|(?:[01]?\d|2[0-3]):[0-5]\d\b(?![:.]\d)))"
    r"|(?P<year>\b(?:1[5-9]|20)\d\d\b(?![.,]\d))"
    r"|(?P<number>(?:(?<![\w)])[-\u2212])?(?:(?<![\w.])\.)?\d+(?:[.,]\d+)*"
    rf"|\b(?i:{'|'.join(_NUMBERS)})\b)"
    rf"|(?P<month>\b(?:{_MONTH})\b)"
    # What is closed on Monday may be closed on Tuesday too.
    r"|(?P<day>(?<!\bon )\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b)"
    r"|(?P<name>(?<=\bby )[A-Z][a-z][\w-]*+(?:[ ][A-Z][a-z][\w-]*+)*+(?![ ][A-Z\d]))"
    r"|(?P<percent>%|\b(?i:per ?cent)\b)|(?P<word>[^\W\d_]+)"
    # Signs other than punctuation carry meaning, as in "< 5" and "!x".
    r"|(?P<sign>!(?=[\w=])|[^\w\s.,;:!\u2026\"'()\[\]{}*`\u00b7\u2022\u00ab\u00bb\u2010-\u201f-"
    r"\u3001\u3002\u300c-\u300f\uff01\uff08\uff09\uff0c\uff1a\uff1b])"
)
_VALUES = ("date", "time", "year", "number", "month", "day", "name")
"""The kinds of tokens that can be corrected."""
_EMPTY = ("a", "an", "the", "of", "also", "it")
"""Words that are not compared, except "it" at the start of a sentence and "A" elsewhere."""

_AUXILIARY = r"is|are|was|were|be|been|has|have|had|must|shall|should|will|would|do|does|did"
_VERB = (
    r"costs?|takes|took|lasts|lasted|opens|opened|closes|closed|starts|started|begins|began|ends"
    r"|ended|stops|stopped|runs|ran|keeps|kept|holds|waits|listens|expires|deploys|sends|needs"
    r"|requires|weighs|measures"
)
_AFTER_AUXILIARY = re.compile(rf"\w\W+(?:{_AUXILIARY})\b")
_AFTER_VERB = re.compile(rf"\w\W+(?:{_VERB})\b")
_BEFORE = re.compile(
    rf"\b(?:{_AUXILIARY}|{_VERB}|after|at|before|by|every|exactly|for|from|in|on|port|until|within"
    r"|(?<!up )to|only|(?:limit|maximum|minimum|period|total|timeout) of)"
    r"\s+[*_`]{0,2}(?:[$\u00a3\u20ac\u00a5] ?)?\Z"
)
"""What may precede a value: neither a noun ("chapter 3") nor a bound ("at least 3")."""
_BEHIND = re.compile(r"[*_`]{0,2} ?%|[*_`]{0,2}[.,;:!?)]*(?:\s|\Z)")
_UNIT = re.compile(r"[*_`]{0,2} [a-z]{3,}")
_LABEL = re.compile(
    r"(?:[A-Z]\w*[ /]|\b(?:version|chapter|step|page|section|part|level|phase|type|layer|stage"
    r"|number|no\.) )[*_`]{0,2}\Z"
)
"""What precedes a number that names something, as in "HTTP/2" or "step 3"."""
_QUALIFIERS = {"only", "not", "no", "never", "all", "also", "just", "even"}
_LONG = 12
"""The minimum number of words in a statement for correcting amounts ("14 days") after any word."""
_NO_CLAIM = re.compile(
    r"[?\uff1f]|\A\W*(?:it|they|he|she|we|this|these|those|there|should|had|were)\b", re.IGNORECASE
)
"""Questions, and statements whose subject is not clear from the sentence alone."""
_BESIDE = re.compile(
    r"\b(?:if|unless|when|whenever|whether|while|assuming|provided|suppose|in case)\b[^,]*\Z"
    r"|\b(?:who|whose|which|that|where|example|e\.g|such|some|many|most|few|several|other|another"
    r"|often|sometimes|usually|also|or|can|could|might|(?-i:may)"
    r"|not?|never|none|nor|neither|nobody|cannot|without|except)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
"""Words before a value that allow another value to be true as well, and unfinished conditions."""
_LONGEST = 1_000
"""The maximum length of a statement or sentence that is compared."""


class Value(NamedTuple):
    """A number, a time, a date or a name in a sentence."""

    kind: str
    text: str
    start: int
    at: int
    """The index of its first token."""
    tokens: tuple[str, ...]


class Sentence(NamedTuple):
    """A sentence, parsed for comparison."""

    text: str
    title: frozenset[str]
    """The words of its heading."""
    place: str
    """The id of its passage."""
    tokens: tuple[str, ...]
    """Its words, values and signs, each in a single normalised form."""
    values: tuple[Value, ...]


def sentence(text: str, title: str = "", place: str = "") -> Sentence:
    """Parse a sentence for use with `supports` and `corrected`."""
    tokens: list[str] = []
    values: list[Value] = []
    unit = -1
    for match in _TOKEN.finditer(text) if len(text) <= _LONGEST else ():
        kind, at = str(match.lastgroup), len(tokens)
        word = match[0] if tokens else match[0].lower()
        if word in _EMPTY and (tokens or word != "it"):
            continue
        # "MB" and "Mb" are different units.
        tokens += [match[0]] if at == unit and len(word) <= 3 else _tokens(kind, match[0])
        if kind in _VALUES:
            values.append(Value(kind, match[0], match.start(), at, tuple(tokens[at:])))
            unit = len(tokens)
    return Sentence(text, frozenset(terms(title)), place, tuple(tokens), tuple(values))


def supports(other: Sentence, statement: Sentence) -> bool:
    """Return whether a sentence of the evidence matches a statement word for word.

    The statement may add words from the heading. It may also move a phrase to the front or the end,
    unless the evidence has several values.
    """
    return _is_same(other, statement.tokens)


def corrected(statement: Sentence, evidence: Sequence[Sentence]) -> tuple[str, str] | None:
    """Return a statement with one value corrected from the evidence, and the passage's id.

    An evidence sentence must say the same thing with another value. If several values are possible,
    None is returned.
    """
    text, tokens = statement.text, statement.tokens
    corrections: dict[str, str] = {}
    for value in _correctable(statement):
        before, behind = text[: value.start], text[value.start + len(value.text) :]
        head, tail = tokens[: value.at], tokens[value.at + len(value.tokens) :]
        for other in evidence:
            for each in other.values:
                if _differ(value, each) and _is_same(other, (*head, *each.tokens, *tail)):
                    new = each.text + "." * each.text.endswith(".m")
                    new = new.removesuffix("." * behind.startswith("."))
                    corrections.setdefault(f"{before}{new}{behind}", other.place)
    return corrections.popitem() if len(corrections) == 1 else None


def _tokens(kind: str, text: str) -> list[str]:
    """Return a word, value or sign in the form in which it is compared."""
    folded = text.casefold()
    if kind == "date":
        return [_date(text)]
    if kind == "time":
        hours, minutes = divmod(_minutes(folded), 60)
        return [f"{hours}:{minutes:02}"]
    if kind == "number":
        number = re.sub(r",(?=\d{3}(?!\d))", "", folded).replace(",", ".").replace("\u2212", "-")
        return [str(_NUMBERS.index(number)) if number in _NUMBERS else number]
    if kind == "name":
        return re.findall(r"[^\W\d_]+|\d+", folded)
    return ["%" if kind == "percent" else folded]


def _date(text: str) -> str:
    """Return a date as "2024-05-31", or "-05-31" without a year."""
    numbers = [f"{int(number):02}" for number in re.findall(r"\d+", text)]
    for month, name in enumerate(_MONTHS, 1):
        if name in text:
            return f"{''.join(numbers[1:])}-{month:02}-{numbers[0]}"
    return "-".join(numbers)


def _minutes(text: str) -> int:
    """Return a time of day in minutes."""
    hour, minute = map(int, [*re.findall(r"\d+", text), 0][:2])
    if "m" in text:
        hour = hour % 12 + 12 * ("p" in text)
    return 60 * hour + minute


def _is_same(other: Sentence, tokens: Sequence[str]) -> bool:
    words = {*other.tokens}
    if not words or not words.issubset(tokens):
        return False
    tokens = [token for token in tokens if token in words or token not in other.title]
    if tokens == [*other.tokens]:
        return True
    return len(other.values) < 2 and _is_moved(tokens, other.tokens)


def _is_moved(tokens: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether one phrase was moved, as in "By default it listens on port 9090".

    Next to a word such as "only", that can change the meaning.
    """
    if len(tokens) != len(others):
        return False
    is_same = [ours == theirs for ours, theirs in zip(tokens, others, strict=True)]
    first, last = is_same.index(False), len(is_same) - is_same[::-1].index(False)
    if _QUALIFIERS.intersection(tokens):
        first, last = 0, len(tokens)
    ours, theirs = [*tokens[first:last]], [*others[first:last]]
    return any(ours[at:] + ours[:at] == theirs for at in range(1, len(ours)))


def _correctable(statement: Sentence) -> Iterator[Value]:
    """Yield the values claimed by a statement's predicate: its only number or, if none, all values.

    A value in the subject says what the statement is about, as in "Version 2 is free".
    """
    text = statement.text
    verb = _AFTER_AUXILIARY.search(text) or _AFTER_VERB.search(text)
    if _NO_CLAIM.search(text) or not verb:
        return
    values = [value for value in statement.values if value.start >= verb.end()]
    numbers = [value for value in values if value.kind == "number"]
    for value in values:
        before, end = text[: value.start], value.start + len(value.text)
        is_claimed = numbers in ([], [value]) and _BEFORE.search(before)
        is_amount = (
            len(statement.tokens) >= _LONG and _UNIT.match(text, end) and not _LABEL.search(before)
        )
        if (is_claimed or is_amount) and not _BESIDE.search(before) and _BEHIND.match(text, end):
            yield value


def _differ(value: Value, other: Value) -> bool:
    """Return whether two values of the same kind contradict each other, however written."""
    ours, theirs = value.tokens[0], other.tokens[0]
    if value.kind != other.kind or value.tokens == other.tokens:
        return False
    if value.kind == "time":  # 3:00 may be 3 pm
        return (_minutes(ours) - _minutes(theirs)) % 720 != 0
    if value.kind == "date":
        return ours.startswith("-") == theirs.startswith("-")
    if value.kind != "number":
        return True
    # 1.000 may be 1,000.
    return ours.replace(".", "") != theirs.replace(".", "") and _are_unequal(ours, theirs)


def _are_unequal(number: str, other: str) -> bool:
    """Return whether two numbers differ by more than rounding."""
    places = min(len(each.partition(".")[2]) for each in (number, other))
    try:
        return round(Decimal(number), places) != round(Decimal(other), places)
    except InvalidOperation:  # a version such as 1.2.3
        return False
