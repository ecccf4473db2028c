"""The text of a web page, without navigation and other boilerplate: for `isolated`, whose process alone imports this module."""

import trafilatura
from trafilatura.metadata import extract_metadata

from stepcraft.sources.isolated import Unparsed
from stepcraft.text.clean import clean

MAX_TAGS = 100_000
"""The most tags of a page, opening and closing ones; so many take about five seconds."""


def article(data: bytes, *, charset: str = "") -> dict[str, str]:
    """Return title and Markdown, "" for what is missing. Without a charset it is decoded as the page declares.

    Raises:
        Unparsed: it has too many tags.
    """
    if data.count(b"<") > MAX_TAGS:
        raise Unparsed(f"it has more than {MAX_TAGS:,} tags")
    tree = trafilatura.load_html(data.decode(charset, "replace") if charset else data)
    if tree is None:
        return {"title": "", "text": ""}
    title = extract_metadata(tree).title
    text = trafilatura.extract(tree, output_format="markdown", include_comments=False)
    return {"title": " ".join(clean(title or "").split())[:200], "text": clean(text or "")}
