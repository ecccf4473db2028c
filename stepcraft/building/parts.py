"""The parts of a document that are read in one call each, and the headings above its procedures."""

import re
from collections.abc import Sequence

from langchain_text_splitters import MarkdownTextSplitter
from typing_extensions import TypedDict

from stepcraft.sources.corpus.content import Heading, markdown_headings

_ANCHOR = re.compile(r"\{\s*+#([\w.:-]++)\s*+\}\s*+$")
_LINK = re.compile(r"!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])|<[^<>]{1,200}>")
_NUMBER = re.compile(r"^(?:step\s+)?\d+(?:\.\d+)*[.:)]?\s+")


class Part(TypedDict):
    """A part of a document."""

    number: str
    """Such as "part 1 of 3"; "" for a whole document."""
    place: str
    """The headings that it stands under, from the outermost; "" at the beginning."""
    text: str
    """Its text, which begins with the end of the part before it."""


def parts_of(text: str, size: int, overlap: int) -> list[Part]:
    """Split a document before headings, else at blank lines or at the end of a line.

    A part has at most `size` characters, the overlap with the part before it included.
    """
    chunks = MarkdownTextSplitter(
        chunk_size=size,
        chunk_overlap=min(overlap, size // 2),
        strip_whitespace=False,
        add_start_index=True,
    ).create_documents([text] if text.strip() else [])
    headings = markdown_headings(text)
    return [
        Part(
            number=f"part {number} of {len(chunks)}" if len(chunks) > 1 else "",
            place=_place(headings, chunk.metadata["start_index"]),
            text=chunk.page_content,
        )
        for number, chunk in enumerate(chunks, 1)
    ]


def _place(headings: Sequence[Heading], position: int) -> str:
    """Return the headings above an offset, from the outermost."""
    path: list[Heading] = []
    for heading in headings:
        if heading.start < position:
            path = [*(above for above in path if above.level < heading.level), heading]
    return " > ".join(heading.text for heading in path)


def find_heading(copied: str, headings: Sequence[str]) -> str:
    """Return the heading that a model copied, "" if there is none like it.

    Models also write the headings above it: "A > B".
    """
    for words in (_words(copied), _words(copied.rpartition(" > ")[2])):
        for heading in headings if words else ():
            if _words(heading) == words:
                return heading
    return ""


def place_of(source: str, heading: str) -> str:
    """Return a source with a heading as its fragment, as sites that render Markdown name it."""
    anchor = _ANCHOR.search(heading)
    slug = re.sub(r"[^\w\- ]", "", shown_heading(heading).lower()).strip().replace(" ", "-")
    fragment = anchor[1] if anchor else slug
    return f"{source}#{fragment}" if fragment and "#" not in source else source


def shown_heading(heading: str) -> str:
    """Return a heading as readers see it: without links, markup and its anchor."""
    text = _LINK.sub(r"\1", _ANCHOR.sub("", heading))
    return " ".join(re.sub(r"[`*]|\\(?=_|[^\w\s])", "", text).split())


def _words(heading: str) -> str:
    return _NUMBER.sub("", shown_heading(heading.strip().lstrip("#")).casefold())
