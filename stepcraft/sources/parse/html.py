"""The text of an HTML file as Markdown, as a browser shows it."""

from typing import Any

from bs4 import BeautifulSoup
from bs4.element import ProcessingInstruction
from markdownify import MarkdownConverter

from stepcraft.text.clean import clean

MAX_TAGS = 100_000
"""The maximum number of opening and closing tags read; this many take about five seconds."""

_NOT_READ = (
    "head, script, style, template, noscript, nav, [role=navigation], [role=search]"
    ", :is([hidden], [aria-hidden=true], [style*='display:none'], [style*='display: none'])"
    ":not([role=tabpanel]), .headerlink, .anchorjs-link, .skip-link, .sr-only"
    ", .breadcrumb, .breadcrumbs, .navbar, ul:is(.menu, .nav):has(a), li:has(> a[hreflang])"
)
"""Elements that a browser never shows, links to other pages, and links from headings to themselves.
"""
_LEAST_SHARE = 0.2
"""The minimum share of a page's text in its main element; with less, the content is elsewhere."""


def html(data: bytes) -> tuple[str, list[str], str]:
    """Return the content of a page without its navigation.

    The content is taken from the main element, if there is one. trafilatura is not used here
    because it would mistake parts of a manual for navigation.
    """
    tags, cut = data.split(b"<", MAX_TAGS + 1), ""
    if len(tags) > MAX_TAGS + 1:
        data = data[: -len(tags.pop()) - 1]
        cut = f"only its first {MAX_TAGS:,} tags were read"
    soup = BeautifulSoup(data, "html.parser")
    title = soup.title.get_text(" ") if soup.title else ""
    for tag in soup.select(_NOT_READ):
        tag.decompose()
    for declaration in soup.find_all(string=lambda text: isinstance(text, ProcessingInstruction)):
        declaration.extract()
    mains = soup.select("main, [role=main]") or soup.select("article")
    is_page = len(mains) == 1 and len(mains[0].get_text()) >= _LEAST_SHARE * len(soup.get_text())
    page: Any = mains[0] if is_page else soup
    converter = MarkdownConverter(
        heading_style="atx",
        strip=["a", "img"],
        escape_asterisks=False,
        escape_underscores=False,
        escape_misc=False,
    )
    return title, [clean(converter.convert_soup(page))], cut
