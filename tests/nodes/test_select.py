"""Selecting sentences: which, how many, in which order, and what a bad passage does."""

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcraft.text.clean import normalised, tokens
from tests.selecting import BRIDGE, BUILDER, CHEESE, Letters, Scorer, Selecting, both, evidence

WORDS = st.sampled_from(
    ["bridge", "built", "cheese", "Mostar", "the", "in", "1566", "它", "a.", "No!", "end. "]
)
TEXT = st.lists(WORDS, max_size=30).map(" ".join)
PASSAGES = st.lists(TEXT, max_size=5).map(lambda texts: evidence(*texts))
SELECTING = Selecting()


def test_what_fits_the_plan_is_selected_with_its_place() -> None:
    found = both(SELECTING, "who built the bridge of Mostar", evidence(CHEESE, BRIDGE))
    assert [(one["passage"], one["position"]) for one in found] == [("p1", 0), ("p1", 1)]
    assert found[1]["text"] == BUILDER
    assert SELECTING.warnings == []


def test_sentences_stand_in_the_order_of_the_passages_not_of_their_scores() -> None:
    falling = Scorer(lambda pairs: [len(pairs) - place for place in range(len(pairs))][::-1])
    found = both(Selecting(falling), "x", evidence(CHEESE, BRIDGE))
    assert [(one["passage"], one["position"]) for one in found] == [
        (name, place) for name in ("p0", "p1") for place in range(3)
    ]


def test_the_title_is_scored_with_each_sentence() -> None:
    text = "It was completed in 1566. Tourists love the view."
    found = SELECTING(
        "Mostar bridge completed", evidence(text, text.upper(), titles=["Mostar bridge", "Brie"])
    )
    assert found[0]["passage"] == "p0"
    best = max(found, key=lambda one: one["score"])
    assert (best["passage"], best["position"]) == ("p0", 0)


@pytest.mark.parametrize("plan", ["the population of Japan in 1950", "量子力学", "…"])
def test_nothing_is_selected_where_nothing_fits(plan: str) -> None:
    assert both(SELECTING, plan, evidence(CHEESE)) == []
    assert SELECTING.warnings == []


def test_a_threshold_leaves_out_what_is_not_above_it() -> None:
    scorer = Scorer(lambda pairs: [0.1, 0.5, 0.9])
    assert [one["score"] for one in Selecting(scorer)("x", evidence(CHEESE), threshold=0.5)] == [0.9]
    assert Selecting(scorer)("x", evidence(CHEESE), threshold=0.95) == []


def test_what_earlier_segments_used_is_not_selected_again() -> None:
    passages = evidence(BRIDGE)
    first = SELECTING("who built the bridge of Mostar", passages)
    again = SELECTING("who built the bridge of Mostar", passages, used=first, threshold=-1.0)
    assert [one["position"] for one in again] == [2]


def test_the_same_sentence_of_two_passages_is_selected_once() -> None:
    found = SELECTING("who built the bridge", evidence(BUILDER, CHEESE, BUILDER.replace(" ", "  ")))
    assert [one["passage"] for one in found] == ["p0"]


def test_passages_of_one_id_count_once() -> None:
    found = SELECTING("who built the bridge", [*evidence(BUILDER), *evidence(BRIDGE)])
    assert [one["text"] for one in found] == [BUILDER]


def test_the_best_are_kept_within_the_budget() -> None:
    found = SELECTING(
        "who built the bridge of Mostar", evidence(BRIDGE, CHEESE), max_evidence_tokens=tokens(BUILDER)
    )
    assert [one["text"] for one in found] == [BUILDER]


def test_without_a_plan_the_question_selects() -> None:
    assert SELECTING("  ", evidence(BRIDGE)) == SELECTING("Who built it?", evidence(BRIDGE)) != []


def test_whole_passages_are_selected_as_they_are() -> None:
    whole = both(SELECTING, "x", evidence(CHEESE, "", BRIDGE), select=False)
    assert [(one["passage"], one["position"], one["text"]) for one in whole] == [
        ("p0", 0, CHEESE),
        ("p2", 0, BRIDGE),
    ]


def test_the_whole_passage_that_crosses_the_budget_is_cut() -> None:
    first, second = SELECTING(
        "x", evidence(CHEESE, BRIDGE), select=False, max_evidence_tokens=tokens(CHEESE) + 5
    )
    assert first["text"] == CHEESE
    assert second["text"] == BRIDGE[: len(second["text"]) - 2] + " …"
    assert tokens(second["text"]) <= 5


