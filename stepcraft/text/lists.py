"""Read lists with any kind of bullets or numbers, and write them in one style."""

import json
import re
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from stepcraft.text import markdown
from stepcraft.text.clean import SPACELESS_STOPS, STOPS, unfenced

_DOTS = "\u2022\u2023\u2043\u2219\u00b7\u30fb\uff65\u25cf\u25e6\u25aa\u25ab\u25b8\u25ba"
_CIRCLED = "\u2460-\u249b\u24eb-\u24fe\u2776-\u2793\u3220-\u3229\u3280-\u3289"
"""Numbers from 1 as single characters: in a circle, in parentheses or with a full stop."""
_HAN = "[\u4e00\u4e8c\u4e09\u56db\u4e94\u516d\u4e03\u516b\u4e5d\u5341]{1,3}"
_TITLE = r"(?:\#{1,6}\s++)?(?:\*\*)?"
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_COUNTS = f"(?:{'|'.join(_NUMBERS)})"
_COLON = (
    r"\s?(?:\uff1a|(?:\.-|[:.)\u2013\u2014\uff0e\uff09\u3001\uff0c])(?![\d\u00aa\u00ba])"
    r"|-(?![a-zA-Z\u00aa-\u04ff\d]))"
)
_WORDS = r"""[^\d\n:.,;!?|`*_=<>/\\"'(){}$%+~^&@\u2013\u2014\uff08\uff0c\uff1a\u3001-]"""
"""A character allowed in the words before a label's number."""
_BULLET = re.compile(
    rf"""
    (?:[-*+\u2013\u2014](?=\s)(?![-*_ \t]*+$)|[{_DOTS}])(?:\s\[[ xX]\](?=\s|$))?
    |{_TITLE}(?P<bracket>[(\uff08])?(?P<number>\d{{1,3}}|[{_CIRCLED}])(?:
        (?:(?(bracket)[)\uff09]|\ufe0f?\u20e3)|(?<=[{_CIRCLED}]))(?=\s|$|\*\*)
        |(?(bracket)(?!))(?:\*\*)?(?:
            \\?[.)](?=\s|$|\*\*|(?![\da-zA-Z_\u00aa\u00ba])\w)|[\uff0e\uff09\u3001](?!\d)
        )
    )
    """,
    re.VERBOSE,
)
"""A bullet, or an unambiguous number: "1. Install" has one, "3.5 GB" does not."""
_STEP = re.compile(
    rf"{_TITLE}(?:step\s(?=\d|{_COUNTS})|\u7b2c(?=\w{{1,3}}\u6b65))"
    rf"(?P<number>\d{{1,3}}|{_HAN}|{_COUNTS}\b)"
    rf"(?:\s?(?:of|/)\s?\d{{1,3}}|[-\u2013]\d{{1,3}}|\u6b65)?(?:{_COLON}|\*\*(?:{_COLON})?|$)",
    re.IGNORECASE | re.VERBOSE,
)
"""An unambiguous label such as "Step 1:"."""
_COUNTED = re.compile(
    rf"""
    (?P<title>\#{{1,6}}\s++)?(?:\*\*)?[(\uff08\#]?{_WORDS}{{0,24}}?
    (?P<number>(?:(?<![a-zA-Z])|(?<=step)|(?<=Step))\d{{1,3}}(?!\d)|{_HAN}|[{_CIRCLED}]
        |(?<![^\s(*\uff08])[a-zA-Z](?=[.)\uff09]))
    (?:\ufe0f?\u20e3|(?<=[{_CIRCLED}])
        |[^\W\d_]{{0,6}}(?:\s[^\W\d_]{{1,4}}\s\d{{1,3}})?
            (?:{_COLON}|\*\*(?:{_COLON})?|(?(title)$|(?!)))
    )
    """,
    re.VERBOSE,
)
"""Numbers recognised only as part of a sequence: "1 - ", "a) ", or "Schritt 1 von 3: "."""
_HEADING = re.compile("#{1,6}(?= )")
_MARGIN = re.compile(r">|#{1,6}\s")
"""The start of a quotation or of a heading."""
_LEADS = (
    re.compile(r"(?=\*\*[^*\n]+\*\*)"),  # stays in the text
    re.compile(r"[IVX]{1,5}[.)](?=\s)"),
    re.compile(r"[A-Z][.)](?=\s)"),
    re.compile(r"\d{1,2}\.\d{1,2}[.)]?(?=\s)"),
)
"""Beginnings of lines that may be steps with a list of items below them."""
STEP_TITLES = (
    r"steps|instructions|procedure|schritte|anleitung|zubereitung|pasos|instrucciones"
    r"|\u00e9tapes|passaggi|istruzioni|(?:\u64cd\u4f5c)?\u6b65\u9aa4|\u624b\u9806"
)
"""The titles of steps in several languages, as alternatives in a regex."""
_STEPS_TITLE = re.compile(
    rf"\W*(?:the\s)?(?:step|instruction|method|directions?|{STEP_TITLES})\W*", re.IGNORECASE
)
"""The title of a list of steps, which sets it apart from a list of what is needed."""
_NO_TEXT = re.compile(
    rf"{_STEPS_TITLE.pattern}|\W*\d{{0,3}}\W*|[`~]{{3,}}\w*"
    rf"|\#{{1,6}}\s+(?:workflow|process|{STEP_TITLES})\b.*",
    re.IGNORECASE,
)
"""A title of steps, the start of an empty item, a rule or a fence."""
_NOTES = re.compile(
    r"#{1,6}\W*(?:(?:note|tip)(?!\s(?:the|that|down|out|over|your|an?|any|all|which|how|what)\b)s?"
    r"|hints?|remarks?|variations?|troubleshooting|references|sources"
    r"|further reading|see also|hinweise?|tipps?|quellen|notas|consejos|fuentes|astuces"
    r"|remarques)\b",
    re.IGNORECASE,
)
"""The heading of a section that is not part of the steps, unlike "Note the project ID"."""
_REMARKS = {
    f"1{word}"
    for word in (
        "example", "note", "figure", "table", "option", "tip", "beispiel", "hinweis", "tipp",
        "abbildung", "exemple", "figura", "ejemplo", "nota", "consejo", "esempio", "exemplo",
    )
}  # fmt: skip
"""The marks of remarks that are counted, such as "Example 1:"."""
_WHEN = {
    f"1{unit}"
    for unit in (
        "hour", "day", "week", "month", "year", "stunde", "tag", "woche", "monat", "jahr", "heure",
        "jour", "semaine", "mois", "hora", "d\u00eda", "dia", "semana", "mes", "m\u00eas", "giorno",
    )
}  # fmt: skip
"""The marks of labels that say when something is done, such as "Day 1:"."""
_QUOTED = re.compile('^["\u201c]([^"\u201c\u201d]*)["\u201d]$')
_RULE = "-*_=`~\u2013\u2014 \t"
"""The characters of rules and of fences without an info string."""
_COLONS = (":", "\uff1a")
_HEAD = re.compile(r".*[:\uff1a](?:\*\*|__)?")
"""An item that ends with a colon."""
_TOPIC = re.compile(r"(\*\*|__).+\1|\S+(?:[ \t]\S+)?(?<![?\u061f\uff1f])")
"""A bold item, or one of up to two words, not a question."""
_REASON = re.compile(
    rf"^\W*(?:because|to|why|reason|rationale|purpose|needed)\b"
    rf"|[{STOPS}{SPACELESS_STOPS}]$(?<![?\u061f\uff1f])",
    re.IGNORECASE,
)
"""An item that explains the one above it: it is a sentence, or begins with, say, "because"."""
_NAMES = re.compile(rf"{_STEPS_TITLE.pattern}|(?:queries|questions|searches)", re.IGNORECASE)
"""The keys of a list in JSON, if the object has others."""
_LIKE_NAMES = re.compile(
    r"(?:.*[\W_])?(?:steps|actions|tasks|plan|instructions|directions|quer(?:y|ies)|questions"
    r"|search(?:es)?)|\u6b65\u9aa4|\u624b\u9806|etapes",
    re.IGNORECASE,
)
"""Similar keys, such as "search_queries"."""
_TITLES = {"title", "name", "step"}
"""The keys of a step's title in JSON."""
_MARKUP = ("<", "|", "{")
"""How lines of XML, tables and JSON begin."""


