"""The keyless model in RPG: its plans, segments and short answers are made of what it is given."""

import time

import pytest
from langchain_core.messages import HumanMessage, SystemMessage

from stepcraft.models.keyless.model import ExtractiveModel
from stepcraft.text.sections import section

QUESTION = section("question", "Who is the mother of the director of the film Ida?")
TOLD = "Ida is a film by Marek Rawlinowski."
EVIDENCE = [
    section("evidence", "Ida is a film by Marek Rawlinowski.\nBread is baked slowly.", id="3"),
    section("evidence", "The mother of Marek Rawlinowski taught English.", id="7"),
]


def reply(kind: str, *sections: str, form: str = "As you like.") -> str:
    asked = [SystemMessage(section("reply_format", form, id=kind)), HumanMessage("\n\n".join(sections))]
    return ExtractiveModel().invoke(asked).text


def test_the_first_plan_is_the_question() -> None:
    assert reply("plan", QUESTION) == "Who is the mother of the director of the film Ida?"


@pytest.mark.parametrize("director", ["Marek Rawlinowski", "Åsa Öhrn", "Łucja Środa", "Иван Лесной"])
def test_the_next_plan_asks_for_what_was_not_said(director: str) -> None:
    plans = section("plans", "1. Who is the mother of the director of the film Ida?")
    told = section("text", f"Ida is a film by {director}.")
    assert reply("plan", QUESTION, plans, told) == f"{director}: mother director film"


def test_nothing_is_planned_twice() -> None:
    text = section("text", TOLD)
    planned: list[str] = []
    while (plan := reply("plan", QUESTION, section("plans", "\n".join(planned)), text)) != "<complete>":
        assert plan not in planned
        planned.append(f"{len(planned) + 1}. {plan}")
    assert len(planned) < 4


def test_all_that_was_asked_is_said() -> None:
    text = section("text", "The mother of the director of the film Ida taught English.")
    assert reply("plan", QUESTION, section("plans", "1. Ida"), text) == "<complete>"


def test_a_segment_is_made_of_sentences_of_the_evidence() -> None:
    plan = section("plan", "the mother of Marek Rawlinowski")
    assert "The mother of Marek Rawlinowski taught English." in reply("segment", QUESTION, plan, *EVIDENCE)
    again = reply("segment", QUESTION, section("text", TOLD), plan, *EVIDENCE)
    assert TOLD not in again


def test_sentences_are_cited_where_marks_are_asked_for() -> None:
    plan = section("plan", "the mother of Marek Rawlinowski")
    said = reply("segment", QUESTION, plan, *EVIDENCE, form="With marks like [1].")
    assert "taught English [7]." in said
    assert "Rawlinowski [3]." in said


def test_without_evidence_it_says_so() -> None:
    assert reply("segment", QUESTION, section("plan", "the mother")) == "No evidence was found for this."


def test_the_short_answer_is_the_sentence_that_fits_best() -> None:
    text = section(
        "text", f"{TOLD}\n\nThe mother of the director was a teacher.\n\nNo evidence was found for this."
    )
    assert reply("combine", QUESTION, text) == "The mother of the director was a teacher."


def test_large_material_is_no_trap() -> None:
    large = "The bridge of Mostar. [1] - " * 40_000
    begun = time.perf_counter()
    for kind in ("plan", "segment", "combine"):
        reply(kind, QUESTION, section("text", large), section("evidence", large, id="1"))
    assert time.perf_counter() - begun < 20  # what is quadratic takes minutes
