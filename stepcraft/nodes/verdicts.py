"""Choose the verdicts in a check's reply: one on each statement."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

from stepcraft.nodes.state import Check, Verdict
from stepcraft.nodes.verdict_lines import END, Line, Place, read_lines, worst
from stepcraft.progress import joined
from stepcraft.text.citations import without_marks
from stepcraft.text.claims import claims
from stepcraft.text.matching import folded
from stepcraft.text.names import has_word


def read_verdicts(
    text: str, state: Any, group: Sequence[int], shown: Collection[int]
) -> tuple[list[Check], list[str]]:
    """Return the verdicts on the statements in the given parts, and the errors in the reply.

    Possible errors are statement or passage numbers that are not in the prompt, and several
    verdicts on a part.

    A line such as "3 supported p2" is a verdict on the whole of part 3, or on those of its
    statements that have no line of their own. If several lines judge a statement, the one with the
    narrowest range counts; ties go to the last, unless it covers a detail or the remaining words. A
    verdict of `supported` is ignored if it only cites passages that were not shown.

    Args:
        text: The reply without its blocks.
        state: The state of the check.
        group: The numbers of the parts that were checked.
        shown: The numbers of the passages in the prompt.
    """
    judges_statements: bool = state["judges_statements"]
    sizes = {part: len(_statements(state, part)) for part in group}
    lines = _without_asides(read_lines(text, sizes, judges_statements=judges_statements), sizes)
    if judges_statements:
        lines = _numbered_throughout(lines, sizes)
    else:  # a verdict on a sentence is one on its part
        lines = [
            each._replace(first=Place(each.first.part, 0), last=Place(each.last.part, END))
            for each in lines
        ]
    problems = _unknown(lines, state, sizes, shown)
    if judges_statements and any(
        not each.first.statement and each.first.part > len(state["parts"]) for each in lines
    ):
        lines = [each for each in lines if each.first.statement]  # the others do not number parts
    for part in group:
        lines, several = _settled(lines, state, part)
        problems += several
    judging: list[Line] = []
    for line in lines:
        cited = [number for number in line.passages if number in shown]
        if cited or not line.passages or line.verdict != "supported":
            judging.append(line._replace(passages=cited))
    return [check for part in group for check in _checks(judging, state, part)], problems


def unjudged(checks: Sequence[Check], state: Any, group: Iterable[int]) -> list[str]:
    """Return the texts of the given parts, or of statements in them, that have no verdict."""
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


def _without_asides(lines: Sequence[Line], sizes: Mapping[int, int]) -> list[Line]:
    """Return lines without what is only a remark, as in "2.1 contradicted p1. 1.1 is supported".

    A verdict is only a remark if its statement has another one, or does not exist.
    """
    own = [each for each in lines if not each.is_aside]
    return [
        each
        for each in lines
        if not each.is_aside or not (_is_nowhere(each, sizes) or _is_judged(each, own))
    ]


def _is_nowhere(aside: Line, sizes: Mapping[int, int]) -> bool:
    """Return whether a verdict in running text is about a statement that does not exist."""
    part, statement = aside.first
    if statement or part in sizes:
        return statement > sizes.get(part, -1)
    return part > sum(sizes.values())  # the reply may number all statements consecutively


def _is_judged(aside: Line, own: Iterable[Line]) -> bool:
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


def _numbered_throughout(lines: list[Line], sizes: Mapping[int, int]) -> list[Line]:
    """Renumber lines that count all statements consecutively to match the prompt.

    Numbers that could also be part numbers are left as they are.
    """
    statements = [
        Place(part, number) for part, size in sizes.items() for number in range(1, size + 1)
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
    lines: Sequence[Line], state: Any, sizes: Mapping[int, int], shown: Collection[int]
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


def _settled(lines: list[Line], state: Any, part: int) -> tuple[list[Line], list[str]]:
    """Return lines with at most one verdict on a part as a whole, and the problem with several.

    If each statement should have a verdict, conflicting ones on their part are dropped;
    otherwise, the worst counts, unless the reply takes it back.
    """
    judges_statements: bool = state["judges_statements"]
    bare = [each for each in lines if each.span == ((part, 0), (part, END))]
    if not judges_statements:
        last = max((place for place, each in enumerate(bare) if each.is_again), default=0)
        lines = [each for each in lines if each not in bare[:last]]
        bare = [each for each in bare[last:] if not each.is_detail]
    verdicts: set[Verdict] = {each.verdict for each in bare}
    if len(verdicts) < 2:
        return lines, []
    remedy = "number its statements as shown" if judges_statements else "write one line for it"
    stays = None if judges_statements else worst(verdicts)
    lines = [each for each in lines if each not in bare or each.verdict == stays]
    return lines, [f"part {part} has several verdicts: {remedy}"]


def _checks(lines: Sequence[Line], state: Any, part: int) -> list[Check]:
    """Return the checks of each statement in a part, or of the part as a whole."""
    is_part = not state["judges_statements"]
    judged = [
        (number, statement, _narrowest(lines, part, number))
        for number, statement in enumerate(_statements(state, part), 1)
    ]
    if len(judged) != 1 and not any(line and line.first.statement for _, _, line in judged):
        of_parts = [line for line in lines if not line.first.statement]
        judged = [(0, state["parts"][part - 1]["text"], _narrowest(of_parts, part, 0))]
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


def _narrowest(lines: Sequence[Line], part: int, number: int) -> Line | None:
    """Return the line that counts for a statement, or for a part if the number is 0."""
    fitting = [line for line in lines if line.first <= (part, number) <= line.last]
    width = min((line.width for line in fitting), default=None)
    narrowest = [line for line in fitting if line.width == width]
    return reduce(_combined, narrowest) if narrowest else None


def _combined(earlier: Line, later: Line) -> Line:
    """Return whichever of two lines on a statement counts, or one line with the quotes of both.

    A detail that was not found does not replace a contradiction. The next line is about the rest
    of the statement or another passage, so it replaces no contradiction and, if `supported`, no
    detail.
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


def _details(line: Line, text: str, *, is_part: bool) -> list[tuple[str, str]]:
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