class _Line(NamedTuple):
    """A line that is not blank, or any line of a code block."""

    raw: str
    """The line without trailing whitespace."""
    text: str
    """The line without its indentation, bullet, number and label."""
    is_code: bool = False
    level: int = 0
    """The level of an unindented heading, or 0 for other lines."""
    after_blank: bool = False
    mark: str = ""
    """How the line begins: "-" for bullets, "1" for numbers, "1step" for "Step 1:"."""
    number: int = 0
    is_paragraph: bool = False
    """Whether it begins a paragraph or a table after a blank line."""

    @property
    def indent(self) -> int:
        """The number of columns before the first character."""
        return len(self.raw[: -len(self.raw.lstrip())].expandtabs(4))

    def without(self, *patterns: re.Pattern[str]) -> "_Line":
        """Return the line without the match of the first pattern that matches it."""
        begin = next(filter(None, (pattern.match(self.text) for pattern in patterns)), None)
        if not begin:
            return self
        text = self.text[begin.end() :].lstrip()
        if begin[0].count("**") == 1:  # the bold text ends after the match
            text = f"**{text}".removeprefix("****").lstrip()
        mark, number = (self.mark, self.number) if self.mark else _mark(begin)
        return self._replace(text=text, mark=mark, number=number)


def read_steps(text: str) -> list[str]:
    """Return the steps in a list without bullets, numbers and labels such as "Step 1:".

    Text below an item stays with it. Headings and text before or after the list are dropped. In a
    text without items, every line is a step, but a single line, a table and XML are not lists.
    """
    if steps := _json_texts(text):
        plain = [*map(without_number, steps)]
        has_numbers = all(new and new != step for new, step in zip(plain, steps, strict=True))
        return plain if has_numbers else steps
    lines = [line.without(_STEP) if line.mark else line for line in _lines(text)]
    lines = _led(_without_notes(lines))
    return _items(lines) or _without_items(lines)


