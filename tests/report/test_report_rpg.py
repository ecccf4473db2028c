"""The page of a run of RPG: which evidence it shows for each sentence, and which sentences have none."""

from __future__ import annotations

from typing import Any

import pytest

from stepcraft.report import page
from tests.report.reports import STEPS, Reader, rpg, segment
from tests.shelf import QUESTION


def untraced() -> dict[str, Any]:
    """Return a result of an earlier version, which does not say what each sentence rests on."""
    result = rpg()
    del result["sentences"]
    return result


def traced(*sentences: tuple[str, list[str], bool]) -> dict[str, Any]:
    """Return a result whose answer consists of these sentences."""
    made = [{"text": text, "evidence": cited, "supported": holds} for text, cited, holds in sentences]
    return {**rpg(), "sentences": made, "answer": "".join(text for text, *_ in sentences)}


def read(result: dict[str, Any], **settings: Any) -> Reader:
    return Reader(page("rpg", {**QUESTION, **settings}, result, STEPS))


def shown(seen: Reader) -> list[tuple[str, str, list[str]]]:
    """Return each sentence that has evidence with its passage numbers and its quotes."""
    marks, panels = seen.all("button", "mark"), seen.all("div", "evidence")
    quotes = [[quote for quote in _quotes(seen) if quote in panel.text] for panel in panels]
    return [
        (label, mark.text, quoted)
        for label, mark, quoted in zip(seen.texts("label"), marks, quotes, strict=True)
    ]


def _quotes(seen: Reader) -> list[str]:
    return list(dict.fromkeys(seen.texts("blockquote")))


BUILT, ORDERED = "It was built in 1566 by Mimar Haldruvin.", "In 1566 Selvaran ordered a bridge of stone."
FELL, REBUILT = "The bridge fell in November 1993.", "It was rebuilt in 2004 with stone of the old quarry."
BOTH = f"{FELL} {REBUILT}"


def test_a_sentence_opens_the_evidence_that_it_cites() -> None:
    assert shown(read(rpg())) == [
        ("Mimar Haldruvin built it in 1566.", "1, 2", [BUILT, ORDERED]),
        ("Selvaran had ordered it.", "2", [ORDERED]),
        ("It fell in 1992.", "3", [BOTH]),
        ("It was rebuilt in 2004.", "3", [BOTH]),
    ]


def test_a_sentence_without_evidence_is_marked_and_counted() -> None:
    seen = read(
        traced(("He built it.", ["p1"], True), (" It is old.", [], False), (" So they say.", [], False))
    )
    assert seen.texts("span", "unsupported") == ["It is old.", "So they say."]
    assert [mark.attributes["aria-label"] for mark in seen.all("span", "without")] == ["no evidence"] * 2
    assert seen.texts("div", "answer")[0].endswith("It is old.∅ So they say.∅")
    assert (
        seen.texts("p", "note")[0]
        == "1 sentence rests on evidence, 2 do not. ∅ marks a sentence that does not rest on evidence."
    )


def test_a_sentence_that_a_check_objected_to_opens_what_it_cites_with_the_objection() -> None:
    seen = read(rpg())
    assert seen.texts("label", "unsupported") == ["It fell in 1992."]
    objection = "A check found that this evidence does not bear the sentence out."
    assert [objection in panel.text for panel in seen.all("div", "evidence")] == [False, False, True, False]
    marks = [mark.attributes["aria-label"] for mark in seen.all("span", "without")]
    assert marks == ["not borne out by its evidence", "no evidence"]
    assert seen.texts("p", "note")[0] == (
        "3 sentences rest on evidence, 2 do not. ∅ marks a sentence that does not rest on evidence."
        " A check found that 1 of them is not borne out by what it cites."
    )


@pytest.mark.parametrize(
    ("holds", "told"),
    [
        ([True], "1 sentence rests on evidence."),
        ([True, True], "Each of the 2 sentences rests on evidence."),
        (
            [True, True, False],
            "2 sentences rest on evidence, 1 does not. ∅ marks a sentence that does not rest on evidence.",
        ),
        ([False, False], "No sentence rests on evidence."),
    ],
)
def test_how_many_sentences_rest_on_evidence(holds: list[bool], told: str) -> None:
    sentences = [(f"Sentence {place}. ", ["p1"] * one, one) for place, one in enumerate(holds)]
    assert read(traced(*sentences)).texts("p", "note")[0] == told


