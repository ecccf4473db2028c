"""Marks in the answer: they cite passages as the output numbers them, and nothing that is not there."""

from typing import Any

import pytest

from stepcraft import RpgContext, build_rpg
from tests.bridge import GIVEN, PLANS, planner
from tests.scripted import ScriptedModel
from tests.shelf import section

INLINE = {"citations": "inline", "max_evidence_tokens": 14}
SEEN = '<evidence id="'


def citing(marks: str) -> Any:
    """A model that puts these marks behind each segment; {} are the numbers that it was shown."""
    plain = planner(combined="Mimar Serun [1][2][9]")

    def reply(node: str, prompt: str) -> str:
        shown = "".join(f"[{part.partition(chr(34))[0]}]" for part in prompt.split(SEEN)[1:])
        text = plain(node, prompt)
        return f"{text[:-1]} {marks.format(shown)}." if node == "answer" else text

    return reply


def texts(result: Any) -> list[str]:
    return [segment["text"] for segment in result["segments"]]


def test_the_numbers_are_those_of_the_output() -> None:
    result = build_rpg(model=ScriptedModel(citing("{}"))).invoke(GIVEN, context=INLINE)
    ids = [passage["id"] for passage in result["evidence"]]
    assert sorted(ids) == ["bridge", "serun"]
    for segment in result["segments"]:
        marks = "".join(f"[{ids.index(id_) + 1}]" for id_ in segment["evidence"])
        assert segment["text"] == f"On {segment['plan']}: so it was {marks}.".replace(" .", ".")
    assert result["answer"] == "\n\n".join(texts(result))
    assert "[1]" in result["answer"]
    assert "[2]" in result["answer"]


def test_a_passage_keeps_its_number_in_every_prompt() -> None:
    model = ScriptedModel(citing("{}"))
    result = build_rpg(model=model).invoke(GIVEN, context={**INLINE, "paper": True})
    told = [passage["text"] for passage in result["evidence"]]
    shown = [part.partition('">\n') for call in model.calls for part in call.prompt.split(SEEN)[1:]]
    for number, _, rest in shown:
        sentence = rest.partition("\n</evidence>")[0].splitlines()[-1]
        assert sentence in told[int(number) - 1]
    assert {number for number, _, _ in shown} == {"1", "2"}


@pytest.mark.parametrize("marks", ["[7]", "[0]", "[8, 9]", "\u301077\u3011", "[Evidence 12]", "[5-8]"])
def test_marks_that_cite_nothing_are_left_out(marks: str) -> None:
    result = build_rpg(model=ScriptedModel(citing(marks))).invoke(GIVEN, context=INLINE)
    assert texts(result) == [f"On {plan}: so it was." for plan in result["plans"]]


def test_a_segment_cites_its_own_evidence_alone() -> None:
    result = build_rpg(model=ScriptedModel(citing("[1][2]"))).invoke(GIVEN, context=INLINE)
    ids = [passage["id"] for passage in result["evidence"]]
    for segment in result["segments"]:
        cited = [ids[number - 1] for number in (1, 2) if f"[{number}]" in segment["text"]]
        assert sorted(cited) == sorted(segment["evidence"])


def test_the_last_call_keeps_the_marks_that_the_segments_have() -> None:
    model = ScriptedModel(citing("{}"))
    result = build_rpg(model=model).invoke({**GIVEN, "kind": "multihop"}, context=INLINE)
    assert result["answer"] == "Mimar Serun [1][2]"
    assert section(model.calls[-1].prompt, "text") == "\n\n".join(texts(result))


def test_marks_are_asked_for_only_inline_and_where_there_is_evidence() -> None:
    def formats(**context: Any) -> set[bool]:
        model = ScriptedModel(planner())
        build_rpg(model=model).invoke(GIVEN, context={"paper": True, "max_evidence_tokens": 14, **context})
        return {
            "[1]" in section(call.prompt, "reply_format") for call in model.calls if call.node == "answer"
        }

    assert formats() == {False}
    assert formats(citations="inline") == {True}
    assert formats(citations="inline", retrieve=False) == {False}


def test_ids_name_the_passages_of_each_segment() -> None:
    result = build_rpg(model=ScriptedModel(planner())).invoke(GIVEN, context=RpgContext(paper=True))
    assert [segment["plan"] for segment in result["segments"]] == PLANS
    known = {passage["id"] for passage in result["evidence"]}
    assert {id_ for segment in result["segments"] for id_ in segment["evidence"]} == known