def outside_steps(text: str, steps: Sequence[str]) -> list[str]:
    """Return the lines of a text that are in none of its steps, without titles such as "Steps:"."""

    def plain(line: str) -> str:
        return unicodedata.normalize("NFC", line.replace("*", "")).strip()

    inside = {plain(line) for step in steps for line in step.splitlines()}
    begins = (_BULLET, _STEP, _COUNTED, *_LEADS[1:], _MARGIN)

    def is_inside(line: str) -> bool:  # after up to four bullets, numbers and labels
        for _ in range(4):
            begin = next(filter(None, (each.match(line) for each in begins)), None)
            if plain(line) in inside or not (line and begin):
                break
            line = line[begin.end() :].strip()
        return not plain(line) or plain(line) in inside

    return [
        line
        for line in map(str.strip, text.splitlines())
        if not (_NO_TEXT.fullmatch(line) or is_inside(line) or is_inside(plain(line)))
    ]


def read_bullets(text: str) -> list[str]:
    """Return the items of a list in order, or [] for a text without items.

    "Step 2:" at the start of an item is kept because it says what the item is about.
    """
    return _items(
        [
            line._replace(text=line.raw.lstrip()) if line.mark[2:].isalpha() else line
            for line in _lines(text)
        ]
    )


def read_items(text: str) -> list[str]:
    """Return the distinct outer items of a list, without bullets, quotes and text below them.

    A topic with items below it is replaced by those, unless they explain it.
    """
    items = _json_texts(text)
    if not items:
        lines = [line for line in _lines(text) if line.mark]
        margin = min((line.indent for line in lines), default=0) + 1
        outer = [place for place, line in enumerate(lines) if line.indent <= margin]
        for group in _groups(lines, outer):
            item, *below = (line.text for line in group)
            is_head = _HEAD.fullmatch(item) or (len(below) > 1 and _TOPIC.fullmatch(item))
            is_topic = below and is_head and not any(map(_REASON.search, below))
            items += below if is_topic else [item]
    return _distinct(items)


def read_lines(text: str) -> list[str]:
    """Return the distinct lines of a text, without bullets, quotes, headings and code."""
    lines = _lines(text)
    return _distinct([line.text for line in lines if line.mark or not (line.is_code or line.level)])


