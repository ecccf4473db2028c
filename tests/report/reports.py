"""Results of runs to report on, and a strict parser of pages."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import pytest

from stepcraft import AagContext, RatContext, build_aag, build_rat
from stepcraft.evidence import Evidence
from stepcraft.graphs.baselines import build_rag
from stepcraft.graphs.rpg import Output
from stepcraft.report import StepTime
from stepcraft.segments import Segment, Selected, TracedSentence, passages_of
from tests.kitchen import GOAL, cook, forever, small_memory
from tests.scripted import ScriptedModel
from tests.shelf import QUESTION, Shelf, thinker

STEPS = [StepTime("begin", 0.0, 0.25), StepTime("draft", 0.25, 3.5), StepTime("step", 3.5, 12.5)]

HOSTILE = (
    "</p></div></details></section></title></style><script>console.error(document.title='owned')</script>"
    "<img src=http://127.0.0.1:PORT/image onerror=\"document.title='owned'\"><base href=http://127.0.0.1:PORT/>"
    "<link rel=stylesheet href=http://127.0.0.1:PORT/sheet><iframe src=http://127.0.0.1:PORT/frame></iframe>"
    "<style>@import url(http://127.0.0.1:PORT/style);</style><!-- \" ' onmouseover=x &lt; \x00\x1b[31m\u202e\ud800"
)
"""Markup and control characters that a hostile web page might contain."""


def rat(changes: str = ".x.", shelf: Shelf | None = None, **context: Any) -> dict[str, Any]:
    """Run RAT and return its result."""
    graph = build_rat(model=ScriptedModel(thinker(changes)), retriever=shelf or Shelf())
    result: dict[str, Any] = graph.invoke(QUESTION, context=RatContext(**context))
    return result


def aag(critiques: int = 1, **context: Any) -> dict[str, Any]:
    """Run AAG and return its result."""
    graph = build_aag(model=ScriptedModel(forever(cook(critiques))), memory=small_memory())
    result: dict[str, Any] = graph.invoke(GOAL, context=AagContext(paper=True, **context))
    return result


def aag_with_names() -> dict[str, Any]:
    """Run AAG by its defaults: with names in the steps, and an edit that changes, adds and removes steps."""
    replies = cook(1) | {
        "draft": ["1. Use `dough_kit()`.\n2. Mix `rye flour` and the sourdough starter.\n3. Bake it."],
        "edit": ["1: Use `oven_kit()`.\n2+: Let it rise.\n3-"],
    }
    graph = build_aag(model=ScriptedModel(forever(replies)), memory=small_memory())
    result: dict[str, Any] = graph.invoke(GOAL)
    return result


def rpg() -> dict[str, Any]:
    """Return a result of RPG: two segments that rest on three passages, and one without evidence.

    Four of its sentences cite evidence, which does not bear out one of them, and one cites none.
    """
    texts = [
        "The old bridge stood until 1993. It was built in 1566 by Mimar Haldruvin. It has one arch.",
        "In 1566 Selvaran ordered a bridge of stone. Before it there was one of wood.",
        "The bridge fell in November 1993. It was rebuilt in 2004 with stone of the old quarry.",
    ]
    passages = [
        Evidence(id=f"p{number}", title=f"Title {number}", text=text, source=f"https://example.org/{number}", score=0.9 - number / 10)
        for number, text in enumerate(texts, 1)
    ]  # fmt: skip
    first = [
        ("p1", 1, "It was built in 1566 by Mimar Haldruvin."),
        ("p2", 0, "In 1566 Selvaran ordered a bridge of stone."),
    ]
    second = [
        ("p3", 0, "The bridge fell in November 1993."),
        ("p3", 1, "It was rebuilt in 2004 with stone of the old quarry."),
    ]
    segments = [
        segment("who built it", first, "Mimar Haldruvin built it in 1566. Selvaran had ordered it."),
        segment("how it was rebuilt", second, "It fell in 1992.\n\nIt was rebuilt in 2004."),
        segment("what it is today", [], "It is a place of the world's heritage."),
    ]
    sentences = [
        ("Mimar Haldruvin built it in 1566.", ["p1", "p2"], True),
        (" Selvaran had ordered it.", ["p2"], True),
        ("\n\nIt fell in 1992.", ["p3"], False),
        ("\n\nIt was rebuilt in 2004.", ["p3"], True),
        ("\n\nIt is a place of the world's heritage.", [], False),
    ]
    result = Output(
        answer="".join(text for text, *_ in sentences),
        sentences=[
            TracedSentence(text=text, evidence=cited, supported=holds) for text, cited, holds in sentences
        ],
        plans=[one["plan"] for one in segments],
        segments=segments,
        evidence=passages,
        warnings=[],
        usage={**rat()["usage"], "calls": 6},
    )
    return dict(result)


def rag() -> dict[str, Any]:
    """Run a baseline and return its result."""
    graph = build_rag(model=ScriptedModel({"answer": ["Haldruvin built it."]}), retriever=Shelf())
    result: dict[str, Any] = graph.invoke(QUESTION)
    return result


def segment(plan: str, chosen: list[tuple[str, int, str]], text: str) -> Segment:
    sentences = [Selected(passage=name, position=place, text=said, score=0.8) for name, place, said in chosen]
    return Segment(
        plan=plan, sentences=sentences, text=text, evidence=passages_of(sentences), unsupported=not chosen
    )


RUNS = [
    pytest.param("rat", QUESTION, rat, id="rat"),
    pytest.param("aag", GOAL, aag, id="aag"),
    pytest.param("aag", GOAL, aag_with_names, id="aag-names"),
    pytest.param("rpg", QUESTION, rpg, id="rpg"),
    pytest.param("rag", QUESTION, rag, id="rag"),
]
"""Graph, input and a function that returns the result."""


PASSAGES = ("p1", "p2", "p3")
"""The ids that link the selected sentences of `rpg` to their passages."""


def poisoned(thing: Any, poison: str) -> Any:
    """Return a copy with the poison appended to every text, except to ids and statuses."""
    if isinstance(thing, dict):
        return {
            key: part if key in {"id", "status"} else poisoned(part, poison) for key, part in thing.items()
        }
    if isinstance(thing, list):
        return [poisoned(part, poison) for part in thing]
    return f"{thing} {poison}" if isinstance(thing, str) and thing not in PASSAGES else thing


@dataclass
class Seen:
    """An element with all the text inside it."""

    tag: str
    attributes: dict[str, str | None]
    words: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


class Reader(HTMLParser):
    """Parses a page and fails if an element is not closed in order."""

    _VOID = frozenset({"meta", "input"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[Seen] = []
        self._open: list[Seen] = []
        self.feed(page)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Seen(tag, dict(attrs))
        assert len(element.attributes) == len(attrs)
        self.seen.append(element)
        if tag not in self._VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.words.append(data)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(f"a comment: {data}")

    def all(self, tag: str, class_: str = "") -> list[Seen]:
        """Return the elements with this name and class, in document order."""
        found = [element for element in self.seen if element.tag == tag]
        return [element for element in found if class_ in (element.attributes.get("class") or "")]

    def texts(self, tag: str, class_: str = "") -> list[str]:
        """Return the text of these elements."""
        return [element.text for element in self.all(tag, class_)]
