"""The text of XML documents, such as articles (JATS) and RFCs, with their titles as headings."""

import re

from bs4 import BeautifulSoup, Tag

from stepcraft.text.clean import clean

MAX_TAGS = 100_000
"""The most tags that are read, opening and closing ones; so many take about five seconds."""

_TITLES = ("title", "article-title", "name", "head")
_SECTIONS = ("sec", "section", "chapter", "appendix", "abstract", "front", "article", "div")
_BLANK_LINES = re.compile(r"\n\s*\n+")


def xml(data: bytes) -> tuple[str, list[str], str]:
    """Return the text without tags; a title in a section is a heading of the section's level."""
    tags, cut = data.split(b"<", MAX_TAGS + 1), ""
    if len(tags) > MAX_TAGS + 1:
        data = data[: -len(tags.pop()) - 1]
        cut = f"only its first {MAX_TAGS:,} tags were read"
    soup = BeautifulSoup(data, "html.parser")
    first = ""
    for tag in soup(_TITLES):
        words = " ".join(tag.get_text(" ").split())
        parents = [each for each in tag.parents if isinstance(each, Tag)]
        if not words or (
            parents and parents[0].name not in (*_SECTIONS, "title-group", "[document]")
        ):
            continue
        first = first or words
        level = sum(each.name in _SECTIONS for each in parents)
        tag.replace_with(f"\n\n{'#' * min(max(level, 1), 6)} {words}\n\n")
    text = "\n".join(line.strip() for line in soup.get_text("\n").splitlines())
    return first, [clean(_BLANK_LINES.sub("\n\n", text))], cut