def _distinct(items: Sequence[str]) -> list[str]:
    contents: dict[str, str] = {}
    for item in items:
        content = _QUOTED.sub(r"\1", item)
        if content and not content.endswith(_COLONS):
            contents.setdefault(content.casefold(), content)
    return list(contents.values())


def item_start(line: str) -> int:
    """Return the length of the indentation and the bullet or number at the start of a line.

    It is 0 for a line that does not begin an item. A number recognised only as part of a sequence,
    as in "1 - Install", does not count.
    """
    text = line.lstrip()
    begin = _BULLET.match(text) or _STEP.match(text)
    return len(line) - len(text) + begin.end() if begin else 0


def without_number(step: str, *, bullets: bool = False) -> str:
    """Return a step without its leading number or label, and without a bullet if `bullets` is set.

    A number recognised only as part of a sequence, as in "1 - Install", is kept.
    """
    first, _, below = step.strip("\n").partition("\n")
    line = _Line(first, first.lstrip()).without(_BULLET, _STEP)
    return _joined(line, below) if line.number or (bullets and line.mark) else step


def numbered(steps: Sequence[str], *, code_at_margin: bool = False) -> str:
    """Return the steps as "1. …", with further lines indented. `read_steps` is the inverse.

    With `code_at_margin`, lines of code are not indented, so that a model that copies them
    preserves their indentation.
    """
    written: list[str] = []
    for number, step in enumerate(steps, 1):
        bullet = f"{number}. "
        blank = " " * len(bullet)
        rows = [
            line if line == "\n" or (code and code_at_margin) else blank + line
            for line, code in markdown.lines(step.rstrip("\n"))
        ]
        written.append(bullet + "".join(rows).removeprefix(blank))
    return "\n".join(written)


def _json_texts(text: str) -> list[str]:
    """Return the strings in a JSON array, or in an object with numeric keys, or else [].

    The array may be a value in an object: its only one, or the one named "steps" or "queries". Its
    items may be objects with a single string, or with a title and a string, but not with lists or
    objects that say more.
    """
    text = unfenced(text).strip()
    if not text.startswith(("[", "{")):
        return []
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return []
    if isinstance(values, dict):
        lists = {name: each for name, each in values.items() if each and isinstance(each, list)}
        named = [each for name, each in lists.items() if len(lists) == 1 or _NAMES.fullmatch(name)]
        named += [each for name, each in lists.items() if _LIKE_NAMES.fullmatch(name)]
        values = values.values() if all(map(str.isdecimal, values)) else next(iter(named), [])
    items = [each if isinstance(each, dict) else {"": each} for each in values]
    texts = [{key: each for key, each in item.items() if isinstance(each, str)} for item in items]
    inner = [each for item in items for each in item.values() if isinstance(each, list | dict)]
    if any(not isinstance(each, int) for values in inner for each in values):
        return []
    if all(len(each) == 1 or (len(each) == 2 and _TITLES & {*each}) for each in texts):
        return [": ".join(each.values()) for each in texts]
    return []


def _without_notes(lines: list[_Line]) -> list[_Line]:
    """Return the lines up to the first heading of notes, tips or sources that ends the steps.

    Such a heading is part of a step if a later item continues the numbers of the items above it.
    """
    last: dict[tuple[object, ...], int] = {}
    following: dict[int, int] = {}
    for at, line in enumerate(lines):
        if line.mark:
            before = last.get(_series(line), at)
            if lines[before].number + 1 == line.number:
                following[before] = at
            last[_series(line)] = at
    end = -1
    for at, line in enumerate(lines):
        if line.mark:
            end = max(end, following.get(at, at))
        elif 0 <= end < at and not line.is_code and _NOTES.match(line.raw):
            return lines[:at]
    return lines


def _series(line: _Line) -> tuple[object, ...]:
    """Return the properties that the items of a list share."""
    return line.mark, line.level, line.indent // 2


