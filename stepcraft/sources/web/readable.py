"""A fetched page as markdown, and its passages."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import trafilatura
from langchain_text_splitters import RecursiveCharacterTextSplitter
from trafilatura.metadata import extract_metadata

from stepcraft.errors import FetchFailed
from stepcraft.sources.web.fetch import Fetched
from stepcraft.sources.web.urls import shown
from stepcraft.text.clean import clean

_SHORTEST = 80
"""Characters below which a page says nothing: a notice, a page that a script would fill."""
_PASSAGE = 1000

_CHARSETS = re.compile(
    r"utf-?(8|16)|us-ascii|iso-8859-\d+|(windows|cp)-?\d+|gb\w+|big5|shift_jis|euc-\w+|koi8-\w"
)
"""The charsets that are believed; some other codecs of Python take very long on a hostile text."""
_BARRIER = re.compile(
    r"captcha|verify(?:ing)? (?:that )?you(?: are|'re) (?:a )?human|are you a robot|not a robot|unusual traffic"
    r"|enable javascript|checking your browser|just a moment|access denied|attention required",
    re.IGNORECASE,
)
_HEADING = re.compile(r"#{1,6}\s+(.+?)[\s#]*")
_FENCE = re.compile(r"\s*(```|~~~)")


@dataclass(frozen=True)
class Page:
    """What a page says."""

    url: str
    title: str
    text: str
    """Markdown."""


@dataclass(frozen=True)
class Passage:
    """A part of a page."""

    url: str
    title: str
    """The page's, and the heading that the passage stands under."""
    text: str


def readable(fetched: Fetched) -> Page:
    """What a page says, without what stands around it.

    Raises:
        FetchFailed: it says nothing, or only that people should prove to be some.
    """
    if fetched.type in {"text/html", "application/xhtml+xml"}:
        title, text = _of_html(fetched)
    else:
        title, text = "", clean(_decoded(fetched))
    text = text.strip()
    barred = len(text) < 1500 and _BARRIER.search(f"{title} {text}")
    if barred or len(text) < _SHORTEST:
        reason = f"it asks for a browser or a human ({barred[0]!r})" if barred else "there is no text on it"
        raise FetchFailed(f"{shown(fetched.url)} cannot be read: {reason}")
    return Page(fetched.url, title or _named_by_url(fetched.url), text)


def passages(page: Page) -> Iterator[Passage]:
    """The page in parts of about 1,000 characters, none reaching over a heading; the headings are in the titles."""
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=_PASSAGE,
        chunk_overlap=0,
        separators=["\n\n", "\n", ". ", "\u3002", " ", ""],
        keep_separator="end",
    )
    for heading, text in _sections(page.text):
        title = page.title if heading in {"", page.title} else f"{page.title}: {heading}"
        for part in splitter.split_text(text):
            yield Passage(page.url, title, part)


def _of_html(fetched: Fetched) -> tuple[str, str]:
    """Title and markdown; "" for what is not there."""
    try:
        tree = trafilatura.load_html(_decoded(fetched) if fetched.charset else fetched.body)
        if tree is None:
            return "", ""
        title = extract_metadata(tree).title
        text = trafilatura.extract(tree, output_format="markdown", include_comments=False)
    except Exception as error:  # whatever a parser stumbles over, it is the page's fault
        raise FetchFailed(f"{shown(fetched.url)} cannot be read: {type(error).__name__}") from error
    return " ".join(clean(title or "").split())[:200], clean(text or "")


def _decoded(fetched: Fetched) -> str:
    charset = fetched.charset if _CHARSETS.fullmatch(fetched.charset) else "utf-8"
    try:
        return fetched.body.decode(charset, "replace")
    except LookupError:
        return fetched.body.decode("utf-8", "replace")


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Each heading with the text under it; a line of code is no heading."""
    heading, lines, in_code = "", list[str](), False
    for line in text.split("\n"):
        in_code ^= _FENCE.match(line) is not None
        match = None if in_code else _HEADING.fullmatch(line)
        if match is None:
            lines.append(line)
            continue
        yield heading, "\n".join(lines)
        heading, lines = match[1], []
    yield heading, "\n".join(lines)


def _named_by_url(url: str) -> str:
    parts = urlsplit(url)
    return parts.path.rstrip("/").rpartition("/")[2] or parts.netloc