@given(TEXT, PASSAGES, st.integers(1, 40), st.booleans(), st.none() | st.floats(-1, 1))
@settings(max_examples=60, deadline=None)
def test_order_budget_and_no_sentence_twice(
    plan: str, passages: list, budget: int, select: bool, threshold: float | None
) -> None:
    limits = {"max_evidence_tokens": budget, "threshold": threshold, "select": select}
    first = SELECTING(plan, passages, **limits)
    places = [(one["passage"], one["position"]) for one in first]
    assert places == sorted(set(places))
    assert sum(tokens(one["text"]) for one in first) <= budget
    if select:
        second = SELECTING(plan, passages, used=first, **limits)
        texts = [normalised(one["text"]) for one in (*first, *second)]
        assert len(texts) == len(set(texts))
        assert all(one["score"] > (0 if threshold is None else threshold) for one in first)


@pytest.mark.parametrize(
    "texts", [[], [""], ["", " \n"], ["\x00"], ["…"], ["\ud800"], ["e" + "\u0301" * 2_000]]
)
def test_passages_without_sentences(texts: list[str]) -> None:
    both(SELECTING, "who built the bridge", evidence(*texts))
    assert SELECTING.warnings == []
    assert [one["text"] for one in SELECTING("built the bridge", evidence(*texts, BUILDER))] == [BUILDER]


@pytest.mark.parametrize("part", ["The mason number {} was paid in silver. ", "word{} ", "第{}座桥。", "{}"])
def test_a_passage_of_a_megabyte_takes_seconds(part: str) -> None:
    text = "".join(part.format(number) for number in range(1_000_000 // len(part)))
    began = time.perf_counter()
    found = Selecting()("who built the bridge", evidence(text, BUILDER))
    assert BUILDER in [one["text"] for one in found]
    assert sum(tokens(one["text"]) for one in found) <= 2_000
    assert time.perf_counter() - began < 30


def test_a_sentence_of_100_000_characters_is_selected_in_part() -> None:
    text = "lorem ipsum " * 4_000 + "who built the bridge " + "dolor sit " * 5_000
    found = SELECTING("who built the bridge", evidence(text))
    assert "who built the bridge" in found[0]["text"]
    assert len(found[0]["text"]) <= 1_000


def test_sentences_are_embedded_once_a_run() -> None:
    letters = Letters()
    selecting = Selecting(letters)
    passages = evidence(BRIDGE, CHEESE)
    for plan in ("who built the bridge", "what is brie", "when did it fall"):
        both(selecting, plan, passages)
    assert len(letters.embedded) == 6
    selecting("what is brie", evidence(BRIDGE, CHEESE + " It smells a lot."))
    assert len(letters.embedded) == 6 + 7


def test_threads_and_loops_share_what_is_ready() -> None:
    letters = Letters()
    selecting, passages = Selecting(letters), evidence(BRIDGE, CHEESE)

    async def several() -> list:
        return await asyncio.gather(*(selecting.on_loop("who built it", passages) for _ in range(5)))

    with ThreadPoolExecutor(8) as pool:
        runs = [pool.submit(selecting, "who built it", passages) for _ in range(8)]
        loops = [pool.submit(asyncio.run, several()) for _ in range(3)]
        found = [run.result() for run in runs] + [one for loop in loops for one in loop.result()]
    assert all(one == found[0] for one in found)
    assert len(letters.embedded) == 6


def test_many_runs_forget_the_oldest_and_stay_right() -> None:
    selecting = Selecting()
    for number in range(300):
        found = selecting("who built the bridge", evidence(f"In {number} they built the bridge of Mostar."))
        assert found[0]["text"].startswith(f"In {number} ")


AIRLINE = evidence(
    "Velmora, legally Kasten Aviation Corporation, is a government-owned low-cost airline with its head office in "
    "Terminal 2 of Kasten Airport.",
    "Arno Velt is the Chief Operating Officer of Velmora, the low-cost carrier that belongs to the Kasten state. He had "
    "been a pilot.",
    "A limited company belongs to those who hold its shares.",
    "Rye bread is baked slowly in a warm oven.",
)


@pytest.mark.parametrize(
    ("context", "passages"),
    [({"paper": False}, ["p0", "p1"]), ({"paper": False, "threshold": 0.13}, ["p0"]), ({}, ["p0"])],
)
def test_sentences_that_nearly_fit_fill_the_budget(context: dict[str, object], passages: list[str]) -> None:
    """A model could not say who owns the airline, because that stood in a sentence a hair below the threshold."""
    chosen = SELECTING("Velmora airline type, owner and base airport", AIRLINE, **context)
    assert list(dict.fromkeys(one["passage"] for one in chosen)) == passages
