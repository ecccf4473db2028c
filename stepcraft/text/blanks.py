"""Replace words in a text while keeping its whitespace and indentation."""

import re
from difflib import SequenceMatcher

_WORD = re.compile(r"(\s*+)(\S++)")


def kept_blanks(text: str, old: str, new: str) -> str | None:
    """Return the new words with the whitespace of a text that matches `old` word for word.

    Words shared by the old and new text keep the whitespace that the text has around them, so that
    tabs, indentation and line breaks survive.

    Args:
        text: The text.
        old: Its words as somebody copied them.
        new: The words that replace them.

    Returns:
        The new text, or None if a new line needs an indentation that cannot be inferred.
    """
    before, copied, written = ([*_WORD.findall(each)] for each in (text, old, new))
    if len(before) != len(copied):
        return new
    indent = _indent(before, copied)
    same: dict[int, int] = {}
    places: dict[int, int] = {}
    matcher = SequenceMatcher(None, [w for _, w in copied], [w for _, w in written], autojunk=False)
    for kind, first, last, start, stop in matcher.get_opcodes():
        pairs = dict(zip(range(start, stop), range(first, last), strict=False))
        places |= pairs
        same |= pairs if kind == "equal" else {}
    pieces: list[str] = []
    for number, (blank, word) in enumerate(written):
        place = places.get(number)
        follows = place is not None and places.get(number - 1) == place - 1
        if place is not None and follows and _breaks(copied[place][0]) == _breaks(blank):
            pieces.append(before[place][0])
        elif number and "\n" in blank:
            if indent is None:
                return None
            lines, _, rest = blank.rpartition("\n")
            pieces.append(f"{lines}\n{indent}{rest}")
        elif number:
            pieces.append(blank)
        pieces.append(before[same[number]][1] if number in same else word)
    return "".join(pieces)


def _indent(before: list[tuple[str, str]], copied: list[tuple[str, str]]) -> str | None:
    """Return the prefix that each line of a text has and its copy lacks, or None if it varies."""
    indents: set[str | None] = set()
    for (blank, _), (other, _) in zip(before, copied, strict=True):
        if "\n" in blank and "\n" in other:
            mine, theirs = blank.rpartition("\n")[2], other.rpartition("\n")[2]
            indents.add(mine.removesuffix(theirs) if mine.endswith(theirs) else None)
        elif "\n" in blank:
            indents.add(blank.rpartition("\n")[2])
    return indents.pop() if len(indents) == 1 else None if indents else ""


def _breaks(blank: str) -> int:
    return min(blank.count("\n"), 2)
