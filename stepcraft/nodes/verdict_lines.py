"""Read the lines with verdicts in a check's reply, in the forms in which models write them."""

import re
from collections.abc import Collection, Iterable
from itertools import zip_longest
from typing import NamedTuple

from stepcraft.nodes.state import Verdict

_NUMBER = r"\d{1,4}(?:\.\d{1,4})?"
_RANGE = (
    r"[^\w\n]{0,2}(?:[-\u2010-\u2015~\u301c\uff5e]|\.\.\.?|\u2026|\b(?:to|through)\b)[^\w\n]{0,2}"
)
_AND = r"[^\w\n|]{1,4}(?:and[^\w\n]{1,4})?"
_QUOTE = '["\u201c\u201e\u00ab]([^"\u201c-\u201e\u00ab\u00bb\\n]+)["\u201d\u201c\u00bb]'
_CELL = r"[^\w\n|]*\|(?!(?:[^\w\n|]|[\dp])+\|)[^|\n]+(?=\|)"
"""A cell with the words of a statement, rather than numbers of statements or passages."""
_WORD = (
    r"(?P<part>(?:partly|partially|mostly|in part)[ \t]+)?"
    r"(?P<verdict>support(?:ed|s)|contradict(?:ed|s)|refuted"
    r"|(?:not[ _-]?|un)(?:found|supported|mentioned))\b"
    r"(?P<in_part>[ \t]+(?:only[ \t]+)?(?:in part\b(?!.*\bin part\b)|partly\b|partially\b))?"
)
_SIGNS = r"(?:[^\S\n]++|[^\w\s]|_)"
"""A sign or a run of blanks, which may align the cells of a table."""
_BEGIN = (
    rf"(?:^{_SIGNS}{{0,8}}|(?<=[;,.|\u3001\uff0c\uff1b])[ \t]{{1,2}})"
    r"(?:\d{1,3}[.)][ \t]{1,4}(?=\d|PART))?"  # an item number in a list of verdicts
)
_EXCEPTION = r"(?P<exception>\b(?:except|for|from|of|but|and|while)[ \t]+|\()"
_VERDICT = re.compile(
    rf"(?:{_BEGIN}|{_EXCEPTION})(?:(?:(?P<of_part>PART)|STATEMENT|CLAIM)S?[^\w\n]*)?"
    r"(?P<numbers>(?!404[^\w\n]{1,4}not[ _-]?found)"
    rf"{_NUMBER}(?:(?:{_RANGE}|{_AND}){_NUMBER}){{0,99}}+)"
    rf"(?:{_SIGNS}{{1,4}}(?:{_QUOTE}|['\u2018][^\n]{{1,300}}?['\u2019])||{_CELL})"
    rf"{_SIGNS}{{1,16}}(?:(?:which[ \t]+)?(?:is|are)[ \t]+)?{_WORD}",
    re.IGNORECASE | re.MULTILINE,
)
_PLACE = r"(\d{1,4})(?:\.(\d{1,4}))?"
_FIRST_AND_LAST = re.compile(rf"{_PLACE}(?:{_RANGE}{_PLACE})?")
_PART = re.compile(
    rf"{_BEGIN}PART[^\w\n]*(\d{{1,4}})"
    r"(?:[^\w\n]*(?:$|(?=STATEMENT|CLAIM))|[ \t]*[:|\uff1a][^\w\n]*(?=\d))",
    re.IGNORECASE | re.MULTILINE,
)
"""The part containing the statements that follow, as in "Part 2, statement 1" or above a list."""
_GROUP = rf"[^\w\n]{{0,8}}(?:\d{{1,3}}[.)][ \t]+)?(?P<words>{_WORD})[*_ \t]*:"
_GROUPED = re.compile(rf"^{_GROUP}(?P<statements>[^\w\n]*\d.*)$", re.IGNORECASE | re.MULTILINE)
"""A verdict before its statements, as in "Contradicted: 1.1 (p2), 2.3"."""
_STATEMENT = re.compile(
    rf"(?<![\w.])({_NUMBER}(?:{_RANGE}{_NUMBER})?)((?:(?!(?:[,;]|\band\b)[ \t]*\d).)*)"
)
_COUNTED = re.compile(
    rf"{_GROUP}[^\w\n]*\d{{1,4}}[^\w\n]*(?:statements?|parts?|claims?)?[^\w\n]*", re.IGNORECASE
)
"""A verdict before a single number, which may be how many statements have it."""
_COUNT = re.compile(
    r"(?<![\w.])(?P<count>\d{1,4})(?!\.\d)(?:[^\w\n]|_){0,3}"
    r"(?:(?:x|of|\d{1,4}|statements?|parts?|claims?|are|is|were|was)\b[ \t\u00d7]*){0,5}"
    rf"[^\w\n]{{0,3}}{_WORD}(?![^\w\n]{{0,4}}(?:p\d|by\b|passage))",
    re.IGNORECASE,
)
"""A number of statements with a verdict, as in "3 of 4 statements are supported"."""
_TALLY = re.compile(r"[^\w\n]*(?!PART|STATEMENT|CLAIM)[^\W\d_]{3,}", re.IGNORECASE)
"""The beginning of a line that counts the verdicts, unless it begins with a number."""
_HYPHENATED = re.compile(r"^([^\w\n]{0,8}(\d{1,4}))-(?=(\d{1,4})\b)", re.MULTILINE)
_ANOTHER = re.compile(
    r"(?<!404)(?<!404[ \t])"
    r"(?:[.,;:|/(\u2013\u2014]|[ \t]-|\b(?:and|but|except|only|was|were)\b)[^\w\n]{0,8}"
    r"(?:(?:is|are|was|were)[ \t]+)?"
    rf"{_WORD}(?=[^\w\n]*(?:p\d|by\b|passage|\d|$))",
    re.IGNORECASE | re.MULTILINE,
)
"""A second verdict on the same statement."""
_NOT = r"\b(?:is|are|was|were)(?:[ \t]+not|n['\u2019]t)[ \t]+"
_MISSING = re.compile(
    r"(?:\bnot|n['\u2019]t)[ \t]+mentioned\b"
    r"(?![ \t]+in[ \t]+(?:p\d|passages?[ \t]+\d|the[ \t]+(?:statement|claim|answer|draft)))"
    rf"|{_NOT}(?!contradicted|refuted)\w+[ \t]+(?:in|by)[ \t]+(?:the|any)[ \t]+"
    r"(?:passages?|evidence|sources?)\b(?![ \t]+\w)"
    r"|(?:[(.,;\u2013\u2014]|[ \t]-[ \t]|\b(?:(?:al)?though|but)\b)"
    r"(?:(?!\b(?:because|but|case|if|that|(?:al)?though|unless|until|when(?:ever)?|where(?:ver)?"
    r"|which)\b|[ \t]-[ \t])"
    r"[^,.;:()\u2013\u2014])*"
    rf"{_NOT}found\b(?=[ \t]*(?:[,.;)]|in\b|$))"
    r"|\((?:the[ \t]+)?(?!(?:404|gives|returns|command|error|file|key|module|page)\b)\w+"
    r"[ \t]+not[ \t]+found\)",
    re.IGNORECASE,
)
"""A remark that the passages lack something in a statement."""
_LACKS = r"\b(?:except|but not|missing|lacks?|without|not)\b"
_NEAR = r"(?:[^\w\n]{0,4}|[^.;:(\n\"]{0,80})"
_EXCEPT = re.compile(
    rf'{_LACKS}{_NEAR}""|""{_NEAR}{_LACKS}'
    r'|\b(?:except|but not|missing|lacks?|without the|not the)\b[^\n"]*""',
    re.IGNORECASE,
)
"""Words that except quoted details, shown as "", from a verdict."""
_QUOTED = re.compile(_QUOTE)
_AGAIN = re.compile(
    r"(?:^|[.!?\u2026][ \t]|[ \t][-\u2013\u2014]+[ \t])[^\w\n\"\u201c|(]{0,4}"
    r"(?:(?:no|but|oh|hmm+)\b[,.]?[ \t]+)?"
    r"(?:actually|correction|wait|on second thought)\b(?=[^\w\n]{0,3}(?:[,:.!]|$))",
    re.IGNORECASE | re.MULTILINE,
)
"""Words that take a verdict back, so that the next line replaces it."""
_P = r"\b(?:pp?\.?[ \t]?|(?:passages?|sources?)[ \t#]*)"
_IGNORED = re.compile(
    rf"`[^`\n]*`|[(;][ \t]*{_P}\d{{1,4}}[ \t:=\u2013\u2014-]{{1,4}}not[ \t]+(?:found|mentioned)\b",
    re.IGNORECASE,
)
"""Code, and a remark that another passage lacks the statement, as in "(p2: not found)"."""
_ASIDE = (
    r"[^\w\n]{0,3}(?:[ \t](?:[-\u2010-\u2015\u2026]|\.\.)|\u2014)[^\w\n\[(]*"
    r"\d(?!\d{0,2}[)\]])"
)
"""A dash before a number that belongs to a remark, as in "p1 \u2013 2019, not 2018"."""
_PASSAGES = re.compile(
    r"(?:(?P<several>\b(?:pp\.?|passages|sources)[ \t#]*\d{1,4}\b"
    r"|[\[\u3010]\d{1,3}\b(?=[\d \t,;&\u2013-]+[\]\u3011]))"
    rf"|{_P}\d{{1,4}}\b|[\[\u3010]\d{{1,3}}\b(?=[\]\u3011]))"
    rf"(?:(?:(?(several)|(?!{_ASIDE})){_RANGE}"
    r"|[ \t]*[,;&/+\u3001\uff0c][ \t]*(?:and[ \t]+)?|[ \t]+and[ \t]+)"
    rf"(?:{_P}\d{{1,4}}\b|\d{{1,4}}\b(?!\.\d|[ \t]+(?!and\b)\w)))*",
    re.IGNORECASE,
)
"""Passages, as in "p2-p4", "p2, 5", "passages 2 and 5", or "[2]"."""
_FROM_TO = re.compile(rf"(\d+)(?:{_RANGE}(?:{_P})?(\d+))?", re.IGNORECASE)
_SOURCES = re.compile(
    rf"\([^()\n]*\)|\[[^\[\]\n]*\]|{_QUOTE}|(?:\bby[ \t]+)?{_PASSAGES.pattern}", re.IGNORECASE
)
"""What a line contains besides verdicts, unless it is running text."""
END = 10_000
"""A number higher than that of any statement."""
_BY_WEIGHT: tuple[Verdict, ...] = ("supported", "not found", "contradicted")


