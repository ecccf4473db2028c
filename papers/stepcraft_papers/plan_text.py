"""Read plans for the text world from text written by a model."""

import re
from collections.abc import Iterator

from stepcraft.text.clean import clean

PLAN_FORMAT = (
    "Write the plan as a numbered list with one action a line: mine, craft or smelt, then how many "
    "of the item the inventory is to hold after it, then the item's name in Minecraft, and nothing "
    "else. For example:\n1. mine 3 oak_log\n2. craft 12 oak_planks"
)
"""Tells a model to write its plan in a form that `read_steps` can read."""

_TYPES = {
    **dict.fromkeys(("mine", "collect", "gather", "chop", "dig", "harvest", "kill"), "mine"),
    **dict.fromkeys(("craft", "make", "build"), "craft"),
    **dict.fromkeys(("smelt", "cook", "bake"), "smelt"),
}
_NUMBER_WORDS = ("a", "one", "two", "three", "four", "five", "six", "seven", "eight")
_NUMBERS: dict[str, int] = {**{word: n or 1 for n, word in enumerate(_NUMBER_WORDS)}, "an": 1}
_BEFORE_ITEM = {"the", "block", "blocks", "piece", "pieces", "unit", "units", "of"}
_AFTER_ITEM = {
    *("with", "using", "from", "in", "at", "to", "for"),
    *("by", "on", "near", "until", "so", "if", "then"),
}
_INNERMOST = re.compile(r"[\[{][^\[\]{}]*[\]}]")
"""A step in JSON, which can span several lines."""
_JSON_KEY = re.compile(r'"\w{1,20}"\s*:')
_MOST_LETTERS = 200
"""The maximum number of characters read after a verb."""
_MOST_DIGITS = 6
_VERB = re.compile(rf"(?<![a-z])(?:{'|'.join(_TYPES)})(?![a-z])")
_TOKEN = re.compile(r"[a-z]+|-?\d(?:[\w.,]*\w)?|[^\w\s]")


def read_steps(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield the steps of a plan, each as its type, item name and count.

    A step begins at its verb and ends with its line, at the next verb, or once its item and count
    are complete: "1. mine 3 log", "Craft a wooden pickaxe at the table", "(mine, log, 3)", JSON
    lists [type, item, count] and objects with these fields. Without a number, the count is 1. A
    step with two numbers, or with a number that is not a count, is skipped.
    """
    text = _INNERMOST.sub(lambda json: json[0].replace("\n", " "), clean(text))
    text = _JSON_KEY.sub(" ", text)
    for line in text.lower().replace("_", " ").splitlines():
        verbs = list(_VERB.finditer(line))
        ends = [verb.start() for verb in verbs[1:]] + [len(line)]
        for verb, end in zip(verbs, ends, strict=False):
            behind = line[verb.end() : min(end, verb.end() + _MOST_LETTERS)]
            if step := _step(_TOKEN.findall(behind)):
                yield _TYPES[verb[0]], *step


def _step(tokens: list[str]) -> tuple[str, int] | None:
    """Parse the item name and count from the tokens after a verb; return None without an item."""
    words: list[str] = []
    counts: list[int] = []
    for part in tokens:
        if words and (part in _AFTER_ITEM or (counts and not part[-1].isalnum())):
            break
        if (part.isdecimal() and len(part) <= _MOST_DIGITS) or (part in _NUMBERS and not words):
            counts.append(_NUMBERS.get(part) or int(part))
        elif part.isalpha():
            if part != "x" and (words or part not in _BEFORE_ITEM):
                words.append(part)
        elif part[-1].isalnum():  # a number that is no count
            return None
    if not words or len(counts) > 1:
        return None
    return "_".join(words).removesuffix("_and"), counts[0] if counts else 1