def test_marks_in_the_sentences_are_shown_once_and_other_brackets_stay() -> None:
    cited = traced(("He built it [1][2].", ["p1", "p2"], True), (" It is old.", [], False))
    assert shown(read(cited, citations="inline")) == [("He built it.", "1, 2", [BUILT, ORDERED])]
    plain = traced(("The array a[1] holds it.", ["p1"], True))
    assert shown(read(plain, citations="ids")) == [("The array a[1] holds it.", "1", [BUILT])]


def test_the_text_of_a_segment_is_shown_without_the_numbers_that_the_answer_does_not_use() -> None:
    result = rpg()
    result["segments"] = [{**result["segments"][1], "text": "It fell [2]. It was rebuilt [2]."}]
    assert "It fell. It was rebuilt." in read(result).texts("article")[0]
    assert "It fell [2]. It was rebuilt [2]." in read(result, paper=True).texts("article")[0]


def test_chosen_sentences_of_passages_that_the_answer_does_not_cite_are_folded() -> None:
    result = traced(("It fell in 1993.", ["p3"], True))
    result["evidence"] = result["evidence"][2:]
    seen = read(result)
    assert shown(seen) == [("It fell in 1993.", "1", [BOTH])]
    folded = next(part for part in seen.all("details") if part.text.startswith("2 chosen"))
    assert folded.text == f"2 chosen sentences of passages that the answer does not cite{BUILT}{ORDERED}"


def test_neighbours_in_a_passage_are_one_quotation() -> None:
    result = traced(("So it was.", ["p1"], True))
    chosen = [("p1", 0, "The first."), ("p1", 1, "The second."), ("p1", 3, "The fourth.")]
    result["segments"] = [segment("who", chosen, "So it was."), segment("when", chosen[1:2], "So it was.")]
    assert read(result).texts("div", "evidence")[0].count("The second.") == 1
    assert read(result).texts("blockquote")[:2] == ["The first. The second.", "The fourth."]


def test_untraced_the_sentences_of_a_segment_share_its_evidence() -> None:
    seen = read(untraced())
    assert shown(seen) == [
        ("Mimar Haldruvin built it in 1566.", "1, 2", [BUILT, ORDERED]),
        ("Selvaran had ordered it.", "1, 2", [BUILT, ORDERED]),
        ("It fell in 1992.", "3", [BOTH]),
        ("It was rebuilt in 2004.", "3", [BOTH]),
    ]
    assert seen.texts("span", "unsupported") == ["It is a place of the world's heritage."]
    assert seen.texts("p", "note")[0].startswith("4 sentences rest on evidence, 1 does not.")


def test_marks_decide_where_there_are_some() -> None:
    result = untraced()
    first = {
        **result["segments"][0],
        "text": "Haldruvin built it [1]. Selvaran ordered it. [2] Both lived then [1][2]. So they say.",
    }
    result |= {"segments": [first], "answer": first["text"]}
    seen = read(result, citations="inline")
    assert shown(seen) == [
        ("Haldruvin built it.", "1", [BUILT]),
        ("Selvaran ordered it.", "2", [ORDERED]),
        ("Both lived then.", "1, 2", [BUILT, ORDERED]),
    ]
    assert "So they say." in seen.texts("div", "answer")[0]


def test_marks_are_text_where_nobody_asked_for_them() -> None:
    result = untraced()
    first = {**result["segments"][0], "text": "The array a[1] holds it."}
    seen = read({**result, "segments": [first], "answer": first["text"]})
    assert shown(seen) == [("The array a[1] holds it.", "1, 2", [BUILT, ORDERED])]


def test_marks_of_no_passage_are_no_evidence() -> None:
    result = untraced()
    text = "It stands [9]. It fell [0]. It rose [3, 99]."
    seen = read({**result, "segments": [{**result["segments"][1], "text": text}], "answer": text}, citations="inline")  # fmt: skip
    assert shown(seen) == [("It rose.", "3", [BOTH])]


def test_a_model_that_makes_no_marks_leaves_the_sentences_what_their_segment_has() -> None:
    assert shown(read(untraced(), citations="inline")) == shown(read(untraced()))


def test_a_combined_answer_rests_on_all_segments() -> None:
    seen = read({**untraced(), "answer": "Haldruvin, 1566."})
    assert shown(seen) == [("Haldruvin, 1566.", "1–3", [BUILT, ORDERED, BOTH])]


