"""How a browser shows the evidence of a sentence: to mouse, keyboard, screen reader, on paper."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stepcraft.report import page
from tests.report.reports import QUESTION, STEPS, rpg
from tests.servers.chromium import Tab, opened

pytestmark = pytest.mark.usefixtures("browser")

SEEN = """[...document.querySelectorAll('.evidence')]
    .filter(panel => panel.checkVisibility()).map(panel => panel.id)"""
IN_VIEW = """(() => {
    const [panel, sentence] = ['.evidence:popover-open', '.sentence:has(:popover-open) label']
        .map(name => document.querySelector(name).getBoundingClientRect());
    const beside = panel.left >= sentence.right;
    const apart = beside || panel.top >= sentence.bottom || panel.bottom <= sentence.top;
    return apart && panel.left >= 0 && panel.top >= 0
        && panel.right <= innerWidth && panel.bottom <= innerHeight;
})()"""


@pytest.fixture(scope="module")
def tab(browser: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    folder = tmp_path_factory.mktemp("evidence")
    (folder / "page.html").write_text(page("rpg", QUESTION, rpg(), STEPS), "utf-8")
    with opened(folder / "page.html", folder / "profile") as tab:
        yield tab


@pytest.fixture(autouse=True)
def closed(tab: Tab) -> None:
    tab.resize(1280, 900)
    tab.press("Escape")
    tab.away()
    tab.js("document.activeElement.blur()")
    tab.js("document.querySelectorAll('.sources details').forEach(passage => passage.open = false)")
    assert tab.js(SEEN) == []


def test_pointing_at_a_sentence_shows_its_evidence(tab: Tab) -> None:
    tab.point(".sentence label", 1)
    assert tab.js(SEEN) == ["evidence-2"]
    tab.point(".sentence label", 2)
    assert tab.js(SEEN) == ["evidence-3"]
    tab.away()
    assert tab.js(SEEN) == []


def test_a_click_keeps_it_open(tab: Tab) -> None:
    tab.click(".sentence label", 1)
    tab.away()
    assert tab.js(SEEN) == ["evidence-2"]
    tab.point(".sentence label", 2)
    assert tab.js(SEEN) == ["evidence-2"], "what is open is not covered by what is pointed at"
    tab.click(".sentence label", 2)
    assert tab.js(SEEN) == ["evidence-3"]
    tab.click("h1")
    assert tab.js(SEEN) == []


def test_by_keyboard(tab: Tab) -> None:
    tab.js("document.querySelector('nav li:last-child a').focus()")
    tab.press("Tab")
    assert tab.js("document.activeElement.id") == "mark-1"
    assert tab.js(SEEN) == []
    tab.press("Enter")
    assert tab.js(SEEN) == ["evidence-1"]
    tab.press("Tab")
    assert tab.js("document.activeElement.hash") == "#passage-1", "its links come next"
    tab.press("Tab")
    assert tab.js("document.activeElement.href") == "https://example.org/1"
    tab.press("Escape")
    assert tab.js(SEEN) == []
    assert tab.js("document.activeElement.id") == "mark-1", "and the focus is where it was"


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (1024, 500), (400, 800)])
def test_it_stands_beside_its_sentence_within_the_window(tab: Tab, width: int, height: int) -> None:
    tab.resize(width, height)
    for number in range(4):
        tab.press("Escape")  # what is open may cover the next sentence
        tab.away()
        tab.click(".sentence label", number)
        assert tab.js(SEEN) == [f"evidence-{number + 1}"]
        assert tab.js(IN_VIEW)


def test_a_link_opens_the_passage(tab: Tab) -> None:
    opened = "[...document.querySelectorAll('.sources details')].map(passage => passage.open)"
    tab.click(".sentence label", 1)
    assert tab.js(opened) == [False] * 3
    tab.click(".evidence:popover-open a")
    assert tab.js(opened) == [False, True, False]


def test_on_paper_it_is_notes(tab: Tab) -> None:
    assert not tab.js("document.querySelector('.footnotes').checkVisibility()")
    tab.click(".sentence label", 1)
    answer, _, after = tab.printed().partition("Looked up")
    text = "".join(answer.split())  # where marks are raised, readers of PDF differ in blanks
    assert "Selvaranhadorderedit.2Thefall" in text
    assert "bridge.fallen.3∅-Itwasrebuiltin2004.3" in text
    assert text.count("1Title1Itwasbuiltin1566byMimarHaldruvin.https://example.org/12Title2") == 1
    assert answer.count("https://example.org/2") == 1, "what is open on the screen is not printed"
    assert "Point at a sentence" not in answer
    passage = "Before it there was one of wood."
    assert passage in " ".join(after.split()), "what is folded on the screen is printed"
    assert "Time and tokens" in after


def spoken_by(tab: Tab) -> list[str]:
    """Return the texts, buttons and images of the accessibility tree, in order."""
    nodes = {node["nodeId"]: node for node in tab.ask("Accessibility.getFullAXTree")["nodes"]}

    def below(node: Any) -> Iterator[str]:
        if not node["ignored"] and node["role"]["value"] in {"StaticText", "button", "image"}:
            yield node["name"]["value"]
        else:
            for child in node["childIds"]:
                yield from below(nodes[child])

    return [name.strip() for name in below(next(iter(nodes.values()))) if name.strip()]


def test_a_screen_reader_speaks_the_evidence_of_each_sentence(tab: Tab) -> None:
    spoken = spoken_by(tab)
    start = spoken.index("Mimar Haldruvin built it in 1566.")
    assert spoken[start : start + 14] == [
        "Mimar Haldruvin built it in 1566.",
        "Evidence: passages 1, 2",
        "Selvaran had ordered it.",
        "Evidence: passage 2",
        "The fall",
        "Its state is",
        "bridge.fallen",
        ".",
        "Evidence: passage 3",
        "not borne out by its evidence",
        "-",
        "It was rebuilt in 2004.",
        "Evidence: passage 3",
        "It is a place of the world's heritage.",
    ]
    assert spoken[start + 14] == "no evidence"
