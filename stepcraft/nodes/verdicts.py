"""Read the verdicts in a check's reply: one on each statement."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from itertools import zip_longest
from typing import Any, NamedTuple

from stepcraft.nodes.state import Check, Verdict
from stepcraft.progress import joined
from stepcraft.text.changes import folded
from stepcraft.text.citations import without_marks
from stepcraft.text.claims import claims
from stepcraft.text.names import has_word

_NUMBER = r"\d{1,4}(?:\.\d{1,4})?"
_RANGE = (
    r"[^\w\n]{0,2}(?:[-\u2010-\u2015~\u301c\uff5e]|\.\.\.?|\u2026|\b(?:to|through)\b)[^\w\n]{0,2}"
)
_AND = r"[^\w\n]{1,4}(?:and[^\w\n]{1,4})?"
_QUOTE = '["\u201c\u201e\u00ab]([^"\u201c-\u201e\u00ab\u00bb\\n]+)["\u201d\u201c\u00bb]'
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
    rf"(?:{_SIGNS}{{1,4}}{_QUOTE})?{_SIGNS}{{1,16}}(?:(?:which[ \t]+)?(?:is|are)[ \t]+)?{_WORD}",
    re.IGNORECASE | re.MULTILINE,
)
_GROUP = rf"[^\w\n]{{0,8}}(?:\d{{1,3}}[.)][ \t]+)?(?P<words>{_WORD})[*_ \t]*:"
_GROUPED = re.compile(rf"^{_GROUP}(?P<statements>[^\w\n]*\d.*)$", re.IGNORECASE | re.MULTILINE)
"""A verdict before its statements, as in "Contradicted: 1.1 (p2), 2.3"."""
_COUNTED = re.compile(
    rf"{_GROUP}[^\w\n]*\d{{1,4}}[^\w\n]*(?-i:statements?|parts?|claims?)?[^\w\n]*", re.IGNORECASE
)
"""A verdict before a single number, which may be how many statements have it."""
_STATEMENT = re.compile(
    rf"(?<![\w.])({_NUMBER}(?:{_RANGE}{_NUMBER})?)((?:(?!(?:[,;]|\band\b)[ \t]*\d).)*)"
)
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
_PART = re.compile(
    rf"{_BEGIN}PART[^\w\n]*(\d{{1,4}})"
    r"(?:[^\w\n]*(?:$|(?=STATEMENT|CLAIM))|[ \t]*[:|\uff1a][^\w\n]*(?=\d))",
    re.IGNORECASE | re.MULTILINE,
)
"""The part containing the statements that follow, as in "Part 2, statement 1" or above a list."""
_ANOTHER = re.compile(
    r"(?<!404)(?<!404[ \t])"
    r"(?:[.,;:|/(\u2013\u2014]|[ \t]-|\b(?:and|but|except|only|was|were)\b)[^\w\n]{0,8}"
    r"(?:(?:is|are|was|were)[ \t]+)?"
    rf"{_WORD}(?=[^\w\n]*(?:p\d|by\b|passage|\d|$))",
    re.IGNORECASE | re.MULTILINE,
)
"""A second verdict on the same statement."""
_AGAIN = re.compile(
    r"(?:^|[.!?\u2026][ \t]|[ \t][-\u2013\u2014]+[ \t])[^\w\n\"\u201c|(]{0,4}"
    r"(?:(?:no|but|oh|hmm+)\b[,.]?[ \t]+)?"
    r"(?:actually|correction|wait|on second thought)\b(?=[^\w\n]{0,3}(?:[,:.!]|$))",
    re.IGNORECASE | re.MULTILINE,
)
"""Words that take a verdict back, so that the next line replaces it."""
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
_CODE = re.compile(r"`[^`\n]*`")
_EXCEPT = re.compile(r"\b(?:except|but not|missing|lacks?|without|not)\b", re.IGNORECASE)
"""Words between a verdict and quoted details to which it does not apply."""
_BY_WEIGHT: tuple[Verdict, ...] = ("supported", "not found", "contradicted")
_END = 10_000
"""A number after those of all statements."""
_ENDS = re.compile(rf"({_NUMBER})(?:{_RANGE}({_NUMBER}))?")
_P = r"\b(?:pp?\.?[ \t]?|(?:passages?|sources?)[ \t#]*)"
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
_QUOTED = re.compile(_QUOTE)
_SOURCES = re.compile(
    rf"\([^()\n]*\)|\[[^\[\]\n]*\]|{_QUOTE}|(?:\bby[ \t]+)?{_PASSAGES.pattern}", re.IGNORECASE
)
"""What a line of verdicts contains apart from them, unless it is running text."""


def read_verdicts(
    text: str, state: Any, group: Sequence[int], shown: Collection[int]
) -> tuple[list[Check], list[str]]:
    """Return the verdicts on the statements in the given parts, and the errors in the reply.

    Possible errors are statement or passage numbers that are not in the prompt, and several
    verdicts on a part.

    A line such as "3 supported p2" is a verdict on the whole of part 3, or on those of its
    statements that have no line of their own. If several lines judge a statement, the one with the
    narrowest range counts; ties go to the last, unless it is about a detail or the rest. A verdict
    of `supported` is ignored if it only cites passages that were not shown.

    Args:
        text: The reply without its blocks.
        state: The state of the check.
        group: The numbers of the parts that were checked.
        shown: The numbers of the passages in the prompt.
    """
    judges_statements: bool = state["judges_statements"]
    sizes = {part: len(_statements(state, part)) for part in group}
    lines = _without_asides(_read_lines(text, sizes, judges_statements=judges_statements), sizes)
    if judges_statements:
        lines = _numbered_throughout(lines, sizes)
    problems = _unknown(lines, state, sizes, shown)
    if judges_statements and any(
        not each.first.statement and each.first.part > len(state["parts"]) for each in lines
    ):
        lines = [each for each in lines if each.first.statement]  # the others do not number parts
    for part in group:
        lines, several = _settled(lines, state, part)
        problems += several
    judging: list[_Line] = []
    for line in lines:
        cited = [number for number in line.passages if number in shown]
        if cited or not line.passages or line.verdict != "supported":
            judging.append(line._replace(passages=cited))
    return [check for part in group for check in _checks(judging, state, part)], problems


def _read_lines(text: str, parts: Collection[int], *, judges_statements: bool) -> list["_Line"]:
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


def _settled(lines: list["_Line"], state: Any, part: int) -> tuple[list["_Line"], list[str]]:
    """Return lines with at most one verdict on a part as a whole, and the problem with several.

    If each statement should have a verdict, none of several on their part counts; otherwise, the
    _worst does, unless the reply takes it back.
    """
    judges_statements: bool = state["judges_statements"]
    bare = [each for each in lines if each.span == ((part, 0), (part, _END))]
    if not judges_statements:
        last = max((place for place, each in enumerate(bare) if each.is_again), default=0)
        lines = [each for each in lines if each not in bare[:last]]
        bare = [each for each in bare[last:] if not each.is_detail]
    verdicts: set[Verdict] = {each.verdict for each in bare}
    if len(verdicts) < 2:
        return lines, []
    remedy = "number its statements as shown" if judges_statements else "write one line for it"
    stays = None if judges_statements else _worst(verdicts)
    lines = [each for each in lines if each not in bare or each.verdict == stays]
    return lines, [f"part {part} has several verdicts: {remedy}"]


def _without_tallies(text: str, parts: Collection[int]) -> str:
    """Return a reply without lines that only count verdicts, such as "3 supported, 1 not found".

    If one of the numbers is also the number of a part, another line has the verdict on that part.
    """
    rows = [(row, _tally(row)) for row in text.split("\n")]
    unjudged = {*parts} - _judged("\n".join(row for row, numbers in rows if not numbers))
    return "\n".join(row for row, numbers in rows if not numbers or numbers & unjudged)


def _tally(row: str) -> set[int]:
    """Return the numbers of verdicts in a line that only counts them; it names no passage."""
    counts = [*_COUNT.finditer(row)]
    is_tally = _TALLY.match(row) or len({*map(_verdict, counts)}) > 1
    if not is_tally or _PASSAGES.search(row) or re.search(r"\d\.\d", row):
        return set()
    return {int(each["count"]) for each in counts}


def _without_counts(text: str, parts: Collection[int]) -> str:
    """Return a reply without lines that only count, such as "Supported: 2" in a summary.

    All parts have verdicts in other lines, which begin with their numbers.
    """
    if not {*parts} <= _judged(_GROUPED.sub("", text)):
        return text
    return "\n".join(row for row in text.split("\n") if not _COUNTED.fullmatch(row))


def _judged(text: str) -> set[int]:
    """Return the parts that a text judges."""
    return {part for line in _lines(text) for part in range(line.first.part, line.last.part + 1)}


def _ungrouped(line: re.Match[str]) -> str:
    """Split a line such as "Contradicted: 1.1 (p2), 2.3" into a line per statement."""
    statements = _STATEMENT.findall(line["statements"])
    return "\n".join(f"{numbers} {line['words']} {rest}" for numbers, rest in statements)


def _dotted(text: str) -> str:
    """Return a reply with "2.1" for "2-1" if its numbers cannot all be ranges."""
    ends = _HYPHENATED.findall(text)
    are_ranges = all(int(first) < int(last) for _, first, last in ends)
    return text if are_ranges else _HYPHENATED.sub(r"\1.", text)


def _without_asides(lines: Sequence["_Line"], sizes: Mapping[int, int]) -> list["_Line"]:
    """Return lines without what is only a remark, as in "2.1 contradicted p1. 1.1 is supported".

    A verdict is only a remark if its statement has another one, or does not exist.
    """
    own = [each for each in lines if not each.is_aside]
    return [
        each
        for each in lines
        if not each.is_aside or not (_is_nowhere(each, sizes) or _is_judged(each, own))
    ]


def _is_nowhere(aside: "_Line", sizes: Mapping[int, int]) -> bool:
    """Return whether a verdict in running text is about a statement that does not exist."""
    part, statement = aside.first
    if statement or part in sizes:
        return statement > sizes.get(part, -1)
    return part > sum(sizes.values())  # the reply may number all statements consecutively


def _is_judged(aside: "_Line", own: Iterable["_Line"]) -> bool:
    """Return whether the statement judged in running text also has a verdict elsewhere.

    A new sentence in the same line may correct the verdict before it. A line that goes on to later
    statements judges them, even if another line has a verdict on a range that includes them.
    """
    here = [each for each in own if each.row == aside.row]
    elsewhere = [each for each in own if each.row != aside.row]
    goes_on = any(each.first < aside.first for each in here)
    others = elsewhere if aside.is_sentence else own
    return any(each.span == aside.span for each in others) or (
        not goes_on and any(each.first <= aside.first <= each.last for each in elsewhere)
    )


def _numbered_throughout(lines: list["_Line"], sizes: Mapping[int, int]) -> list["_Line"]:
    """Renumber lines that count all statements consecutively to match the prompt.

    Numbers that could also be part numbers are left as they are.
    """
    statements = [
        _Place(part, number) for part, size in sizes.items() for number in range(1, size + 1)
    ]
    last = max((each.last.part for each in lines), default=0)
    fits = last == len(statements) if len(sizes) > 1 else 1 < last <= len(statements)
    are_parts = last in sizes and (1 in sizes or all(each.first.part > 1 for each in lines))
    if any(each.first.statement for each in lines) or not fits or are_parts:
        return lines
    return [
        each._replace(first=statements[each.first.part - 1], last=statements[each.last.part - 1])
        for each in lines
    ]


def _unknown(
    lines: Sequence["_Line"], state: Any, sizes: Mapping[int, int], shown: Collection[int]
) -> list[str]:
    """Return the statements and passages that the lines name but the prompt lacks.

    Parts checked in other calls are ignored.
    """
    others = {*range(1, len(state["parts"]) + 1)} - sizes.keys()
    unknown = [
        str(each.first)
        for each in lines
        if each.first.part not in others and each.first.statement > sizes.get(each.first.part, -1)
    ]
    passages = {number for each in lines for number in each.passages}
    unknown += [f"p{each}" for each in sorted(passages.difference(shown))]
    return [f"there is no {joined(unknown, 5)}"] if unknown else []


def unjudged(checks: Sequence[Check], state: Any, group: Iterable[int]) -> list[str]:
    """Return the given parts, or statements in them, that have no verdict."""
    judged = {(each["part"], each["statement"]) for each in checks}
    return [
        without_marks(statement, plain=False).strip()
        for part in group
        for number, statement in enumerate(_statements(state, part), 1)
        if judged.isdisjoint({(part, 0), (part, number)})
    ]


def _statements(state: Any, part: int) -> list[str]:
    """Return the statements to judge in a part, or the whole part."""
    text: str = state["parts"][part - 1]["text"]
    spans = claims(text) if state["judges_statements"] else [(0, len(text))]
    return [text[start:stop] for start, stop in spans]


class _Place(NamedTuple):
    """Where a range of statements begins or ends."""

    part: int
    statement: int
    """The number of the statement in its part, or 0 for the beginning and `_END` for the end."""

    def __str__(self) -> str:
        return f"{self.part}.{self.statement}" if self.statement else str(self.part)


class _Line(NamedTuple):
    """A line in a reply with a verdict on a range of statements."""

    first: _Place
    last: _Place
    verdict: Verdict
    passages: list[int]
    words: list[str]
    """The words that the line quotes."""
    row: int
    """The number of the line in the reply."""
    is_aside: bool
    """Whether the verdict is in running text after another, and may only be a remark."""
    is_sentence: bool
    """Whether a sentence begins with it."""
    is_again: bool
    """Whether the reply takes back what stands above it, as in "Actually, …"."""

    @property
    def span(self) -> tuple[_Place, _Place]:
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


def _lines(text: str) -> list[_Line]:
    """Return the lines with verdicts. A line is about "1.1", "2", "1.1, 1.3" or "1.1-2.3"."""
    lines: list[_Line] = []
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
            is_within = "\n" not in before and before[-1:] not in ";|\uff1b"
            is_aside = is_within and bool(re.search(r"\w", _SOURCES.sub("", f"{before}\n{rest}")))
            is_sentence = before.rstrip()[-1:] in (".", "!", "?", "\u2026")
            verdict = _verdict_with(match, rest)
            passages, words = _passages(_QUOTED.sub("", rest)), _QUOTED.findall(rest)
            lines += [
                _Line(first, last, verdict, passages, words, row, is_aside, is_sentence, is_again)
                for first, last in _ranges(match["numbers"], "" if match["of_part"] else part)
            ]
    return lines


def _verdict_with(match: re.Match[str], rest: str) -> Verdict:
    """Return the verdict in a match, which the rest of its line may lessen."""
    unquoted = _QUOTED.sub("", rest)
    remark = _CODE.sub("", unquoted)
    verdict: Verdict = _worst(map(_verdict, [match, *_ANOTHER.finditer(remark)]))
    is_partial = unquoted != rest and _EXCEPT.search(unquoted)
    if verdict == "supported" and (is_partial or _MISSING.search(remark)):
        return "not found"
    return verdict


def _worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict that counts if a text gets several."""
    return max(verdicts, key=_BY_WEIGHT.index)


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


