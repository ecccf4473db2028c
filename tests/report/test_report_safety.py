"""The page of a run: text from outside stays text, and the page fetches nothing."""

from __future__ import annotations

import re
from typing import Any

import pytest

from stepcraft.report import page
from tests.report.reports import EVIDENCE, HOSTILE, QUESTION, RUNS, STEPS, Reader, poisoned, rag

TAGS = set(
    re.findall(
        r"\w+",
        """html head meta title style body header nav main section footer div article p h1 h2 h3
        ul ol li a b span details summary del ins strong code blockquote label button
        table caption thead tbody tfoot tr th td svg rect""",
    )
)


def of_sources(*sources: str) -> Reader:
    """Return the page of a run that found passages with these sources."""
    evidence = [{**EVIDENCE[0], "source": source} for source in sources]
    return Reader(page("rag", QUESTION, rag(evidence=evidence)))


@pytest.mark.parametrize(("graph", "inputs", "run"), RUNS)
def test_what_is_hostile_is_text(graph: str, inputs: Any, run: Any) -> None:
    text = page(graph, poisoned(inputs, HOSTILE), poisoned(run(), HOSTILE), STEPS)
    seen = Reader(text)
    assert {element.tag for element in seen.seen} <= TAGS
    attributes = {name for element in seen.seen for name in element.attributes}
    assert not [name for name in attributes if name.startswith(("on", "src", "style", "form"))]
    assert "<script>console.error(document.title='owned')</script>" in " ".join(seen.texts("main"))
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e\ud800]", text)
    text.encode()


@pytest.mark.parametrize(("graph", "inputs", "run"), RUNS)
def test_the_page_stands_alone(graph: str, inputs: Any, run: Any) -> None:
    text = page(graph, inputs, run(), STEPS)
    assert not re.search(r"\bsrc=|@import|url\(|<script|<link|style=", text)
    [policy] = re.findall('Content-Security-Policy" content="([^"]+)"', text)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")


def test_addresses_of_the_web_are_links() -> None:
    good = ["https://example.org/a?b=1&c=%22", "http://example.org/桥", "HTTPS://EXAMPLE.org"]
    links = [link for link in of_sources(*good).all("a") if link.attributes.get("rel")]
    assert {link.attributes["href"] for link in links} == set(good)
    assert {link.text for link in links} == set(good)
    assert {link.attributes["rel"] for link in links} == {"noopener noreferrer"}


def test_other_sources_are_text() -> None:
    bad = [
        "javascript:alert(1)",
        "java\tscript:alert(1)",
        "data:text/html,<script>alert(1)</script>",
        "file:///etc/passwd",
        "//example.org/x",
        "https:example.org",
        "http://[::1",
        "https://example.org/ onclick=x",
        "docs/a.md:3",
    ]
    seen = of_sources(*bad)
    assert {str(link.attributes["href"])[0] for link in seen.all("a")} == {"#"}
    shown = seen.texts("span", "source")
    for source in bad:
        assert " ".join(source.split()) in shown