def _led(lines: list[_Line]) -> list[_Line]:
    """Return the lines, turning those that introduce a list into items with that list below them.

    Such lines begin alike, for example "**Mix**" and "**Bake**" or "I. Mix" and "II. Bake". They
    come before any items, and those items are bullets, or numbers that restart below each line.
    """
    first = next((at for at, line in enumerate(lines) if line.mark), 0)
    for lead in _LEADS:
        places = [
            at
            for at, line in enumerate(lines)
            if not (line.mark or line.is_code or line.level or line.indent)
            and lead.match(line.text)
        ]
        if len(places) < 2 or places[0] >= first:
            continue
        groups = _groups(lines, places)
        for at, (title, *_) in enumerate(groups):
            if _STEPS_TITLE.fullmatch(title.text):
                return _going_on(groups[at:])[1:]
        numbers = [[line.number for line in group if line.mark] for group in groups]
        if {each[0] for each in numbers if each} in ({0}, {1}):
            led = {*places}
            return [
                line._replace(mark="lead", text=lead.sub("", line.text, count=1).lstrip())
                if at in led
                else line._replace(mark="")
                for at, line in enumerate(lines)
            ]
    return lines


def _going_on(groups: list[list[_Line]]) -> list[_Line]:
    """Return the lines of the first group, and of all up to the last that continues its numbers."""
    last: dict[tuple[object, ...], int] = {}
    lines: list[_Line] = []
    end = 0
    for group in groups:
        first = next((line for line in group if line.number), None)
        lines += group
        if not end or (first and last.get(_series(first)) == first.number - 1):
            end = len(lines)
            last.update((_series(line), line.number) for line in group if line.number)
    return lines[:end]


def _groups(lines: list[_Line], starts: list[int]) -> list[list[_Line]]:
    """Return the lines from each start to the next."""
    return [lines[start:stop] for start, stop in pairwise([*starts, len(lines)])]


def _mark(begin: re.Match[str]) -> tuple[str, int]:
    """Return the form of an item's mark, which its whole list shares, and the item's number.

    The form covers the kind of number (digits, Chinese numerals below 20, letters, circled numbers)
    and the words or signs around it, but treats "1." and "1)" as equal.
    """
    digits = begin["number"]
    if not digits:
        return "-", 0
    rest = begin[0].replace(digits, "", 1)
    words = re.sub(r"[\W\d]", "", rest).lower() or rest.strip("#* .)\\")
    if digits.lower() in _NUMBERS:
        digits = str(1 + _NUMBERS.index(digits.lower()))
    if digits.isdecimal():
        return f"1{words}", int(digits)
    number = sum(int(unicodedata.numeric(digit, ord(digit) & 31)) for digit in digits)
    return unicodedata.category(digits[0]) + words, number


def _lines(text: str) -> list[_Line]:
    """Return the lines of a text without blank lines, rules and any fence around the whole text."""
    lines: list[_Line] = []
    before = ""
    after_blank = True
    text = unfenced(text)
    if all(row.startswith(">") for row in text.splitlines() if row.strip()):
        text = re.sub(r"^> ?", "", text, flags=re.MULTILINE)
    for row, is_code in markdown.lines(text, unclosed=False):
        raw = row.rstrip()
        heading = _HEADING.match(raw)
        is_text = raw.strip(_RULE)
        if is_code:
            lines.append(_Line(raw, raw, is_code))
        elif is_text:
            line = _Line(raw, raw.lstrip(), is_code, heading.end() if heading else 0, after_blank)
            line = line.without(_BULLET, _STEP)
            lines.append(line._replace(is_paragraph=not (before.strip() or line.mark)))
        after_blank = not is_text
        before = row
    return _counted_on(lines)