class Place(NamedTuple):
    """Where a range of statements begins or ends."""

    part: int
    statement: int
    """The number of the statement in its part, or 0 for the beginning and `END` for the end."""

    def __str__(self) -> str:
        return f"{self.part}.{self.statement}" if self.statement else str(self.part)


class Line(NamedTuple):
    """A line in a reply with a verdict on a range of statements."""

    first: Place
    last: Place
    verdict: Verdict
    passages: list[int]
    words: list[str]
    """The words that the line quotes."""
    row: int
    """The number of the line in the reply."""
    is_aside: bool
    """Whether the verdict is in running text after another, and may only be a remark."""
    is_sentence: bool
    """Whether the verdict begins a sentence."""
    is_again: bool
    """Whether the reply takes back what stands above it, as in "Actually, …"."""

    @property
    def span(self) -> tuple[Place, Place]:
        """The first and the last statement."""
        return self.first, self.last

    @property
    def width(self) -> tuple[int, int]:
        """How many parts and statements the range spans."""
        return self.last.part - self.first.part, self.last.statement - self.first.statement

    @property
    def is_detail(self) -> bool:
        """Whether it is only about the words that it quotes."""
        return self.verdict == "not found" and bool(self.words)


def read_lines(text: str, parts: Collection[int], *, judges_statements: bool) -> list[Line]:
    """Return the lines with verdicts in a reply.

    Args:
        text: The reply without its blocks.
        parts: The numbers of the parts that were checked.
        judges_statements: Whether each statement in them should have a verdict.
    """
    text = _GROUPED.sub(_ungrouped, _without_counts(text, parts))
    if judges_statements:
        text = _dotted(text)
    return _lines(_without_tallies(text, parts))


