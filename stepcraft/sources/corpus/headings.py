"""The headings of markdown and reStructuredText."""

import re
from dataclasses import dataclass

MAX_CHARACTERS = 200
"""A longer line is no heading."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)")
_HASHES = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_MARKDOWN_LINE = re.compile(r" {0,3}(={2,}|-{2,})[ \t]*")
_RST_LINE = re.compile(r"([=\-~^\"'`#*+.:_<>])\1{2,}[ \t]*")
_FRONT = re.compile(r"---\n(?:.*\n){0,50}?title:[ \t]*(.+)\n(?:.*\n){0,50}?---[ \t]*(?:\n|\Z)")


@dataclass(frozen=True)
class Heading:
    """A heading and where it stands, underline included."""

    start: int
    stop: int
    level: int
    text: str


def markdown_headings(text: str) -> list[Heading]:
    """Headings with hashes or an underline, but not what looks so in fenced code."""
    headings: list[Heading] = []
    position, fence = 0, ""
    before, last, last_start = "", "", 0
    for line in text.splitlines(keepends=True):
        bare, stop = line.rstrip("\n"), position + len(line)
        if mark := _FENCE.fullmatch(bare):
            fence = _after_fence(fence, mark)
        elif not fence and (found := _HASHES.fullmatch(bare)) and _fits(found[2]):
            headings.append(Heading(position, stop, len(found[1]), found[2]))
            bare = ""
        elif not fence and (found := _MARKDOWN_LINE.fullmatch(bare)) and not before.strip() and _titles(last):
            headings.append(Heading(last_start, stop, 1 if found[1][0] == "=" else 2, last.strip()))
            bare = ""
        before, last, last_start, position = last, bare, position, stop
    return headings


def rst_headings(text: str) -> list[Heading]:
    """Titles with an underline, and perhaps an overline; the level of each style is the order of its first use."""
    headings: list[Heading] = []
    styles: list[tuple[str, bool]] = []
    lines = text.splitlines(keepends=True)
    position = 0
    for number, line in enumerate(lines):
        title = lines[number - 1].rstrip() if number else ""
        before = lines[number - 2].rstrip() if number > 1 else ""
        over = before == line.rstrip()
        found = _RST_LINE.fullmatch(line.rstrip("\n"))
        if (
            found
            and (over or not before.strip())
            and _titles(title)
            and len(line.rstrip()) >= len(title.strip())
        ):
            style = (found[1], over)
            styles += [] if style in styles else [style]
            start = position - len(lines[number - 1]) - (len(lines[number - 2]) if over else 0)
            headings.append(Heading(start, position + len(line), styles.index(style) + 1, title.strip()))
        position += len(line)
    return headings


def front_title(text: str) -> str:
    """The title that a markdown file names in its front matter; "" if it names none."""
    found = _FRONT.match(text)
    return found[1].strip().strip("\"'") if found and _fits(found[1]) else ""


def _after_fence(fence: str, mark: re.Match[str]) -> str:
    """The fence that is open after a line with one; "" if none is."""
    if not fence:
        return "" if mark[1][0] == "`" and "`" in mark[2] else mark[1]
    return "" if mark[1].startswith(fence) and not mark[2].strip() else fence


def _titles(line: str) -> bool:
    """Whether a line can be a title of the line under it."""
    return _fits(line) and any(character.isalnum() for character in line)


def _fits(title: str) -> bool:
    return bool(title.strip()) and len(title) <= MAX_CHARACTERS