def _counted_on(lines: list[_Line]) -> list[_Line]:
    """Return the lines, also stripped of numbers that count up from 1 at the same indentation."""
    candidates = [line if line.mark or line.is_code else _without_count(line) for line in lines]
    counts = Counter[tuple[str, int]]()
    for line in candidates:
        series = line.mark, line.indent // 2
        if line.number == counts[series] + 1:
            counts[series] = line.number
    return [
        new if counts[new.mark, new.indent // 2] >= max(new.number, 2) else line
        for line, new in zip(lines, candidates, strict=True)
    ]


def _without_count(line: _Line) -> _Line:
    """Return a line without its number or label, unless it says when, as "Day 1:" does."""
    new = line.without(_COUNTED)
    return new._replace(text=line.text.lstrip("# ")) if new.mark in _WHEN else new


def _items(lines: list[_Line]) -> list[str]:
    """Return the unindented items, each with the lines below it.

    A heading between two consecutively numbered items belongs to the first if it has text below it
    and no heading of its level precedes the items.
    """
    margin = min((line.indent for line in lines if line.mark), default=0) + 1  # " 9." above "10."
    lines = [
        line if line.indent <= margin else line._replace(mark="", after_blank=False)
        for line in lines
    ]
    mark = _outer_mark(lines)
    starts = [at for at, line in enumerate(lines) if line.mark and line.mark == mark]
    before, *items = _groups(lines, [0, *starts])
    above = next((line.level for line in reversed(before) if line.level), 0)
    # If no other item has unindented paragraphs, one after the last item is a remark.
    has_remark = len(items) > 1 and not any(map(_is_apart, chain(*items[:-1])))
    steps: list[str] = []
    for (start, *below), (after, *_) in pairwise([*items, [_Line("", "")]]):
        counts_on = after.number == start.number + 1
        level = start.level or 6  # a heading of another section ends the list
        if counts_on:
            level = start.level - 1 if start.level else above
        body: list[_Line] = []
        for line in below:
            if 0 < line.level <= level or (has_remark and _is_apart(line)):
                break
            body.append(line)
        while counts_on and body and body[-1].level:
            body.pop()  # a heading right above an item
        rows = ("\n" * line.is_paragraph + line.raw for line in body)
        steps.append(_joined(start, "\n".join(rows)))
    return list(filter(None, steps))


def _is_apart(line: _Line) -> bool:
    """Return whether a line begins an unindented paragraph."""
    return line.after_blank and not line.mark and not line.level


def _outer_mark(lines: list[_Line]) -> str:
    """Return the mark of outer items, which continue after inner ones, or else the first mark.

    "Part 2:" continues after a "1. 2." list below "Part 1:". If "3." continues below "Part 2:", the
    numbers are the items. Remarks such as "Example 1:" below other items are not the items, and
    neither is a list of what is needed above "Steps:" and "Step 1:".
    """
    items = [line for line in lines if line.mark]
    if items and items[0].mark not in _REMARKS:
        items = [line for line in items if line.mark not in _REMARKS]
    numbers = [line for line in items if line.number] or items
    seen: set[tuple[str, int]] = set()
    outer: set[str] = set()
    for before, line in pairwise(numbers):
        seen.add((before.mark, before.number))
        if before.mark != line.mark and (line.mark, line.number - 1) in seen:
            outer.add(line.mark)
    titled = [
        line.mark
        for title, line in pairwise(lines)
        if line.mark == "1step"
        and title.after_blank
        and not title.mark
        and _STEPS_TITLE.fullmatch(title.text)
    ]
    return min(outer or [*titled, *(line.mark for line in numbers)][:1], default="")


def _joined(start: _Line, below: str) -> str:
    """Return an item as one string, with the lines below its first dedented.

    If code is at the margin, the other lines are dedented apart from it.
    """
    _, *rows = markdown.lines(f"{start.text}\n{below}")
    if any(is_code and not row[:1].isspace() for row, is_code in rows):
        prose = textwrap.dedent("".join("\n" if is_code else row for row, is_code in rows))
        lines = zip(prose.split("\n"), rows, strict=False)
        below = "\n".join(row.rstrip("\n") if is_code else line for line, (row, is_code) in lines)
    return f"{start.text}\n{textwrap.dedent(below)}".strip("\n")


def _without_items(lines: list[_Line]) -> list[str]:
    """Return each line as a step, joining code blocks to the line above.

    A single line, XML, a table and JSON are not steps.
    """
    if any(line.text.startswith(_MARKUP) for line in lines if not line.is_code):
        return []
    steps: list[str] = []
    for line in lines:
        if line.is_code and steps:
            steps[-1] += f"\n{line.raw}"
        elif line.text and not line.level:
            steps.append(line.raw.strip())
    if steps and steps[0].endswith(_COLONS):
        del steps[0]  # it announces the list
    return steps if len(steps) > 1 else []
