"""The text of an HTML file: for `isolated`, whose process alone imports this module."""

from bs4 import BeautifulSoup
from markdownify import MarkdownConverter

from stepcraft.sources.corpus.formats import MAX_TAGS, decoded, one_line
from stepcraft.text.clean import clean


def html(data: bytes) -> dict[str, str]:
    """Return title and text of HTML, as Markdown, without what a browser does not show, and what was cut off."""
    source, cut = decoded(data), ""
    end = -1
    for _ in range(min(MAX_TAGS, source.count("<"))):
        end = source.find("<", end + 1)
    if (after := source.find("<", end + 1)) >= 0:
        source, cut = source[:after], f"only its first {MAX_TAGS:,} tags were read"
    soup = BeautifulSoup(source, "html.parser")
    title = one_line(soup.title.get_text(" ")) if soup.title else ""
    for tag in soup(["head", "script", "style", "template", "noscript", "nav"]):
        tag.decompose()
    converter = MarkdownConverter(
        heading_style="atx",
        strip=["a", "img"],
        escape_asterisks=False,
        escape_underscores=False,
        escape_misc=False,
    )
    return {"title": title, "text": clean(converter.convert_soup(soup)), "cut": cut}