def _without_counts(text: str, parts: Collection[int]) -> str:
    """Return a reply without lines that only count, such as "Supported: 2" in a summary.

    They stay unless other lines, which begin with numbers, judge all parts.
    """
    if not {*parts} <= _judged(_GROUPED.sub("", text)):
        return text
    return "\n".join(row for row in text.split("\n") if not _COUNTED.fullmatch(row))


def _ungrouped(line: re.Match[str]) -> str:
    """Split a line such as "Contradicted: 1.1 (p2), 2.3" into a line per statement."""
    statements = _STATEMENT.findall(line["statements"])
    return "\n".join(f"{numbers} {line['words']} {rest}" for numbers, rest in statements)


def _dotted(text: str) -> str:
    """Return a reply with "2.1" for "2-1" if its numbers cannot all be ranges."""
    ends = _HYPHENATED.findall(text)
    are_ranges = all(int(first) < int(last) for _, first, last in ends)
    return text if are_ranges else _HYPHENATED.sub(r"\1.", text)


def _without_tallies(text: str, parts: Collection[int]) -> str:
    """Return a reply without lines that only count verdicts, such as "3 supported, 1 not found".

    A line stays if it contains the number of a part that no other line judges.
    """
    rows = [(row, _tally(row)) for row in text.split("\n")]
    unjudged = {*parts} - _judged("\n".join(row for row, numbers in rows if not numbers))
    return "\n".join(row for row, numbers in rows if not numbers or numbers & unjudged)


def _tally(row: str) -> set[int]:
    """Return the counts in a line that only counts verdicts and names no passage."""
    counts = [*_COUNT.finditer(row)]
    is_tally = _TALLY.match(row) or len({*map(_verdict, counts)}) > 1
    if not is_tally or _PASSAGES.search(row) or re.search(r"\d\.\d", row):
        return set()
    return {int(each["count"]) for each in counts}