def _ranges(numbers: str, part: str = "") -> list[tuple[_Place, _Place]]:
    """Return the first and the last statement of each range such as "1.1-2.3", "1.1-3" or "2".

    In a section on a part, numbers such as "2" are those of its statements.
    """
    ranges: list[tuple[_Place, _Place]] = []
    for begin, end in _ENDS.findall(numbers):
        first_part, _, statement = begin.partition(".")
        last_part, _, last_statement = (end or begin).partition(".")
        if statement and end and not last_statement:  # "1.1-3"
            last_part, last_statement = first_part, end
        first = _Place(int(first_part), int(statement or 0))
        last = _Place(int(last_part), int(last_statement or _END))
        if part and not first.statement:
            first, last = _Place(int(part), first.part), _Place(int(part), last.part)
        ranges.append((first, last))
    return ranges


def _passages(text: str) -> list[int]:
    """Return the numbers of the passages that a line names."""
    ranges = [each for run in _PASSAGES.finditer(text) for each in _FROM_TO.findall(run[0])]
    return list(
        dict.fromkeys(number for a, b in ranges for number in range(int(a), int(b or a) + 1))
    )


def _verdict(match: re.Match[str]) -> Verdict:
    """Return the verdict in a match; "supported in part" counts as "not found"."""
    word = match["verdict"].lower()
    if word.startswith(("contradict", "refuted")):
        return "contradicted"
    is_whole = not match["part"] and not match["in_part"]
    return "supported" if word.startswith("support") and is_whole else "not found"


