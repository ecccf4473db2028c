"""Elements of a page. Text from outside is a `str` and always escaped; only what is written here is `Html`."""

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from stepcraft.text.clean import clean


@dataclass(frozen=True)
class Html:
    """Markup of ours."""

    source: str


Content = Html | str
NOTHING = Html("")


def element(name: str, *content: Content, **attributes: str) -> Html:
    """An element; `class_` and `aria_label` stand for the attributes class and aria-label."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_escaped(value)}"' for key, value in attributes.items()
    )
    return Html(f"<{name}{given}>{joined(content).source}</{name}>")


def joined(content: Iterable[Content]) -> Html:
    """All of it, one after the other."""
    return Html("".join(part.source if isinstance(part, Html) else _escaped(part) for part in content))


def _escaped(text: str) -> str:
    return html.escape(clean(text), quote=True)


def prose(text: str) -> Html:
    """A text of several lines, written from left or right as its script is."""
    return element("div", text.strip(), class_="prose", dir="auto")


def phrase(text: str, name: str = "span", **attributes: str) -> Html:
    """A text in one line."""
    return element(name, " ".join(clean(text).split()), dir="auto", **attributes)


def section(name: str, title: str, *content: Content) -> Html:
    """A part of the page that the navigation leads to."""
    heading = element("h2", title, id=f"{name}-title")
    return element("section", heading, *content, id=name, aria_labelledby=f"{name}-title")


def listed(items: Iterable[Content], name: str = "ul", **attributes: str) -> Html:
    """A list; without items nothing."""
    entries = [element("li", item) for item in items]
    return element(name, *entries, **attributes) if entries else NOTHING


def link(source: str) -> Html:
    """Where something came from: an address of the web to follow, anything else as text."""
    address = clean(source).strip()
    if not _is_web(address):
        return phrase(address, class_="source")
    return element("a", address, href=address, rel="noopener noreferrer", class_="source")


def _is_web(address: str) -> bool:
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and not re.search(r"[\s\\]", address)