def _judged(text: str) -> set[int]:
    """Return the parts that a text judges."""
    return {part for line in _lines(text) for part in range(line.first.part, line.last.part + 1)}


def _lines(text: str) -> list[Line]:
    """Return the lines with verdicts. A line is about "1.1", "2", "1.1, 1.3" or "1.1-2.3"."""
    lines: list[Line] = []
    row = 0
    pieces = ["", *_PART.split(text)]
    for part, below in zip(pieces[::2], pieces[1::2], strict=True):
        matches = _verdicts_in(below)
        end, row = 0, row + 1
        for match, following in zip_longest(matches, matches[1:]):
            before, end = below[end : match.start()], match.end()
            rest = below[end : following.start() if following else None].partition("\n")[0]
            is_again = "\n" in before and bool(_AGAIN.search(before))
            row += before.count("\n") + is_again
            is_aside = _is_aside(before, rest)
            is_sentence = before.rstrip()[-1:] in (".", "!", "?", "\u2026")
            verdict = _verdict_with(match, rest)
            passages, words = _passages(_QUOTED.sub("", rest)), _QUOTED.findall(rest)
            lines += [
                Line(first, last, verdict, passages, words, row, is_aside, is_sentence, is_again)
                for first, last in _ranges(match["numbers"], "" if match["of_part"] else part)
            ]
    return lines


def _is_aside(before: str, rest: str) -> bool:
    """Return whether a verdict is in running text on the same line as the one before it."""
    if "\n" in before or before[-1:] in {"", *";|\uff1b"}:
        return False
    return re.search(r"\w", _SOURCES.sub("", f"{before}\n{rest}")) is not None


def _verdicts_in(text: str) -> list[re.Match[str]]:
    """Return the verdicts in a text, such as both in "1.1-3.1 supported, but 2.2 not found"."""
    found: list[re.Match[str]] = []
    whole: re.Match[str] | None = None
    place = stop = 0
    while match := _VERDICT.search(text, place):
        if not match["exception"]:
            whole = match
        if match is whole or (whole and match.start() >= stop and _is_exception(match, whole)):
            found.append(match)
            place = match.end()
        else:
            place = match.end("exception")
        stop = match.end("numbers")
    return found


def _is_exception(match: re.Match[str], whole: re.Match[str]) -> bool:
    """Return whether a verdict is an exception to the one before it in its line."""
    first, last = _ranges(match["numbers"])[0]
    return (
        _verdict(match) != _verdict(whole)
        and any(
            a <= first and last <= b and (a, b) != (first, last)
            for a, b in _ranges(whole["numbers"])
            # In "3 supported p2 (3.8 is not)", the number is a version.
            if a.statement or "." not in match["numbers"] or match["exception"] != "("
        )
        and "\n" not in match.string[whole.end() : match.start()]
    )


def _ranges(numbers: str, of_part: str = "") -> list[tuple[Place, Place]]:
    """Return the first and the last statement of each range such as "1.1-2.3", "1.1-3" or "2".

    In a section on a part, numbers such as "2" are those of its statements.
    """
    ranges: list[tuple[Place, Place]] = []
    for part, statement, last_part, last_statement in _FIRST_AND_LAST.findall(numbers):
        first = Place(int(part), int(statement or 0))
        if statement and last_part and not last_statement:  # "1.1-3"
            last = Place(first.part, int(last_part))
        else:
            last = Place(int(last_part or part), int(last_statement or statement or END))
        if of_part and not first.statement:
            first, last = Place(int(of_part), first.part), Place(int(of_part), last.part)
        ranges.append((first, last))
    return ranges


def _passages(text: str) -> list[int]:
    """Return the numbers of the passages that a line names."""
    ranges = [each for run in _PASSAGES.finditer(text) for each in _FROM_TO.findall(run[0])]
    return list(
        dict.fromkeys(number for a, b in ranges for number in range(int(a), int(b or a) + 1))
    )


def _verdict_with(match: re.Match[str], rest: str) -> Verdict:
    """Return the verdict in a match, which the rest of its line may weaken."""
    unquoted = _QUOTED.sub('""', rest)
    remark = _IGNORED.sub("", unquoted)
    verdict: Verdict = worst(map(_verdict, [match, *_ANOTHER.finditer(remark)]))
    if verdict == "supported" and (_EXCEPT.search(unquoted) or _MISSING.search(remark)):
        return "not found"
    return verdict


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict that counts if a text gets several."""
    return max(verdicts, key=_BY_WEIGHT.index)


def _verdict(match: re.Match[str]) -> Verdict:
    """Return the verdict in a match; "supported in part" counts as "not found"."""
    word = match["verdict"].lower()
    if word.startswith(("contradict", "refuted")):
        return "contradicted"
    is_whole = not match["part"] and not match["in_part"]
    return "supported" if word.startswith("support") and is_whole else "not found"
