"""The page of a run of RPG: the evidence of each sentence, and the sentences without any."""

from __future__ import annotations

from typing import Any

import pytest

from stepcraft.report import page
from tests.report.reports import EVIDENCE, QUESTION, STEPS, Reader, rpg, short

BUILT, ORDERED = "It was built in 1566 by Mimar Haldruvin.", EVIDENCE[1]["text"].split(" Before")[0]
FELL, REBUILT = (
    "The bridge fell in November 1993.",
    "It was rebuilt in 2004 with stone of a quarry.",
)


def read(result: dict[str, Any]) -> Reader:
    return Reader(page("rpg", QUESTION, result, STEPS))


def shown(seen: Reader) -> list[tuple[str, str, list[str]]]:
    """Return each sentence that has evidence with its passage numbers and its quotes."""
    quotes = list(dict.fromkeys(seen.texts("blockquote")))
    return [
        (label, mark, [quote for quote in quotes if quote in panel])
        for label, mark, panel in zip(
            seen.texts("label"),
            seen.texts("button", "mark"),
            seen.texts("div", "evidence"),
            strict=True,
        )
    ]


def test_a_sentence_opens_what_its_passages_have_on_it() -> None:
    assert shown(read(rpg())) == [
        ("Mimar Haldruvin built it in 1566.", "1, 2", [BUILT, ORDERED]),
        ("Selvaran had ordered it.", "2", [ORDERED]),
        ("Its state is bridge.fallen.", "3", [FELL]),
        ("It was rebuilt in 2004.", "3", [REBUILT]),
    ]


def test_unsupported_sentences_are_marked_and_counted() -> None:
    seen = read(rpg())
    assert seen.texts("label", "unsupported") == ["Its state is bridge.fallen."]
    assert seen.texts("span", "unsupported") == ["It is a place of the world's heritage."]
    reasons = [mark.attributes["aria-label"] for mark in seen.all("span", "without")]
    assert reasons == ["not borne out by its evidence", "no evidence"]
    objections = ["objection" in panel for panel in page("rpg", QUESTION, rpg()).split("popover=")]
    assert objections[1:] == [False, False, True, False]
    counts = "Sentences that rest on evidence: 3 of 5. ∅ marks the others."
    assert seen.texts("p", "note")[0] == counts


def test_words_that_the_check_did_not_confirm_are_shown_with_the_evidence() -> None:
    result = rpg([("It was built in 1566 for <600> ducats.", [EVIDENCE[0]["id"]], False)])
    result["sentences"][0]["unconfirmed"] = ["for <600> ducats"]
    seen = read(result)
    assert seen.texts("p", "objection") == ["The check did not confirm: for <600> ducats"]


def test_an_answer_without_evidence() -> None:
    seen = read(rpg([("So it is.", [], False)], evidence=[]))
    assert seen.texts("div", "answer") == ["So it is.∅"]
    assert seen.all("ol", "footnotes") == []
    assert "There is none." in seen.sections()["evidence"]


def test_a_short_answer_stands_above_the_sentences_by_which_it_was_found() -> None:
    text = read(short()).sections()["answer"]
    assert text.startswith("AnswerMimar HaldruvinHow it was foundMimar Haldruvin built it in 1566.")


def test_passages_that_the_evidence_does_not_have_are_not_cited() -> None:
    assert shown(read(rpg([("It rose.", ["gone", "p3"], True)])))[0][1] == "3"


def test_no_word_of_the_answer_is_lost() -> None:
    texts = [
        "# A heading\n\n- one,  two\n",
        "Write this:\n\n```python\nx = a[1]. b\n```\n\n",
        "```\nalone\n```\n",
        "中文。",
        "e.g. Dr. No",
    ]
    seen = read(rpg([(text, ["p1"] * (place % 2), True) for place, text in enumerate(texts)]))
    words = "".join("".join(seen.texts("div", "answer")).split())
    for word in ("Aheading-one,two", "Writethis:", "x=a[1].b", "alone", "中文。", "e.g.Dr.No"):
        assert word in words
    assert seen.texts("strong") == ["A heading"]
    assert seen.texts("code", "block") == ["x = a[1]. b", "alone"]
    assert seen.texts("label") == ["Write this:", "中文。"]


def test_changes_are_shown_without_the_numbers_that_the_answer_does_not_use() -> None:
    revision = {"round": 1, "part": 1, "evidence": ["p1", "gone"]}
    changed = {**revision, "before": "In 1565 [p7].", "after": "In 1566 [p8]."}
    cited = {**revision, "before": "In 1565 [p7].", "after": "In 1565 [p8]."}
    seen = read(rpg(revisions=[changed, cited]))
    assert (seen.texts("del"), seen.texts("ins")) == (["1565"], ["1566"])
    assert seen.texts("article") == [
        "Part 1 round 1In 15651566.Title 11 passage that the answer does not cite"
    ]
    assert "[1]" not in seen.sections()["changes"]


def test_a_passage_without_words_of_the_sentence_is_not_quoted() -> None:
    assert shown(read(rpg([("Sie stürzte ein.", ["p3"], True)]))) == [("Sie stürzte ein.", "3", [])]


def test_numbers_in_brackets_that_are_no_marks_stay() -> None:
    revision = {
        "round": 1,
        "part": 1,
        "evidence": [],
        "before": "Press [8].",
        "after": "Press [9].",
    }
    sentences = [("Press [9] to stop [1].", ["p1"], True)]
    seen = read(rpg(sentences, first_draft="Press [8].", revisions=[revision]))
    assert seen.texts("label") == ["Press [9] to stop."]
    assert len(seen.texts("article")) == 1
    assert seen.sections()["changes"].endswith("Press [8].")


@pytest.mark.parametrize("text", ["\t" * 300_000 + "y [1]", "." * 300_000 + "x", "! " * 50_000])
def test_odd_texts(text: str) -> None:
    assert read(rpg([(text, ["p1"], True)])).texts("div", "answer")
