"""The page of a run: the verdicts on the statements of an answer."""

from __future__ import annotations

from typing import Any

import pytest

from stepcraft.report import page
from tests.report.reports import HOSTILE, QUESTION, Reader, rat, rpg, verdict

ANSWER = """\
# The bridge

Haldruvin built it, within two days. It has four arches.

It fell in 1992.

```python
bridge.build(stone=True)
```

Run `bridge --open`. Wait. Wait."""


def read(answer: str = ANSWER, **changed: Any) -> Reader:
    changed = {"revisions": [], "first_draft": answer, "warnings": [], **changed}
    return Reader(page("rat", QUESTION, rat(answer=answer, **changed)))


def marked(seen: Reader) -> list[tuple[str, str]]:
    """Return what is marked in the answer, with the class of its mark."""
    kinds = ("supported", "contradicted", "not-found", "corrected")
    return [
        (str(span.attributes["class"]), span.text)
        for span in seen.all("span")
        if span.attributes.get("class") in kinds
    ]


def test_each_statement_is_marked_in_the_answer_with_links_to_its_passages() -> None:
    seen = read(
        checks=[
            verdict("supported", "Haldruvin built it, within two days.", "p1", "p2"),
            verdict("not found", "within two days"),
            verdict("not found", "It has four arches."),
            verdict("contradicted", "It fell in 1992.", "p3", part=2),
            verdict("supported", "```python\nbridge.build(stone=True)\n```", "p2", part=3),
            verdict("not found", "open", part=4),
        ]
    )
    assert marked(seen) == [
        ("supported", "Haldruvin built it,"),
        ("not-found", "within two days"),
        ("supported", "."),
        ("not-found", "It has four arches."),
        ("contradicted", "It fell in 1992."),
        ("supported", "bridge.build(stone=True)"),
        ("not-found", "bridge --open"),
    ]
    signs = [(sign.text, sign.attributes["aria-label"]) for sign in seen.all("span", "without")]
    missing = ("\u2205", "not found")
    assert signs == [missing, missing, ("\u2260", "contradicted"), missing]
    links = [
        (link.attributes["href"], link.attributes["aria-label"]) for link in seen.all("a", "mark")
    ]
    assert links == [
        ("#passage-1", "supported: passage 1"),
        ("#passage-2", "supported: passage 2"),
        ("#passage-3", "contradicted: passage 3"),
        ("#passage-2", "supported: passage 2"),
    ]
    assert seen.texts("p", "note") == [
        "Verdicts on statements: 2 supported, 1 contradicted, 3 not found. "
        "\u2260 marks what is contradicted. \u2205 marks what is not found."
    ]
    assert "checks" not in seen.sections()


@pytest.mark.parametrize(
    ("answer", "statements"),
    [
        ("\u7aef\u53e3\u662f80\u3002\u5b83\u5f00\u3002", ["\u7aef\u53e3\u662f80\u3002", "\u5b83\u5f00\u3002"]),
        ("It is 80 [1]. It is open [2].", ["It is 80 [1].", "It is open [2]."]),
        ("It is 80 [1]. It is open.[^2]", ["It is 80.", "It is open."]),
        ("It is\n  80. So.", ["It is 80.", "So."]),
    ],
)  # fmt: skip
def test_a_statement_is_marked_with_its_marks_in_any_script(
    answer: str, statements: list[str]
) -> None:
    checks = [verdict("not found", each) for each in statements]
    seen = marked(read(answer, checks=checks))
    assert [kind for kind, _ in seen] == ["not-found"] * 2


@pytest.mark.parametrize(
    ("check", "line"),
    [
        (
            verdict("contradicted", "It fell in 1991.", "p3"),
            "contradicted It fell in 1991. — Title 3",
        ),
        (verdict("not found", "Wait."), "not found Wait."),
        (verdict("not found", "its words are \ngone"), "not found its words are gone"),
        (verdict("supported", "", "gone"), "1 supported statementsupported"),
    ],
)
def test_a_statement_without_a_place_in_the_answer_is_listed(check: Any, line: str) -> None:
    seen = read(checks=[check])
    assert marked(seen) == []
    assert line in seen.sections()["checks"]


def test_a_statement_that_has_changed_is_listed_with_its_verdict() -> None:
    text = Reader(page("rat", QUESTION, rat())).sections()["checks"]
    assert text.endswith("contradicted It fell in 1992. — Title 2, Title 3 — changed since")


def test_what_was_corrected_is_marked_in_the_answer() -> None:
    old, new = (
        "It was built. It fell in 1992, they say.",
        "It was built. It fell in 1993, they say.",
    )
    revision = {"round": 1, "part": 1, "before": old, "after": new, "evidence": ["p3"]}
    checks = [verdict("contradicted", "It fell in 1992, they say.", "p3")]
    seen = read(new, checks=checks, revisions=[revision])
    words = "It fell in 1993, they say."
    assert marked(seen) == [("corrected", words), ("corrected", "Green")]
    assert seen.all("a", "mark")[0].attributes["aria-label"] == "corrected: passage 3"
    assert (
        "contradicted It fell in 1992, they say. — Title 3 — changed since"
        in (seen.sections()["checks"])
    )


def test_equal_statements_in_two_parts_are_marked_as_each_was_corrected() -> None:
    old = ["## A\n\nIt has 10 arches.\n\n", "## B\n\nIt has 10 arches."]
    new = [old[0].replace("10", "20"), old[1].replace("10", "30")]
    revisions = [
        {"round": 1, "part": part, "before": before, "after": after, "evidence": []}
        for part, (before, after) in enumerate(zip(old, new, strict=True), 1)
    ]
    checks = [verdict("contradicted", "It has 10 arches.", "p1", part=part) for part in (1, 2)]
    seen = read("".join(new), checks=checks, revisions=revisions)
    assert [text for kind, text in marked(seen) if text != "Green"] == [
        "It has 20 arches.",
        "It has 30 arches.",
    ]


def test_the_verdicts_on_an_answer_of_rpg_are_listed() -> None:
    checks = [
        verdict("supported", "It was rebuilt in 2004.", "p3", "gone"),
        verdict("not found", "It is a place of the world's heritage."),
    ]
    seen = Reader(page("rpg", QUESTION, rpg(checks=checks)))
    assert seen.sections()["checks"] == (
        "VerdictsVerdicts on statements: 1 supported, 0 contradicted, 1 not found."
        "not found It is a place of the world's heritage."
        "1 supported statementsupported It was rebuilt in 2004. — Title 3"
        " — 1 passage that the answer does not cite"
    )


@pytest.mark.parametrize("kind", ["supported", "contradicted", "not found"])
def test_hostile_statements_stay_text(kind: Any) -> None:
    seen = read(f"Before. {HOSTILE} Behind.", checks=[verdict(kind, HOSTILE, "p1")])
    assert "<script>console.error" in marked(seen)[0][1]
    assert not [*seen.all("script"), *seen.all("img")]


def test_many_statements_are_marked() -> None:
    """What is quadratic in them would take minutes, which the test's time-out ends."""
    texts = [f"Arch {number} is of `stone {number}`." for number in range(800)]
    seen = read(" ".join(texts), checks=[verdict("not found", text) for text in texts])
    assert len(marked(seen)) == 800