def _checks(lines: Sequence[_Line], state: Any, part: int) -> list[Check]:
    """Return the checks of each statement in a part, or of the part as a whole."""
    is_part = not state["judges_statements"]
    judged = [
        (number, statement, _narrowest(lines, part, number))
        for number, statement in enumerate(_statements(state, part), 1)
    ]
    if len(judged) != 1 and not any(line and line.first.statement for _, _, line in judged):
        judged = [(0, state["parts"][part - 1]["text"], _narrowest(lines, part, 0))]
    if is_part:  # other details of a contradicted part may not be found
        judged += [
            (number, statement, line)
            for number, statement, whole in judged
            if whole and whole.verdict == "contradicted"
            for line in lines
            if line.is_detail and line.span == whole.span
        ]
    return [
        Check(
            round=state["rounds"] + 1,
            part=part,
            statement=0 if is_part else number,
            text=without_marks(text, plain=False).strip(),
            words=words,
            verdict=line.verdict,
            evidence=list(
                dict.fromkeys(state["evidence"][each - 1]["id"] for each in line.passages)
            ),
        )
        for number, statement, line in judged
        if line
        for words, text in _details(line, statement, is_part=is_part)
    ]


def _narrowest(lines: Sequence[_Line], part: int, number: int) -> _Line | None:
    """Return the line that counts for a statement, or for a part if the number is 0."""
    fitting = [line for line in lines if line.first <= (part, number) <= line.last]
    width = min((line.width for line in fitting), default=None)
    narrowest = [line for line in fitting if line.width == width]
    return reduce(_combined, narrowest) if narrowest else None


