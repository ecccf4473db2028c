r"""Citation marks such as [p3], which link a draft to passages, and equivalent notations.

Prompts number passages p1, p2 and so on, and ask for marks that cannot be confused with anything
else. The notations of other products are recognised too. But [3] and [P3] count only if there are
no other marks, and [3, 5] only at the end of a clause, in texts with marks like [3]. Anything
inside code, LaTeX, URLs and links is ignored.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from itertools import chain, pairwise

from stepcraft.text.clean import SPACELESS, SPACELESS_STOPS, STOPS
from stepcraft.text.markdown import code, replaced
from stepcraft.text.sentences import pieces

_ENDS = f"{STOPS}{SPACELESS_STOPS}"
_NO_STOP = rf"(?<![{_ENDS}])"
_TITLE = rf"(?:\*\*[^*\n]++{_NO_STOP}\*\*|__[^_\n]++{_NO_STOP}__)"
HEADING = re.compile(rf"#{{1,6}}[ \t][^\n]++|{_TITLE}:?|[|: \t]*+-[|: \t-]*+")
"""A heading, a rule, or the delimiter line below a table's header."""

_BLOCK = "\u0238"
"""A placeholder for each character of a block: a lower-case letter, which cannot begin a sentence.
"""
_LITERAL = re.compile(
    r"""(?<![\\$])\$\$(?<=^\$\$)[^$]*+(?:\$(?!\$)[^$]*+)*+\$\$
    |(?<![\\$])\$\$(?![),.$]|[^$]*[\s)]\[p\d)[^$\n]*+(?:(?:\$(?!\$)|\n(?!\s*\n))[^$\n]*+)*+\$\$
    |(?<!\\)\\\[(?!p\d)[^\\]*+(?:\\[^\[\]][^\\]*+)*+\\\]
    |\\begin\{[^{}\n]*+\}[^\\]*+(?:\\(?!begin|end)[^\\]*+)*+\\end\{[^{}\n]*+\}
    |(?<![\\\w$])\$(?![\s$]|\d[^$\n]*\[p\d|[^$\n]*[\s)]\[p\d)(?:[^$\\\n]|\\.)++(?<!\s)\$(?!\d)
    |(?<!\\)\\\([^\\]*+(?:\\[^()][^\\]*+)*+\\\)
    |\[(?:[^\[\]\n]++|\[[^\[\]\n]*+\])*+\]
     \([^()\s]*+(?:\([^()\s]*+\)[^()\s]*+)*+(?:[ \t]++["'][^\n"']*+["'])?+\)
    |(?<![\w+])[a-z][a-z+]{1,11}://
     (?:(?!(?:(?<![=&?])\[p\d{1,3}\]|[.,;:!?)*_"']){0,12}+(?![!-~]))[!-~])++""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
"""Displayed and inline LaTeX, links, and URLs up to any marks or full stop after them."""
_DEFINED = re.compile(
    r"^[ ]{0,3}(\[\^p?\d{1,3}\]|\[\d{1,3}\](?=:[ \t]*+(?:<|\w+:\S|[./#]\S"
    r"|(?=\S*?(?:/|[.#]\S))\S++[ \t]*+(?:[\"'(]|\r?$)))):",
    re.MULTILINE,
)
"""A footnote or the target of a link, unlike "[1]: Handbook" in a list of sources.

A target without a scheme is one word with a slash, or with a full stop or "#" inside.
"""

_WRAPPED = re.compile(
    r"[ \t]+(?:[(*_\[]{1,3}|<sup>)[ \t]*(?:(?:see|sources?|refs?|cf)[.:]?)?[ \t]{3,}+"
    r"(?:[)*_\]]{1,3}|</sup>)(?=\s|$)",
    re.IGNORECASE,
)
"""What surrounds the spaces that replace marks, as in " (see [p3])"."""
_P = r"(?:p[ \t]?)"
_WORD = r"(?:(?:citations?|cite|passages?|sources?|evidence|refs?|docs?|see|cf\.?)[ \t:#]*+)"
_AND = (
    r"(?:[ \t]*+(?:[,;&/|+\uff0c\uff1b\u3001\u2013-](?:[ \t]*+and\b)?+"
    r"|(?:and|und|et|y|e|to|through)\b)[ \t]*+"
    r"|[ \t]++(?=p\d))"
)
_NUMBERS = rf"\d{{1,3}}(?:{_AND}{_WORD}?+{_P}?+\d{{1,3}})*+[ \t]*+"
_NOTE = rf"(?<=\d)[ \t]*+[,:][ \t]*+(?!(?:and\b[ \t]*+)?+{_WORD}?+{_P}?+\d)[^\[\]\n]{{1,80}}+"
"""A remark within a mark, as in "[p1, section 3]"."""
_NO_LABEL = (
    r"(?!(?:^|(?<=#[ ])|(?<=\*\*))[\u3010\uff3b]"
    r"[^\u3011\uff3d\u2020\n]*+[\u3011\uff3d]"
    r"(?!\u6307\u51fa|\u8868\u660e|\u8bf4|\u663e\u793a|\u306b\u3088|\u3067\u306f)\w)"
)
"""Not before the label of a section, as at the beginning of a line in Japanese and Chinese, unless
a word such as "according to" or "says" follows.
"""
_NO_ID = r"(?!\[[ \t]*+(?:(?:see|cf)\b[^p\[\]\n]{0,40}+|(?-i:P)[ \t]?\d(?-i:[^p\[\]\n]){0,40}+)\])"
"""Not before what has no small "p", such as [see 5] or the name of a priority, [P1]."""
_MARK = (
    rf"(?:{_NO_ID}\[[ \t]*+(?:{_P}|{_WORD}{_P}?+|(?=\d[\d, ]*p\d)){_NUMBERS}\]|\[\^p?\d{{1,3}}\]"
    rf"|{_NO_ID}\[{_P}{_NUMBERS}{_NOTE}\]"
    rf"|\\\[(?-i:p){_NUMBERS}\\\]"
    rf"|{_NO_LABEL}[\u3010\uff3b][ \t]*+(?-i:{_P})?+{_NUMBERS}"
    r"(?:\u2020[^\u3011\n]{0,99}+)?+[\u3011\uff3d])"
)
_IN_PARENTHESES = re.compile(r"(?<!\w)\(p\d{1,4}(?:(?:[,;][ \t]?|[ \t]and[ \t])p\d{1,4})*+\)")
_NAMED = re.compile(r"(?<![\w<>/.#$@&=-])p[1-9]\d{0,3}(?![\w>/=]|[.-]\w)")
"""The number of a passage, as opposed to a tag, a host or a variable."""
_BRACKET = re.compile("[\\[\u3010\uff3b]")
"""The characters that begin a mark."""
_PLAIN = rf"\[(?:[1-9]\d?\d?|P[1-9]\d?\d?(?:{_AND}P?\d{{1,3}})*+)\](?!\(|[^\W{SPACELESS}])"
_LABEL = re.compile(rf"{_MARK}|\[P?\d{{1,3}}\]", re.IGNORECASE)
"""Anything in the form of a mark."""
_IS_NAME = re.compile(r"\[(?!p\d|\^)[^\u2020]*\Z")
"""The beginning of a mark that may be a name, unlike [p3], [^3] or one with a dagger."""
_ID = re.compile(r"\[p\d")
"""The beginning of a mark in the form that prompts ask for."""
_PLAIN_LIST = r"\[[1-9]\d?\d?(?:(?:,[ \t]?|[\u2013-])[1-9]\d?\d?)++\]"
_BETWEEN = r"[ \t]*+(?:[,;\uff0c\uff1b\u3001][ \t]*+)?+"
_EACH = re.compile(rf"({_BETWEEN})({_MARK}|{_PLAIN}|{_PLAIN_LIST})", re.IGNORECASE)
_STOPPED = re.compile(rf"([{_ENDS}]){_WRAPPED.pattern}", re.IGNORECASE)
_NUMBER = re.compile(
    rf"(\d+)(?:[ \t]*(?:[\u2013-]|to\b|through\b)[ \t]*{_P}?(\d+))?", re.IGNORECASE
)
_CLOSING = "\"'*_)\u2019\u201d\u00bb\u300d\u300f\uff09"


def _compiled(mark: str, before: str = "", behind: str = "") -> re.Pattern[str]:
    """Return a pattern that matches consecutive marks (`run`) and the space before them.

    The group `end` is the punctuation of the sentence before the marks, or the line breaks after a
    block.
    """
    return re.compile(
        rf"(?:(?P<end>(?<={_BLOCK})\s++|(?<!^\d)(?<!^\d\d)[{_ENDS}][{_ENDS}{_CLOSING}]{{0,6}}+)"
        rf"|(?<![ \t]))(?P<blank>[ \t]*+){before}(?P<run>{mark}(?:{_BETWEEN}{mark})*+){behind}",
        re.IGNORECASE | re.MULTILINE,
    )


_RUN = _compiled(_MARK)
_AT_END = rf"[ \t]*+(?:[{_ENDS}]|$)"
# After a space or the end of a sentence; "= [1]" is a list.
_BEFORE_PLAIN = (
    rf"(?:(?<![^\s{_ENDS}{SPACELESS}\uff0c\uff1a\uff1b\u3001\u201d\u300d\u300f\uff09])"
    rf"|(?<=[{_ENDS}][\"'*_\u2019]))(?<![=+\u2208][ \t])"
)
_BEHIND_PLAIN = r"(?!\[|[ \t]*+[=+\u222a])"
_PLAIN_RUN = _compiled(_PLAIN, _BEFORE_PLAIN, _BEHIND_PLAIN)
_PLAIN_LISTS_RUN = _compiled(
    rf"(?:{_PLAIN}|{_PLAIN_LIST}(?={_AT_END}))", _BEFORE_PLAIN, _BEHIND_PLAIN
)
_DATA = re.compile(rf"{_PLAIN_LIST}(?!{_AT_END})", re.MULTILINE)
"""A list of numbers within a sentence, which shows that such lists are not marks."""


def bracketed(text: str, last: int, *, unless_in: str = "") -> str:
    """Return a text with citations in the form (p3, p4) or (p3 and p4) written as [p3, p4].

    A parenthesis such as (p95) is left alone if there are fewer passages than that, or in code.

    Args:
        text: The text.
        last: The number of the last passage.
        unless_in: Parentheses that also occur in this text are left alone.
    """

    def in_brackets(match: re.Match[str]) -> str:
        numbers = re.findall(r"\d+", match[0])
        if max(map(int, numbers)) > last or match[0] in unless_in:
            return match[0]
        return f"[{', '.join(f'p{number}' for number in numbers)}]"

    return replaced(text, _IN_PARENTHESES, in_brackets)


def labels(text: str, *, ids: bool = False) -> str:
    """Return what a text has in the form of marks, but is not a plain number, one on each line.

    Args:
        text: The text, such as a passage. Its labels are ordinary text where they are quoted.
        ids: Whether to include [p3]. It is a mark anyway if a prompt asks for such marks.
    """
    usual = re.compile(r"\[\d+\]" if ids else r"\[p?\d+\]")
    return "\n".join(each for each in _LABEL.findall(text) if not usual.fullmatch(each))


def marks(text: str, *, plain: bool = True, unless_in: str = "") -> list[int]:
    """Return the numbers of the passages that a text cites, in order and without duplicates.

    Args:
        text: The text.
        plain: Whether [1] counts as a mark if there are no others. It should not if the prompt
            asked for no marks, since it may then be ordinary text, as in "Press [1]".
        unless_in: Labels such as [Doc 2] that also occur in this text are ordinary text.
    """
    return _numbers(_runs(text, plain=plain, labelled=_LABEL.findall(unless_in)))


def unread_marks(text: str) -> list[int]:
    """Return the numbers in brackets, as in "limit[1]", that `marks` does not read."""
    shown = _shown(text)
    return [int(each[1:-1]) for each in re.findall(r"\[\d{1,3}\]", _pattern(shown).sub(" ", shown))]


def named_passages(text: str, last: int, *, unless_in: str) -> list[str]:
    """Return the numbers from p1 to p`last` that a text has outside of marks and code.

    Numbers that also occur in `unless_in` are ordinary words.
    """
    shown = _shown(text)
    known = {*re.findall(r"\bp\d{1,4}\b", unless_in.lower())}
    named = dict.fromkeys(_NAMED.findall(_pattern(shown).sub(" ", shown)))
    return [each for each in named if int(each[1:]) <= last and each not in known]


def without_marks(text: str, last: int = 999, *, plain: bool = True, unless_in: str = "") -> str:
    """Return a text without the marks that `marks` finds and the spaces before them.

    Args:
        text: The text.
        last: The number of the last passage. [Doc 9] is ordinary text if there are fewer passages.
        plain: As for `marks`.
        unless_in: As for `marks`.
    """
    found = (each[0] for each in _LABEL.finditer(text))
    names = filter(_IS_NAME.match, found)
    higher = (each for each in names if min(_cited(each), default=0) > last)
    labelled = chain(_LABEL.findall(unless_in), higher)
    return _rewritten(text, _runs(text, plain=plain, labelled=labelled), lambda _: "")


def with_prompt_marks(text: str, last: int = 999, *, unless_in: str = "") -> str:
    """Return a text with all its marks in the form that prompts ask for, such as [p3][p5].

    Args:
        text: The text.
        last: The number of the last passage. If all marks are plain numbers, one that names no
            passage, such as [9], is ordinary text.
        unless_in: Labels such as [2] or [^2] that also occur in this text are left alone.
    """
    labelled = [each for each in _LABEL.findall(unless_in) if not _ID.match(each)]
    runs = _of_passages(_runs(text, plain=True, labelled=labelled), range(1, last + 1))
    return _rewritten(text, runs, lambda cited: "".join(f"[p{number}]" for number in cited))


def cited_sentences(
    text: str, numbers: Mapping[int, int], *, unless_in: str = ""
) -> list[tuple[str, list[int]]]:
    """Split a text into sentences, each with the numbers that it cites.

    A mark directly after a sentence, or on the line after a formula, belongs to it. A code block or
    displayed formula belongs to the sentence that contains or precedes it, and a heading to the
    sentence below it.

    Args:
        text: The text. Joining the sentences yields this text with its marks in the form [1][2].
        numbers: The new number of each passage. Marks of other passages are dropped.
        unless_in: Labels such as [Doc 2] that also occur in this text are left alone.
    """

    def places(cited: Iterable[int]) -> list[int]:
        return list(dict.fromkeys(numbers[number] for number in cited if number in numbers))

    def written(cited: Iterable[int]) -> str:
        return "".join(f"[{place}]" for place in places(cited))

    shown = _shown(text, _LABEL.findall(unless_in))
    ends = _sentence_ends(shown)
    within: list[list[re.Match[str]]] = [[] for _ in ends]
    for run in _of_passages(_pattern(shown).finditer(shown), numbers):
        within[bisect_right(ends, run.start("run"))].append(run)
    return [
        (_rewritten(text, runs, written, start, stop), places(_numbers(runs)))
        for (start, stop), runs in zip(pairwise([0, *ends]), within, strict=True)
    ]


def _shown(text: str, labelled: Iterable[str] = ()) -> str:
    """Return a text of the same length without lookalikes of marks and full stops.

    Placeholder letters replace code, LaTeX, links, URLs, labels that the text defines, and the
    labels in `labelled`.
    """
    letters = list(text)
    for start, stop in code(text):
        letters[start:stop] = _other(text[start:stop])
    prose = "".join(letters)
    shown = _LITERAL.sub(lambda literal: _other(literal[0]), prose)
    defined = {*_DEFINED.findall(prose), *labelled}
    return _LABEL.sub(lambda label: _other(label[0]) if label[0] in defined else label[0], shown)


def _other(text: str) -> str:
    """Return placeholder letters of the same length for code, a formula, a link or a label."""
    is_block = "\n" in text or text.startswith(("$$", "\\[", "\\begin"))
    return (_BLOCK if is_block else "0") * len(text)


def _runs(text: str, *, plain: bool, labelled: Iterable[str]) -> Iterator[re.Match[str]]:
    """Yield the runs of marks in a text."""
    if _BRACKET.search(text):
        shown = _shown(text, labelled)
        yield from _pattern(shown, plain=plain).finditer(shown)


def _pattern(shown: str, *, plain: bool = True) -> re.Pattern[str]:
    """Return the pattern of the marks that count in a text."""
    if not plain or _RUN.search(shown):
        return _RUN
    has_lists = _PLAIN_RUN.search(shown) and not _DATA.search(shown)
    return _PLAIN_LISTS_RUN if has_lists else _PLAIN_RUN


def _of_passages(runs: Iterable[re.Match[str]], numbers: Container[int]) -> Iterator[re.Match[str]]:
    """Yield the runs of marks, except plain ones that name no passage, as in "Press [9]"."""
    for run in runs:
        if run.re is _RUN or any(number in numbers for number in _numbers([run])):
            yield run


def _sentence_ends(shown: str) -> list[int]:
    """Return the offsets at which sentences end, including any marks that follow them."""
    prose = _pattern(shown).sub(lambda run: (run["end"] or "")[:1].rjust(len(run[0])), shown)
    prose = _STOPPED.sub(lambda stop: stop[1].rjust(len(stop[0])), prose)
    ends: list[int] = []
    end, is_complete = 0, False
    for piece in pieces(prose):
        words = piece.strip()
        if words.strip("|"):
            if is_complete:
                ends.append(end)
            is_complete = not HEADING.fullmatch(words)
        end += len(piece)
    return [*ends, end] if shown else []


def _rewritten(
    text: str,
    runs: Iterable[re.Match[str]],
    written: Callable[[list[int]], str],
    start: int = 0,
    stop: int | None = None,
) -> str:
    """Return a span of a text with its marks rewritten; marks rewritten as "" are dropped."""
    parts: list[str] = []
    for run in runs:
        new = ((between, written(cited)) for between, cited in _each(run))
        new_marks = "".join(between + mark for between, mark in new if mark)
        begin = run.start("blank")
        parts.append(text[start:begin])
        start = run.end()
        if new_marks:
            parts += [run["blank"], new_marks[new_marks.index("[") :]]
        elif not text[begin - 1 : begin].strip():  # at the start of a line
            start += text.startswith(" ", start)
    return "".join([*parts, text[start:stop]])


def _numbers(runs: Iterable[re.Match[str]]) -> list[int]:
    return list(
        dict.fromkeys(number for run in runs for _, cited in _each(run) for number in cited)
    )


def _each(run: re.Match[str]) -> Iterator[tuple[str, list[int]]]:
    """Yield the numbers that each mark in a run cites, with the text before the mark."""
    for between, mark in _EACH.findall(run["run"]):
        yield between, _cited(mark)


def _cited(mark: str) -> list[int]:
    """Return the numbers that a mark cites, without duplicates."""
    spans = _NUMBER.findall(re.sub(_NOTE, "", mark.partition("\u2020")[0], flags=re.IGNORECASE))
    cited = (number for a, b in spans for number in range(int(a) or 1, int(b or a) + 1))
    return list(dict.fromkeys(cited))
