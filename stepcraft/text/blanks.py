"""Replace words in a text while keeping its whitespace, indentation, quotes and dashes."""

import re
import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise

from stepcraft.text.lists import item_start

_LINE_BREAK = re.compile(r"\r\n?")
_SIGN = re.compile(r"\s+|\w+|\.+|-+|.")
_WORD = re.compile(r"\s+|\S+")
_PLAIN = str.maketrans(
    "\u2018\u2019\u201a\u201b\u2032`\u00b4\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb"
    "\u2010\u2011\u2012\u2013\u2014\u2015\u2212",
    "'" * 7 + '"' * 7 + "-" * 7,
    "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
    "\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\ufeff",
)
_LEAD = re.compile(r"([ \t>]*)((?:[-*+\u2022]|\d{1,3}[.)])[ \t]+)?")
_HEADING = re.compile(r"\n#{1,6}[ \t]")
_OPENS = (":", "{", "(", "[")


def plain(text: str) -> str:
    """Return a text in plain typography: ASCII quotes and dashes, no full-width forms."""
    return unicodedata.normalize("NFKC", text).translate(_PLAIN)


def line_break(text: str) -> str:
    """Return the line break that a text uses most."""
    if "\n" not in text:
        return "\r" if "\r" in text else "\n"
    return "\r\n" if 2 * text.count("\r\n") >= text.count("\n") else "\n"


def kept_blanks(
    text: str, old: str, new: str, line: str, newline: str, *, is_code: bool
) -> str | None:
    """Return the new words with the whitespace, quotes and dashes of a text that matches `old`.

    Whatever `old` and `new` share keeps its form from `text`, so that tabs, indentation, line
    breaks, curly quotes and dashes survive. New lines are indented like the text's.

    Args:
        text: The text to replace.
        old: A copy of this text, possibly inexact.
        new: The replacement.
        line: The beginning of the line, up to the text.
        newline: The line break for new lines.
        is_code: Whether the text is code, whose quotes and dashes are kept only if copied too.

    Returns:
        The new text, or None if a new line needs an indentation that cannot be inferred.
    """
    for pattern in (_SIGN, _WORD):
        before, copied, written = (pattern.findall(each) for each in (text, old, new))
        if [*map(_key, before)] == [*map(_key, copied)]:
            break
    else:
        return _indented(new, line).replace("\n", newline)
    indent = _indent(before, copied)
    is_copy = _LINE_BREAK.sub("\n", text) == _LINE_BREAK.sub("\n", old)
    shared = [_keys(each, is_copy=is_copy, is_code=is_code) for each in (copied, written)]
    if [*filter(str.strip, shared[0])] == [*filter(str.strip, shared[1])]:
        # Only whitespace or signs change.
        shared = [
            [token if token.strip() else key for token, key in zip(each, keys, strict=True)]
            for each, keys in zip((copied, written), shared, strict=True)
        ]
    pieces: list[str] = []
    for kind, first, last, start, stop in _opcodes(*shared):
        if kind == "equal":
            pieces += before[first:last]
            continue
        for token in written[start:stop]:
            if "\n" in token and token.isspace():
                if indent is None:
                    return None
                lines, _, rest = token.rpartition("\n")
                token = f"{lines}\n{indent}{rest}"  # noqa: PLW2901
            pieces.append(token.replace("\n", newline) if "\n" in text else token)
    whole = "".join(pieces)
    return whole if "\n" in text else _indented(whole, line).replace("\n", newline)


def _key(token: str) -> str:
    return " " if token.isspace() else plain(token)


def _keys(tokens: Sequence[str], *, is_copy: bool, is_code: bool) -> list[str]:
    """Return the key by which each token is compared; opening and closing quotes are not equal."""
    keys: list[str] = []
    for left, token in pairwise(["", *tokens]):
        key = plain(token)
        if (is_code and token.strip()) or "`" in token or any(map(_is_raised, token)):
            key = token
        elif key in {"'", '"'}:
            key += "<" * (left[-1:] in {"", *" \n\t([{-"})
        elif token.isspace():
            lines, broken, rest = token.rpartition("\n")
            shape = "\n" * min(lines.count("\n") + 1, 2) + rest if broken else " "
            key = token if is_copy else shape
        keys.append(key)
    return keys


def _is_raised(character: str) -> bool:
    """Return whether a character is a superscript or subscript, such as the last of "m\u00b2"."""
    return unicodedata.decomposition(character).startswith(("<super>", "<sub>"))


def _opcodes(old: list[str], new: list[str]) -> list[tuple[str, int, int, int, int]]:
    """Return how one list becomes the other, skipping a shared beginning and end for speed."""
    least = min(len(old), len(new))
    head = next((at for at in range(least) if old[at] != new[at]), least)
    tail = next((at for at in range(least - head) if old[-1 - at] != new[-1 - at]), least - head)
    a, b = len(old) - tail, len(new) - tail
    inner = SequenceMatcher(None, old[head:a], new[head:b]).get_opcodes()
    return [
        ("equal", 0, head, 0, head),
        *((kind, head + i, head + j, head + k, head + n) for kind, i, j, k, n in inner),
        ("equal", a, len(old), b, len(new)),
    ]


def _indent(before: Sequence[str], copied: Sequence[str]) -> str | None:
    """Return the prefix that each line of a text has and its copy lacks, or None if it varies."""
    indents: set[str | None] = set()
    for blank, other in zip(before, copied, strict=True):
        if "\n" in blank and "\n" in other:
            mine, theirs = blank.rpartition("\n")[2], other.rpartition("\n")[2]
            indents.add(mine.removesuffix(theirs) if mine.endswith(theirs) else None)
        elif "\n" in blank:
            indents.add(blank.rpartition("\n")[2])
    return indents.pop() if len(indents) == 1 else None if indents else ""


def _indented(new: str, line: str) -> str:
    """Return the new words with every line after the first indented like the line they start on.

    They are unchanged if every line is already indented that way.
    """
    lead = _LEAD.match(line)
    first, *rows = new.split("\n")
    filled = [row for row in rows if row.strip()]
    if not lead or not lead[0] or not filled:
        return new
    margin = lead[1]
    hang = "" if _HEADING.search(new) else " " * len(lead[2] or "")

    def needed(row: str) -> str:
        return margin if item_start(row) else margin + hang

    opens = first.rstrip().endswith(_OPENS) and margin.isspace() and not hang
    is_deeper = not opens or filled[0].startswith((f"{margin} ", f"{margin}\t"))
    if is_deeper and all(row.startswith(needed(row)) for row in filled):
        return new
    below = (f"{needed(row)}{row}" if row.strip() else margin.rstrip() for row in rows)
    return "\n".join([first, *below])