def _combined(earlier: _Line, later: _Line) -> _Line:
    """Return whichever of two lines on a statement counts, or one line with the quotes of both.

    A contradiction is not replaced by a detail that was not found, nor by the next line, which is
    about the rest of the statement or another passage. Nor is a detail by `supported` there.
    """
    is_next = later.row - earlier.row <= 1 and not later.is_aside
    if is_next and earlier.is_detail and later.is_detail:
        passages = [*earlier.passages, *later.passages]
        return later._replace(words=[*earlier.words, *later.words], passages=passages)
    if earlier.verdict == "contradicted" != later.verdict:
        stays = is_next or later.is_detail
    else:
        stays = is_next and later.verdict == "supported" and earlier.is_detail
    return earlier._replace(row=later.row) if stays else later


def _details(line: _Line, text: str, *, is_part: bool) -> list[tuple[str, str]]:
    """Return the quoted words that a line is about with their text, or "" and the whole text.

    If the text is a part, each detail is returned with every sentence that contains it.
    """
    written = (_as_written(words, text) for words in line.words)
    details = [
        (words, each)
        for words in dict.fromkeys(filter(None, written))
        for each in (_sentences_with(words, text) if is_part else [text])
    ] or [("", text)]
    return details if line.verdict == "not found" else details[:1]


def _sentences_with(words: str, text: str) -> list[str]:
    """Return the sentences in a text that contain words, or the text if they span several."""
    sentences = [text[start:stop] for start, stop in claims(text)]
    return (
        [*dict.fromkeys(each for each in sentences if has_word(each, words))]
        or [each for each in sentences if words in each][:1]
        or [text]
    )


def _as_written(words: str, statement: str) -> str:
    """Return quoted words with the typography and emphasis of the statement, or "" if not there."""
    if words in statement:
        return words
    text, spans = folded(statement)
    places = [place for place, (start, _) in enumerate(spans) if statement[start] not in "*`"]
    quote = folded(re.sub("[*`]", "", words))[0]
    found = "".join(text[place] for place in places).find(quote)
    if not quote or found < 0:
        return ""
    start, stop = spans[places[found]][0], spans[places[found + len(quote) - 1]][1]
    before, after = statement[:start].rstrip("*`"), statement[stop:].lstrip("*`")
    return statement[len(before) : len(statement) - len(after)]
