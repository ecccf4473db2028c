"""The text of a web page as Markdown, without navigation and other boilerplate."""

import trafilatura
from trafilatura.metadata import extract_metadata

from stepcraft.encoding import Unreadable, decoded_markup
from stepcraft.sources.parse import MAX_TAGS
from stepcraft.text.clean import one_line


def article(data: bytes, charset: str) -> tuple[str, str]:
    """Return the title and text; an empty `charset` means the one that the page declares."""
    if data.count(b"<") > MAX_TAGS:
        raise Unreadable(f"it has more than {MAX_TAGS:,} tags")
    tree = trafilatura.load_html(decoded_markup(data, charset)[0])
    if tree is None:
        return "", ""
    title = one_line(extract_metadata(tree).title or "")[:200]
    return title, trafilatura.extract(tree, output_format="markdown", include_comments=False) or ""
