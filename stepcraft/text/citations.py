r"""Marks such as [p3], by which a draft cites passages, and what is read as one.

Prompts number passages p1, p2 and so on, and ask for marks that nothing else resembles. The
notations of other products are read too, [3] only in a text that has no other mark. Nothing is read
in code, LaTeX, URLs and links.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from stepcraft.text.clean import CJK, SPACELESS_STOPS, STOPS
from stepcraft.text.markdown import code, outside_code
from stepcraft.text.sentences import pieces

_DISPLAY = (
    r"(?<![\\$])\$\$[^$]*+(?:\$(?!\$)[^$]*+)*+\$\$"
    r"|(?<!\\)\\\[[^\\]*+(?:\\[^\[\]][^\\]*+)*+\\\]"
    r"|\\begin\{[^{}\n]*+\}[^\\]*+(?:\\(?!begin|end)[^\\]*+)*+\\end\{[^{}\n]*+\}"
)
_INLINE = (
    r"(?<![\\\w$])\$(?![\s$])(?:[^$\\\n]|\\.)++(?<!\s)\$(?!\d)"
    r"|(?<!\\)\\\([^\\]*+(?:\\[^()][^\\]*+)*+\\\)"
)
_LINK = (
    r"\[[^\[\]\n]*+\]\([^()\s]*+(?:\([^()\s]*+\)[^()\s]*+)*+(?:[ \t]++[\"'][^\n\"']*+[\"'])?+\)"
    r"|(?<![\w+])[a-z][a-z+]{1,11}://(?:(?!(?<![=&?])(?:\[p\d{1,3}\]){1,9}+[.,;:!?)*_]*+(?![!-~]))[!-~])++"
)
"""A link, or a URL, which ends before a mark at its end."""

_P = r"p[ \t]?"
_WORD = r"(?:citations?|cite|passages?|sources?|evidence|refs?|docs?)[ \t:#]*+"
_MORE = (
    rf"(?:[ \t]*+(?:[,;&\uff0c\uff1b\u3001\u2013-]|and\b)[ \t]*+(?:{_WORD})?+(?:{_P})?+\d{{1,3}})*+"
)
_MARK = (
    rf"(?:\[[ \t]*+(?:{_P}|{_WORD}(?:{_P})?+)\d{{1,3}}{_MORE}[ \t]*+\]|\[\^p?\d{{1,3}}\]"
    rf"|[\u3010\uff3b][ \t]*+(?:{_P})?+\d{{1,3}}{_MORE}[ \t]*+(?:\u2020[^\u3011\n]{{0,99}}+)?+"
    r"[\u3011\uff3d])"
)
_PLAIN = rf"\[[1-9]\d?\d?\](?!\(|[^\W{CJK}])"
_ENDS = f"{STOPS}{SPACELESS_STOPS}"
_CLOSING = "\"'*_)\u2019\u201d\u00bb\u300d\u300f\uff09"
_BETWEEN = r"[ \t]*+(?:[,;\uff0c\uff1b\u3001][ \t]*+)?+"


def _tokens(mark: str, before: str = "", behind: str = "") -> re.Pattern[str]:
    """Match a run of marks in the group `run`; without it, what no mark is read in."""
    return re.compile(
        rf"(?<![ \t])(?P<before>[ \t]*+)(?:{_DISPLAY}|{_INLINE}|{_LINK}"
        rf"|{before}(?P<run>{mark}(?:{_BETWEEN}{mark})*+){behind})",
        re.IGNORECASE,
    )


_MARKS = _tokens(_MARK)
_PLAIN_MARKS = _tokens(
    _PLAIN,
    # Behind a blank or a sentence's end; in "= [1]" it is a list.
    before=rf"(?:(?<![^\s{_ENDS}{CJK}\uff0c\uff1a\uff1b\u3001\u201d\u300d\u300f\uff09])"
    rf"|(?<=[{_ENDS}][\"'*_\u2019]))(?<![=+\u2208][ \t])",
    behind=r"(?!\[|[ \t]*+[=+\u222a])",
)
_EACH = re.compile(rf"({_BETWEEN})({_MARK}|{_PLAIN})", re.IGNORECASE)
_NUMBER = re.compile(rf"(\d+)(?:[ \t]*[\u2013-][ \t]*(?:{_P})?(\d+))?", re.IGNORECASE)
_DEFINED = re.compile(r"^[ ]{0,3}(\[(?:\^p?)?\d{1,3}\]):", re.MULTILINE)
"""The definition of a footnote or of a link: its label cites no passage."""

HEADING = re.compile(r"#{1,6}[ \t][^\n]++|\*\*[^*\n]++\*\*:?|__[^_\n]++__:?|[|: \t]*+-[|: \t-]*+")
"""A heading, a rule, or the line below the head of a table."""
_LATEX = re.compile(f"(?P<display>{_DISPLAY})|{_INLINE}", re.IGNORECASE)
_STOP = re.compile(rf"[{_ENDS}][{_ENDS}{_CLOSING}]{{0,6}}\Z")
_WINDOW = 12
"""Characters before a mark in which a stop is looked for."""


class _Mark(NamedTuple):
    """A mark, with what stands between it and the mark before it."""

    between: str
    text: str
    numbers: list[int]
    """The numbers of the passages; none where the text defines what the mark refers to."""


class _Run(NamedTuple):
    """Marks that follow each other, with the blank before them."""

    start: int
    stop: int
    before: str
    marks: list[_Mark]


def marks(text: str) -> list[int]:
    """Return the numbers of the passages that a text cites, each once, in order."""
    return _numbers(_runs(text))


def without_marks(text: str) -> str:
    """Return a text without its marks and the blanks before them."""
    return _rewritten(text, 0, len(text), _runs(text), lambda _: "")


def with_prompt_marks(text: str) -> str:
    """Return a text with all its marks in the form that prompts ask for: [p3][p5]."""
    return _rewritten(
        text, 0, len(text), _runs(text), lambda numbers: "".join(f"[p{each}]" for each in numbers)
    )


def cited_sentences(text: str, numbers: Mapping[int, int]) -> list[tuple[str, list[int]]]:
    """Split a text into its sentences, each with the numbers that it cites.

    A mark directly behind a sentence, or on the line after a formula, belongs to it. A block of
    code and a displayed formula belong to the sentence that they stand in or follow, a heading to
    the one below it.

    Args:
        text: The text. Joined, the sentences are the text with its marks in the form [1][2].
        numbers: The new number of each passage; marks of other passages are dropped.
    """

    def written(cited: Iterable[int]) -> str:
        places = dict.fromkeys(numbers[each] for each in cited if each in numbers)
        return "".join(f"[{place}]" for place in places)

    runs = _runs(text)
    ends = _sentence_ends(_as_prose(text, runs))
    within = defaultdict[int, list[_Run]](list)
    for run in runs:
        within[bisect_right(ends, run.start)].append(run)
    return [
        (
            _rewritten(text, start, stop, within[place], written),
            [numbers[each] for each in _numbers(within[place]) if each in numbers],
        )
        for place, (start, stop) in enumerate(pairwise([0, *ends]))
        if start < stop
    ]


def _runs(text: str) -> list[_Run]:
    labels = set(_DEFINED.findall(text))
    return _matches(text, _MARKS, labels) or _matches(text, _PLAIN_MARKS, labels)


def _matches(text: str, pattern: re.Pattern[str], labels: set[str]) -> list[_Run]:
    runs: list[_Run] = []
    for start, stop in outside_code(text):
        for match in pattern.finditer(text, start, stop):
            cited = [
                _Mark(between, mark, _cited(mark, labels))
                for between, mark in _EACH.findall(match["run"] or "")
            ]
            if any(mark.numbers for mark in cited):
                runs.append(_Run(match.start(), match.end(), match["before"], cited))
    return runs


def _cited(mark: str, labels: set[str]) -> list[int]:
    if mark in labels:
        return []
    ends = _NUMBER.findall(mark.partition("\u2020")[0])
    return [each for first, last in ends for each in range(int(first), int(last or first) + 1)]


def _numbers(runs: Iterable[_Run]) -> list[int]:
    return list(
        dict.fromkeys(
            filter(None, (each for run in runs for mark in run.marks for each in mark.numbers))
        )
    )


def _rewritten(
    text: str, start: int, stop: int, runs: Iterable[_Run], written: Callable[[list[int]], str]
) -> str:
    """Return a span of the text with other marks; one that is written as "" is dropped."""
    parts: list[str] = []
    for run in runs:
        parts.append(text[start : run.start])
        start = run.stop
        kept = [
            (mark.between, mark.text if not mark.numbers else written(mark.numbers))
            for mark in run.marks
        ]
        kept = [(between, mark) for between, mark in kept if mark]
        if kept:
            parts += [run.before, kept[0][1], *("".join(each) for each in kept[1:])]
        elif run.start == 0 or text[run.start - 1] == "\n":
            while text.startswith((" ", "\t"), start):
                start += 1
    return "".join([*parts, text[start:stop]])


def _as_prose(text: str, runs: Iterable[_Run]) -> str:
    """Return a text of the same length, in which nothing but the ends of sentences looks like one.

    Marks become blanks, and one behind a sentence changes places with its stop. Code and LaTeX have
    no stops; a letter stands for blocks of both, since what goes on in lower case begins no
    sentence.
    """
    shown = list(text)
    formulas: set[int] = set()
    end = 0
    for start, stop in [*code(text), (len(text), len(text))]:
        for match in _LATEX.finditer(text, end, start):
            shown[match.start() : match.end()] = ("x" if match["display"] else "$") * len(match[0])
            formulas |= {match.end()} if match["display"] else set()
        is_block = "\n" in text[start:stop]
        shown[start:stop] = ("x" if is_block else "$") * (stop - start)
        formulas |= {stop} if is_block else set()
        end = stop
    for run in runs:
        moved = _moved(text, run.start, formulas)
        length = run.stop - run.start + len(moved)
        shown[run.stop - length : run.stop] = " " * (length - len(moved[:1])) + moved[:1]
    return "".join(shown)


def _moved(text: str, start: int, formulas: Collection[int]) -> str:
    """Return what ends the sentence before a mark: its stop, or line breaks behind a formula."""
    window = text[max(0, start - _WINDOW) : start]
    bare = window.rstrip()
    if start - len(window) + len(bare) in formulas:
        return window[len(bare) :]
    stop = _STOP.search(window)
    is_list_number = stop and window[: stop.start()].rpartition("\n")[2].strip().isdigit()
    return stop[0] if stop and not is_list_number else ""


def _sentence_ends(prose: str) -> list[int]:
    ends: list[int] = []
    end, is_complete = 0, False
    for piece in pieces(prose):
        words = piece.strip()
        if words.strip("|"):
            if is_complete:
                ends.append(end)
            is_complete = not HEADING.fullmatch(words)
        end += len(piece)
    return [*ends, end]
