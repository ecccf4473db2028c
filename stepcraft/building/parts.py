"""The parts of a document that are read in one call each, and the headings above its procedures."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from typing_extensions import TypedDict

from stepcraft.text.markdown import code_blocks

_ANCHOR = re.compile(r"\{\s*+#([\w.:-]++)\s*+\}\s*+$")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])")
_TAG = re.compile(r"<[^<>]{1,200}>")
_NUMBER = re.compile(r"^(?:step\s+)?\d+(?:\.\d+)*[.:)]?\s+", re.IGNORECASE)
_BLANK_LINE = re.compile(r"\n[ \t]*\n+")


class HeadingAt(TypedDict):
    """A heading of the document."""

    start: int
    """The offset of its first character in the text."""
    stop: int
    """The offset after it."""
    level: int
    """1 is the outermost."""
    text: str
    """The heading without its markup."""


class Part(TypedDict):
    """A part of a document."""

    part: int
    """Its number, from 1."""
    parts: int
    """How many there are."""
    place: str
    """The headings that it stands under, from the outermost; "" at the beginning of the document."""
    text: str
    """Its text, which begins with the end of the part before it."""


def parts_of(text: str, headings: Sequence[HeadingAt], size: int, overlap: int) -> list[Part]:
    """Split a document into parts of at most `size` characters, and the overlap.

    A part ends before a heading, the outermost of those in its second half; where there is none,
    at a blank line outside of code or, at worst, at the end of a line. An overlap begins with a
    heading if there is one in it.
    """
    if not text.strip():
        return []
    starts = [heading["start"] for heading in headings]
    cuts = [0]
    while len(text) - cuts[-1] > size:
        cuts.append(_cut(text, headings, starts, cuts[-1], size))
    begins = [_overlap(text, starts, cut, overlap) if cut else 0 for cut in cuts]
    return [
        Part(
            part=number,
            parts=len(cuts),
            place=" > ".join(_path(headings, begin)),
            text=text[begin:end],
        )
        for number, (begin, end) in enumerate(zip(begins, [*cuts[1:], len(text)], strict=True), 1)
    ]


def _cut(
    text: str, headings: Sequence[HeadingAt], starts: Sequence[int], start: int, size: int
) -> int:
    """Return the offset at which a part that begins at `start` ends."""
    half, end = start + size // 2, start + size
    if within := headings[bisect_left(starts, half) : bisect_right(starts, end)]:
        return min(within, key=lambda heading: (heading["level"], -heading["start"]))["start"]
    piece = text[start:end]
    blocks = [(block.start, block.stop) for block in code_blocks(piece)]
    for blank in reversed(list(_BLANK_LINE.finditer(piece, size // 2))):
        if not any(first <= blank.start() < last for first, last in blocks):
            return start + blank.end()
    line = piece.rfind("\n", size // 2)
    return start + line + 1 if line >= 0 else end


def _overlap(text: str, starts: Sequence[int], cut: int, overlap: int) -> int:
    """Return the offset at which the overlap before a cut begins."""
    earliest = max(0, cut - overlap)
    heading = bisect_left(starts, earliest)
    if heading < len(starts) and starts[heading] < cut:
        return starts[heading]
    line = text.find("\n", earliest, cut)
    return line + 1 if overlap and line >= 0 else cut


def _path(headings: Sequence[HeadingAt], position: int) -> list[str]:
    """Return the headings above an offset, from the outermost."""
    path: list[HeadingAt] = []
    for heading in headings[: bisect_left(headings, position, key=lambda each: each["start"])]:
        path = [*(above for above in path if above["level"] < heading["level"]), heading]
    return [heading["text"] for heading in path]


class Headings:
    """The headings of a document, to look up what a model copied."""

    def __init__(self, headings: Sequence[HeadingAt]) -> None:
        # Of headings with the same words the first holds.
        self._by_words = {_words(each["text"]): each["text"] for each in reversed(headings)}
        self._unnumbered = {_NUMBER.sub("", words): text for words, text in self._by_words.items()}

    def find(self, copied: str) -> str:
        """Return the heading that is meant, "" if there is none like it.

        Models also write the headings above it: "A > B".
        """
        for words in filter(None, (_words(copied), _words(copied.rpartition(" > ")[2]))):
            if match := self._by_words.get(words) or self._unnumbered.get(_NUMBER.sub("", words)):
                return match
        return ""


def place_of(source: str, heading: str) -> str:
    """Return a source with a heading as its fragment, as sites that render Markdown name it."""
    if not heading or "#" in source:
        return source
    if anchor := _ANCHOR.search(heading):
        return f"{source}#{anchor[1]}"
    slug = re.sub(r"[^\w\- ]", "", _plain(heading).lower()).strip().replace(" ", "-")
    return f"{source}#{slug}" if slug else source


def shown_heading(heading: str) -> str:
    """Return a heading as readers see it: without links, markup and its anchor."""
    return _plain(_ANCHOR.sub("", heading))


def _plain(text: str) -> str:
    text = _TAG.sub("", _LINK.sub(r"\1", text))
    return " ".join(re.sub(r"[`*]|\\(?=_|[^\w\s])", "", text).split())


def _words(heading: str) -> str:
    return shown_heading(heading.strip().lstrip("#")).casefold()
