"""Plans for the text world, read from what a model wrote."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepcraft.evals._minecraft import Step, items
from stepcraft.text.clean import clean

PLAN_FORMAT = (
    "Write the plan as a numbered list with one action a line: mine, craft or smelt, then how many of the item the "
    "inventory is to hold after it, then the item's name in Minecraft, and nothing else. For example:\n"
    "1. mine 3 oak_log\n2. craft 12 oak_planks"
)
"""What to tell a model, so that `read_plan` reads its answer."""

_TYPES = {
    **dict.fromkeys(("mine", "collect", "gather", "chop", "dig", "harvest", "kill"), "mine"),
    **dict.fromkeys(("craft", "make", "build"), "craft"),
    **dict.fromkeys(("smelt", "cook", "bake"), "smelt"),
}
_VERB = rf"(?:{'|'.join(_TYPES)})(?![a-z])"
_NUMBERS = {
    "a": 1,
    "an": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
}
_FILLERS = frozenset({"step", "first", "then", "next", "finally", "now", "and"})
_BEFORE_ITEM = frozenset({"x", "the", "block", "blocks", "piece", "pieces", "unit", "units", "of"})
_AFTER_ITEM = frozenset(
    {"with", "using", "from", "in", "at", "to", "for", "by", "on", "near", "until", "so", "if"}
)
_ENDS, _JOINS = frozenset(".;)]}!-\u2013\u2014\u2192>"), frozenset("(,:=")
_SPECIES = ("oak_", "white_")
_CALLED = {"wood": "oak_log", "workbench": "crafting_table", "cobble": "cobblestone"}
_START = re.compile(
    rf"[^a-z]*(?:step[^a-z]{{0,9}})?(?:(?:first|then|next|finally|now|and)[^a-z]{{1,9}})?({_VERB})(.*)",
    re.DOTALL,
)
_NEXT = re.compile(
    rf"(?:[;,.)\]]|(?<![a-z])(?:and|then)(?![a-z]))(?=\W{{0,4}}(?:and |then )?{_VERB})"
)
_LETTERS = re.compile(r"[a-z]+")
_TOKEN = re.compile(r"[a-z]+|(?<!\w)-\d+|\d+|[^\s\w]")
_ITEM_KEYS = ("item", "object", "name", "output")
_TYPE_KEYS = ("type", "action", "verb")
_COUNT_KEYS = ("count", "number", "quantity", "amount")
_MAX_DIGITS = 6
_MAX_DEPTH = 5
_MAX_FAILURES = 50
"""How often JSON is looked for in vain, because each time may read on to the end of the text."""


@dataclass(frozen=True)
class Plan:
    """The steps that a text gives, and what in it gives none."""

    steps: tuple[Step, ...]
    unread: tuple[str, ...] = ()
    """The lines, and the elements of JSON, that were not read as a step, shortened to 200 characters."""


def read_plan(text: str) -> Plan:
    """Read a plan from an answer; a text that is no plan has no steps.

    Steps are lines such as "1. mine 3 log", "craft 4 stick" or "(mine, log, 3)", several of them on a line, or JSON:
    lists [type, item, count], objects with these fields, texts. Without a number the count is 1. Names are read as
    people write them ("Oak Logs"); one that leaves the wood or the colour open is that of oak or white. A line of which
    a part cannot be read gives no step.
    """
    text = clean(text)
    steps: list[Step] = []
    unread: list[str] = []
    failures = at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at:end]
        start = at + len(line) - len(line.lstrip(" \t-*\u2022>,;`.)0123456789"))
        if text[start : start + 1] in {"[", "{"} and failures < _MAX_FAILURES:
            found, stop = _json(text, start)
            if any(isinstance(one, Step) for one in found):
                steps += (one for one in found if isinstance(one, Step))
                unread += (one for one in found if isinstance(one, str))
                at = stop
                continue
            failures += 1
        if (read := _line(line)) is not None:
            steps += read
        elif any(map(str.isalnum, line)) and not line.lstrip().startswith(("```", "~~~")):
            unread.append(_short(line.strip()))
        at = end + 1
    return Plan(tuple(steps), tuple(unread))


def _json(text: str, start: int) -> tuple[list[Step | str], int]:
    """Read the JSON that starts at a place; return its steps and what is none, and where it ends."""
    try:
        value, stop = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        return [], start
    return list(_elements(value, _MAX_DEPTH)), stop


def _elements(value: object, depth: int) -> Iterator[Step | str]:
    """Return the steps in a JSON value, and as text each element that is none."""
    if isinstance(value, dict):
        fields = [
            next((value[key] for key in keys if key in value), None)
            for keys in (_TYPE_KEYS, _ITEM_KEYS)
        ]
        if isinstance(fields[0], str) and isinstance(fields[1], str):
            count = next((value[key] for key in _COUNT_KEYS if key in value), 1)
            yield from _steps_or(f"{fields[0]} {count} {fields[1]}", json.dumps(value))
            return
        inner = list(value.values())
    elif isinstance(value, list):
        if (
            2 <= len(value) <= 3
            and isinstance(value[0], str)
            and value[0].strip().lower() in _TYPES
        ):
            yield from _steps_or(" ".join(map(str, value)), json.dumps(value))
            return
        if len(value) == 3 and isinstance(value[0], str) and isinstance(value[2], int):
            yield _short(json.dumps(value))
            return
        inner = value
    else:
        yield from _steps_or(str(value), str(value))
        return
    if not depth:
        yield _short(json.dumps(value))
        return
    for element in inner:
        yield from _elements(element, depth - 1)


def _steps_or(line: str, shown: str) -> Sequence[Step | str]:
    """Return the steps of a line; where there is none, how it is shown."""
    return _line(line) or [_short(shown)]


def _line(line: str) -> list[Step] | None:
    """Return the steps of a line; None where there is none, or a part of it cannot be read."""
    parts = _NEXT.split(line.lower().replace("_", " "))
    found = [_step(part) for part in parts if not _FILLERS.issuperset(_LETTERS.findall(part))]
    steps = [step for step in found if step is not None]
    return steps if steps and len(steps) == len(found) else None


def _step(text: str) -> Step | None:
    start = _START.match(text)
    if start is None:
        return None
    name, count = _named(_TOKEN.findall(start[2]))
    item = _item(name)
    return Step(_TYPES[start[1]], item, count) if item else None


def _named(tokens: list[str]) -> tuple[str, int]:
    """Return the name that stands in the words after a verb, and the count; "" where there are two of one."""
    words: list[str] = []
    count: int | None = None
    for place, part in enumerate(tokens):
        if part.isdecimal() or (part in _NUMBERS and not words):
            if count is not None or len(part) > _MAX_DIGITS:
                return "", 0
            count = _NUMBERS.get(part) or int(part)
        elif part[1:].isdecimal():
            return "", 0
        elif part.isalpha():
            if words and part in _AFTER_ITEM:
                break
            if part not in (_BEFORE_ITEM if not words else {"x"}):
                words.append(part)
        elif words and (part in _ENDS or (part in _JOINS and count is not None)):
            if part == "," and tokens[place + 1 : place + 2] and tokens[place + 1].isdecimal():
                return "", 0
            break
    return "_".join(words), 1 if count is None else count


def _item(name: str) -> str | None:
    """Return the item that a name means."""
    for form in (name, name.removesuffix("s"), name.removesuffix("es"), f"{name}s"):
        if form in items():
            return form
        if form in _CALLED:
            return _CALLED[form]
        for species in _SPECIES:
            if species + form in items():
                return species + form
    return None


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:199]}\u2026"
