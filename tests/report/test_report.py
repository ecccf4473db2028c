"""The page of a run: its content, and its accessibility."""

from __future__ import annotations

import re
from importlib.resources import files
from itertools import pairwise
from typing import Any

import pytest

from stepcraft import BadInput
from stepcraft.graphs.registry import GRAPHS
from stepcraft.report import StepTime, page
from tests.kitchen import GOAL
from tests.report.reports import RUNS, STEPS, Reader, aag, rag, rat, rpg
from tests.shelf import DRAFT, QUESTION, THOUGHTS


def test_rat_question_answer_and_draft() -> None:
    result = rat()
    seen = Reader(page("rat", QUESTION, result, STEPS))
    assert seen.texts("h1") == [QUESTION["question"]]
    assert seen.texts("title") == [f"{QUESTION['question']} · Stepcraft"]
    facts = ["3 thoughts", "1 changed", "6 passages", f"{result['usage']['calls']} model calls", "12.5 s"]
    assert seen.texts("ul", "facts") == ["".join(facts)]
    assert seen.texts("div", "columns") == [f"AnswerThe answer.Draft{' '.join(DRAFT.split())}"]


def test_rat_every_revision() -> None:
    result = rat(max_retrievals=2, window=1)
    seen = Reader(page("rat", QUESTION, result, STEPS))
    assert seen.texts("h3") == ["Thought 1 not changed", "Thought 2 changed", "Thought 3 skipped"]
    for revision, shown in zip(result["revisions"], seen.texts("article"), strict=True):
        assert " ".join(revision["query"].split()) in shown
        assert revision["skipped"] in shown
        assert " ".join(revision["thought"].split()) in shown
        for passage in revision["evidence"]:
            assert " ".join(passage["text"].split()) in shown
            assert passage["source"] in shown
    assert seen.texts("ins") == ["(checked against 103)"]
    assert seen.texts("div", "diff") == [" ".join("".join(THOUGHTS[:2]).split()) + " (checked against 103)"]
    assert seen.all("section")[0].attributes["id"] == "warnings"
    assert result["warnings"][0] in seen.all("section")[0].text


def test_rat_the_rest_of_a_long_text_is_folded() -> None:
    result = rat()
    before = f"{'Some words. ' * 100}It was built in 1566. {'Other words. ' * 100}"
    result["revisions"] = [
        {**result["revisions"][1], "before": before, "after": before.replace("1566", "1567")}
    ]
    seen = Reader(page("rat", QUESTION, result, []))
    short, whole = seen.all("div", "diff")
    assert (short.text.count("…"), len(short.text) < 400) == (2, True)
    assert len(whole.text) > 2_000
    assert (seen.texts("del"), seen.texts("ins")) == (["1566"] * 2, ["1567"] * 2)


def test_aag_steps_questions_critiques_and_procedures() -> None:
    result = aag(2)
    seen = Reader(page("aag", GOAL, result, STEPS))
    shown = {part.attributes["id"]: part.text for part in seen.all("section")}
    assert seen.texts("h1") == [GOAL["question"]]
    assert GOAL["resources"] in shown["steps"]
    for step in result["steps"]:
        assert step in shown["steps"]
    for asked in result["questions"]:
        assert f"{asked['question']}{asked['answer']}" in shown["questions"]
    assert seen.texts("h3")[-3:] == [
        "Critique 1 applied and looked at again",
        "Critique 2 applied and looked at again",
        "Critique 3 nothing to change",
    ]
    assert "Edit 1 the second step." in shown["critiques"]
    for passage in result["evidence"]:
        assert f"{passage['score']:.2f} {passage['title']}" in shown["procedures"]


def test_aag_the_procedures_of_an_answer_are_linked() -> None:
    seen = Reader(page("aag", GOAL, aag(), []))
    links = [link for link in seen.all("a") if (link.attributes["href"] or "").startswith("#procedure-")]
    places = {f"#{item.attributes.get('id')}": item.text for item in seen.all("li")}
    assert links
    for link in links:
        assert link.text in places[str(link.attributes["href"])]


def test_aag_the_procedures_that_were_shown_instead_of_an_answer_are_linked() -> None:
    result = aag(answers=False)
    text = " ".join(Reader(page("aag", GOAL, result, [])).texts("section"))
    assert text.count("Not answered; what was found:") == len(result["questions"]) > 0
    assert "No answer was found." not in text


def test_aag_resources_as_a_list_and_nothing_asked() -> None:
    given = {"question": "bake", "resources": ["flour", "salt"]}
    seen = Reader(page("aag", given, aag(questions=False, critic=False), []))
    told = " ".join(seen.texts("section"))
    assert "Resources flour, salt" in told
    assert "Nothing was asked." in told
    assert "The critic was not asked." in told