def test_no_word_of_the_answer_is_lost() -> None:
    result = untraced()
    texts = [
        "# A heading\n\n- one,  two\n- three\n\n",
        "```\nx = a[1]. b\n```",
        "中文。第二句！",
        "e.g. Dr. No",
    ]
    result["segments"] = [{**result["segments"][1], "text": text} for text in texts]
    result["answer"] = "\n\n".join(text.strip() for text in texts)
    seen = read(result)
    told = "".join(seen.texts("div", "answer"))
    for label in seen.texts("label"):
        assert label in told
    said = result["answer"].replace("`", "").replace("# A", "A")
    assert "".join("".join(seen.texts("label")).split()) == "".join(said.split())
    assert set(seen.texts("strong")) == {"A heading"}
    assert "x = a[1]. b" in seen.texts("code", "block")


def test_answered_without_evidence() -> None:
    nothing = {**untraced(), "answer": "42. So it is.", "plans": [], "segments": [], "evidence": []}
    told = " ".join(read(nothing).texts("section"))
    assert "42. So it is." in told
    assert "No sentence rests on evidence." in told
    assert "Nothing was planned: the question was answered at once." in told
    assert "Nothing was found." in told
    assert Reader(page("rpg", QUESTION, {**nothing, "answer": ""}, []))


def test_plans_and_the_chosen_sentences_in_their_passages() -> None:
    result = rpg()
    seen = read(result)
    assert seen.texts("h3") == ["who built it", "how it was rebuilt", "what it is today without evidence"]
    assert seen.texts("mark") == [BUILT, ORDERED, FELL, REBUILT]
    first = seen.texts("article")[0]
    assert f"The old bridge stood until 1993. {BUILT} It has one arch." in first
    assert "1 sentence of Title 1" in first
    facts = [
        "3 segments",
        "1 without evidence",
        "4 chosen sentences",
        "3 cited passages",
        "6 model calls",
        "12.5 s",
    ]
    assert seen.texts("ul", "facts") == ["".join(facts)]


def test_what_is_far_from_a_chosen_sentence_is_left_out_of_a_long_passage() -> None:
    result = rpg()
    far = "Far away. " * 10_000
    result["evidence"][0]["text"] = f"{far}{BUILT.replace(' ', '  ')} {far}"
    seen = read(result)
    assert [seen.texts("mark")[0], seen.texts("mark")[1]] == [BUILT, ORDERED]
    assert len(seen.texts("article")[0]) < 1_000


def test_blank_lines_of_a_passage_are_shown_as_one() -> None:
    result = rpg()
    result["evidence"][0]["text"] = f"Before.\n \n\n\n\n{BUILT}\n\nAfter."
    assert f"Before.\n\n<mark>{BUILT}</mark>\n\nAfter." in page("rpg", QUESTION, result, [])


def test_a_chosen_sentence_that_its_passage_does_not_have_is_shown_all_the_same() -> None:
    result = rpg()
    result["segments"] = [segment("who", [("p1", 0, "Joined of fragments."), ("p1", 1, BUILT)], "He did.")]
    assert read(result).texts("mark") == ["Joined of fragments.", BUILT]


def test_a_passage_that_was_chosen_whole_is_cut_where_it_is_quoted() -> None:
    result = traced(("He did.", ["p1"], True), (" He did.", ["p1"], True))
    whole = "All of it. " * 1_000
    result["evidence"][0]["text"] = whole
    result["segments"] = [segment("who", [("p1", 0, whole.strip())], "He did. He did.")]
    seen = read(result)
    assert all(len(quote) < 700 and quote.endswith(" …") for quote in seen.texts("blockquote"))
    assert whole.strip() in seen.texts("article")[0]


def test_notes_for_paper_name_each_passage_once() -> None:
    seen = read(rpg())
    assert seen.texts("ol", "footnotes") == [
        f"1 Title 1{BUILT}https://example.org/12 Title 2{ORDERED}https://example.org/2"
        f"3 Title 3{BOTH}https://example.org/3"
    ]


@pytest.mark.parametrize(
    "text", ["\t" * 300_000 + "y [1]", "." * 300_000 + "x [1]", "[" * 100_000 + "1].", '!"' * 50_000, "! " * 50_000 + "[1]"]
)  # fmt: skip
def test_odd_texts_take_no_time(text: str) -> None:
    answer = f"x{text}"
    seen = read({**untraced(), "answer": answer}, citations="inline")
    assert seen.texts("div", "answer")


def test_a_passage_of_a_megabyte() -> None:
    result = traced(*[("He did. ", ["p1"], True)] * 30)
    result["evidence"][0]["text"] = whole = "Some sentence that is here. " * 40_000
    result["segments"] = [segment("who", [("p1", 0, whole.strip())], "He did. " * 30)]
    text = page("rpg", QUESTION, result, [])
    assert len(text) < 3_000_000, "whole in the passages and where it was chosen, no more"
