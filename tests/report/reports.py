"""Results of runs to report on, and a strict parser of pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from stepcraft.evidence import Evidence
from stepcraft.graphs.aag import AagOutput
from stepcraft.graphs.rat import RatOutput
from stepcraft.graphs.rpg import RpgOutput
from stepcraft.llm.usage import usage_of
from stepcraft.nodes.check_names import CheckedName
from stepcraft.nodes.review import Review
from stepcraft.nodes.state import Answer, Check, Revision, Verdict
from stepcraft.nodes.trace import TracedSentence
from stepcraft.report import StepTime

QUESTION = {"question": "Who built the bridge, and when did it fall?"}
GOAL = {"question": "bake a rye bread", "resources": ["rye flour", "a sourdough starter"]}
STEPS = [StepTime("begin", 0.0, 0.25), StepTime("draft", 0.25, 3.5), StepTime("revise", 3.5, 12.5)]
REPLY = AIMessage(
    "", usage_metadata={"input_tokens": 1_200, "output_tokens": 345, "total_tokens": 1_545}
)
USAGE = usage_of("draft", 3, [REPLY])

HOSTILE = (
    "</p></div></details></section></title></style>"
    "<script>console.error(document.title='owned')</script>"
    "<img src=http://127.0.0.1:PORT/image onerror=\"document.title='owned'\">"
    "<base href=http://127.0.0.1:PORT/><link rel=stylesheet href=http://127.0.0.1:PORT/sheet>"
    "<iframe src=http://127.0.0.1:PORT/frame></iframe>"
    "<style>@import url(http://127.0.0.1:PORT/style);</style>"
    "<!-- \" ' onmouseover=x &lt; \x00\x1b[31m\u202e\ud800"
)
"""Markup and control characters that a hostile web page might contain."""

EVIDENCE = [
    Evidence(
        id=f"p{number}",
        title=f"Title {number}",
        text=text,
        source=f"https://example.org/{number}",
        score=0.9 - number / 10,
    )
    for number, text in enumerate(
        [
            "The old bridge stood until 1993. It was built in 1566 by Mimar Haldruvin.",
            "In 1566 Selvaran ordered a bridge of stone. Before it there was one of wood.",
            "The bridge fell in November 1993. It was rebuilt in 2004 with stone of a quarry.",
        ],
        1,
    )
]


def verdict(kind: Verdict, text: str, *evidence: str, part: int = 1, round_: int = 1) -> Check:
    """Return the verdict on a statement."""
    return Check(
        round=round_,
        part=part,
        statement=0,
        text=text,
        words="",
        verdict=kind,
        evidence=[*evidence],
    )


def rat(**changed: Any) -> dict[str, Any]:
    """Return a result of RAT with two changes, of which the second is of another round."""
    result = RatOutput(
        answer="Haldruvin built it.\n\nIt fell in 1993.",
        first_draft="Haldruvin built it.\n\nIt fell in 1992.",
        checks=[
            verdict("supported", "Haldruvin built it.", "p1"),
            verdict("contradicted", "It fell in 1992.", "p2", "p3", part=2),
        ],
        revisions=[
            Revision(
                round=1,
                part=2,
                before="It fell in 1992.",
                after="It fell in 1994.",
                evidence=["p2", "p3"],
            ),
            Revision(
                round=2,
                part=2,
                before="It fell in 1994.",
                after="It fell in 1993.",
                evidence=["p3"],
            ),
        ],
        evidence=EVIDENCE,
        warnings=["revise: a reply could not be read"],
        usage=USAGE,
    )
    return {**result, **changed}


def aag(**changed: Any) -> dict[str, Any]:
    """Return a result of AAG with an added step, names, and two reviews."""
    steps = ["Use `oven_kit()`.", "Mix `rye flour` and water.", "Let it rise."]
    result = AagOutput(
        answer="\n".join(f"{number}. {step}" for number, step in enumerate(steps, 1)),
        steps=steps,
        queries=["bake a rye bread", "feed a sourdough starter"],
        first_draft="1. Use `oven_kit()`.\n2. Mix `rye flour` and water.",
        revisions=[
            Revision(
                round=1,
                part=2,
                before=steps[1],
                after=f"{steps[1]}\n\n{steps[2]}",
                evidence=["p1", "gone"],
            )
        ],
        names=[
            CheckedName(name="oven_kit", step=1, found_in=[], verified=False),
            CheckedName(name="rye flour", step=2, found_in=["resources", "p1"], verified=True),
            CheckedName(name="dough", step=2, found_in=["another"], verified=True),
        ],
        reviews=[
            Review(
                type="reject",
                steps=steps[:2],
                reason="It has to rise.",
                by="",
                at="2026-01-01T09:00:00+00:00",
            ),
            Review(
                type="approve", steps=steps, reason="", by="ada", at="2026-01-01T09:05:00+00:00"
            ),
        ],
        remembered="0b7c",
        evidence=EVIDENCE[:1],
        warnings=[],
        usage=USAGE,
    )
    return {**result, **changed}


SENTENCES = [
    ("Mimar Haldruvin built it in 1566 [1][2].", ["p1", "p2"], True),
    (" Selvaran had ordered it [2].\n\n", ["p2"], True),
    ("## The fall\n\nIts state is `bridge.fallen` [3].\n\n", ["p3"], False),
    ("- It was rebuilt in 2004 [3].\n\n", ["p3"], True),
    ("It is a place of the world's heritage.", [], False),
]


def rpg(sentences: list[tuple[str, list[str], bool]] = SENTENCES, **changed: Any) -> dict[str, Any]:
    """Return a result of RPG.

    By default three sentences are supported, one has a name that its evidence does not have, and
    one cites nothing.
    """
    result = RpgOutput(
        answer="".join(text for text, *_ in sentences),
        sentences=[
            TracedSentence(text=text, evidence=cited, unconfirmed=[], supported=supported)
            for text, cited, supported in sentences
        ],
        queries=["who built the bridge", "when the bridge fell"],
        form="long",
        first_draft="Mimar Haldruvin built it [p1].",
        checks=[verdict("not found", "It is a place of the world's heritage.", part=3)],
        revisions=[],
        evidence=EVIDENCE,
        warnings=[],
        usage=USAGE,
    )
    return {**result, **changed}


def short() -> dict[str, Any]:
    """Return a result of RPG with a short answer."""
    return rpg(answer="Mimar Haldruvin", form="short")


def rag(**changed: Any) -> dict[str, Any]:
    """Return a result with nothing but what all graphs return."""
    return {
        **Answer(answer="Haldruvin built it.", evidence=EVIDENCE, warnings=[], usage=USAGE),
        **changed,
    }


RUNS = [
    pytest.param("rat", QUESTION, rat, id="rat"),
    pytest.param("aag", GOAL, aag, id="aag"),
    pytest.param("rpg", QUESTION, rpg, id="rpg"),
    pytest.param("rpg", QUESTION, short, id="rpg-short"),
    pytest.param("rag", QUESTION, rag, id="rag"),
]
"""Graph, input and a function that returns the result."""

_KEYS = {"id", "type", "kind", "form", "verdict", "found_in"}
"""What the page compares with other values, so that poison would hide a part of it."""


def poisoned(value: Any, poison: str) -> Any:
    """Return a copy with the poison appended to every text, except to ids and names of forms."""
    if not poison:
        return value
    if isinstance(value, Mapping):
        return {
            key: part if key in _KEYS else poisoned(part, poison) for key, part in value.items()
        }
    if isinstance(value, list):
        return [poisoned(part, poison) for part in value]
    is_id = value in [passage["id"] for passage in EVIDENCE]
    return f"{value} {poison}" if value and isinstance(value, str) and not is_id else value


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
        elements = [element for element in self.seen if element.tag == tag]
        return [
            element for element in elements if class_ in (element.attributes.get("class") or "")
        ]

    def texts(self, tag: str, class_: str = "") -> list[str]:
        """Return the text of these elements."""
        return [element.text for element in self.all(tag, class_)]

    def sections(self) -> dict[str, str]:
        """Return the text of each section by its id."""
        return {str(part.attributes["id"]): part.text for part in self.all("section")}