def test_a_baseline_answer_and_passages() -> None:
    result = rag()
    seen = Reader(page("rag", QUESTION, {**result, "warnings": ["a warning"]}, STEPS))
    shown = {part.attributes["id"]: part.text for part in seen.all("section")}
    assert list(shown) == ["warnings", "answer", "evidence", "cost"]
    assert (shown["warnings"], shown["answer"]) == ("Warningsa warning", "AnswerHaldruvin built it.")
    for passage in result["evidence"]:
        assert f"{passage['score']:.2f} {passage['title']}{passage['text']}" in shown["evidence"]
    assert seen.texts("ul", "facts") == [f"{len(result['evidence'])} passages1 model call12.5 s"]


def test_a_baseline_that_does_not_search_has_no_section_of_evidence() -> None:
    told = {**rag(), "evidence": []}
    names = [part.attributes["id"] for part in Reader(page("cot", QUESTION, told, [])).all("section")]
    assert names == ["answer", "cost"]


def test_every_graph_has_a_page() -> None:
    for name in GRAPHS:
        result = {"rat": rat, "aag": aag, "rpg": rpg}.get(name, rag)()
        assert page(name, QUESTION, result, []).startswith("<!doctype html>")


def test_time_and_tokens_by_node() -> None:
    result = rat("x..", window=3)
    seen = Reader(page("rat", QUESTION, result, STEPS))
    rows = [row for row in seen.texts("tr") if row.startswith(("draft", "Total", "of which"))]
    used = result["usage"]
    cells = [f"{used['nodes']['draft'][name]:,}" for name in ("calls", "input_tokens", "output_tokens")]
    assert rows[0] == "draft13.25 s" + "".join(cells)
    assert rows[1].startswith(f"Total312.5 s{used['calls']}")
    assert rows[2].startswith(f"of which discarded{used['discarded']['calls']}")
    assert rows[3] == "draft0.25 s3.50 s"
    assert [bar.attributes["x"] for bar in seen.all("rect")] == ["0.00", "2.00", "28.00"]


def test_a_long_timeline_is_folded_and_none_is_no_timeline() -> None:
    many = [StepTime("step", number, number + 1) for number in range(100)]
    [folded] = [part for part in Reader(page("rat", QUESTION, rat(), many)).all("details") if "Step by step" in part.text]  # fmt: skip
    assert "open" not in folded.attributes
    assert "Step by step" not in page("rat", QUESTION, rat(), [])


@pytest.mark.parametrize(("method", "given", "run"), RUNS)
def test_a_screen_reader_finds_its_way(method: str, given: Any, run: Any) -> None:
    seen = Reader(page(method, given, run(), STEPS))
    levels = [int(element.tag[1]) for element in seen.seen if re.fullmatch("h[1-6]", element.tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(below <= above + 1 for above, below in pairwise(levels))
    assert all(len(seen.all(landmark)) == 1 for landmark in ("header", "nav", "main", "footer"))
    names = [element.attributes["id"] for element in seen.seen if "id" in element.attributes]
    assert len(names) == len(set(names))
    for element in seen.seen:
        assert element.attributes.get("aria-labelledby", names[0]) in names
        if (target := element.attributes.get("href") or "").startswith("#"):
            assert target[1:] in names


def test_an_unknown_method() -> None:
    with pytest.raises(BadInput, match="there is no report for 'gpr'; there is one for rat, aag, rpg"):
        page("gpr", QUESTION, rat(), [])


def test_nothing_to_show() -> None:
    empty = {**rat(), "answer": "", "draft": "", "revisions": [], "evidence": [], "warnings": []}
    told = " ".join(Reader(page("rat", QUESTION, empty, [])).texts("section"))
    assert "No thought was checked." in told
    assert "Nothing was found." in told


PAIRS = [
    *((ink, ground) for ink in ("ink", "quiet", "accent") for ground in ("paper", "card")),
    *(
        ("added-ink", "added"),
        ("removed-ink", "removed"),
        ("warm-ink", "warm"),
        ("warm-ink", "card"),
        ("lit-ink", "lit"),
    ),
]


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_every_colour_can_be_read(mode: int) -> None:
    style = files("stepcraft.report").joinpath("page.css").read_text("utf-8")
    colours = dict(re.findall(r"--([\w-]+): #(\w{6})", style.split(":root {")[1 + mode]))
    for ink, ground in PAIRS:
        one, other = sorted((_brightness(colours[ink]), _brightness(colours[ground])))
        assert (other + 0.05) / (one + 0.05) >= 4.5, f"{ink} on {ground}"


def _brightness(colour: str) -> float:
    """Return the relative luminance as WCAG defines it."""
    shares = [int(colour[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in shares
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
