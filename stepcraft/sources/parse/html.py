"""The text of an HTML file as Markdown, as a browser shows it."""

from bs4 import BeautifulSoup
from markdownify import MarkdownConverter

from stepcraft.text.clean import clean

MAX_TAGS = 100_000
"""The most tags that are read, opening and closing ones; so many take about five seconds."""


def html(data: bytes) -> tuple[str, list[str], str]:
    """Return all text but the navigation, for which trafilatura would take parts of a manual."""
    tags, cut = data.split(b"<", MAX_TAGS + 1), ""
    if len(tags) > MAX_TAGS + 1:
        data = data[: -len(tags.pop()) - 1]
        cut = f"only its first {MAX_TAGS:,} tags were read"
    soup = BeautifulSoup(data, "html.parser")
    title = soup.title.get_text(" ") if soup.title else ""
    for tag in soup(["head", "script", "style", "template", "noscript", "nav"]):
        tag.decompose()
    converter = MarkdownConverter(
        heading_style="atx",
        strip=["a", "img"],
        escape_asterisks=False,
        escape_underscores=False,
        escape_misc=False,
    )
    return title, [clean(converter.convert_soup(soup))], cut
