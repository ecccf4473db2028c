"""Scores: the values of the papers' own scripts, bounds and symmetries, texts of any kind."""

import logging
import math
import re
import subprocess
import sys
import time
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcraft.evals.samples import Sample
from stepcraft.evals.scores import (
    contains,
    exact_match,
    f1,
    normalise,
    pass_at_k,
    plain_forms,
    rouge_lsum,
    steps_f1,
)
from stepcraft.evals.scoring import default_scores

TEXTS = st.text("ab cCéß中あ.-'\n", max_size=40) | st.text(max_size=20)
WORDS = st.lists(st.sampled_from(["red", "green", "blue", "the", "not"]), max_size=6).map(" ".join)
STEPS = st.lists(WORDS, max_size=4)


def test_a_long_list_of_numbers_is_scored_in_linear_time() -> None:
    listed = ",".join(["12"] * 20_000)
    began = time.process_time()
    assert exact_match(listed, [f"{listed}."], plain_forms("12")[0]) == 1
    assert time.process_time() - began < 1


@pytest.mark.parametrize("number", ["1,234,567", "12,34,56,789", "10,00,00,00,00,000"])
def test_commas_that_separate_thousands_are_left_out(number: str) -> None:
    sample = Sample(id="1", question="How many?", answers=[number.replace(",", "")])
    assert default_scores(sample, {"answer": number})["exact match"] == 1


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The Eiffel Tower.", "eiffel tower"),
        ("U.S.A.", "usa"),
        ("«Ünïcode»!", "«ünïcode»"),
        ("A", "a"),
    ],
)
def test_the_normalisation_of_squad(text: str, normal: str) -> None:
    assert normalise(text) == normal


@pytest.mark.parametrize(
    ("answer", "golds", "em", "overlap"),
    [
        ("the Eiffel Tower", ["Eiffel Tower!"], 1, 1),
        # 2 of 3 words are right, and 2 of 2 found: 2 · (2/3) · 1 / (2/3 + 1).
        ("big eiffel tower", ["The Eiffel Tower"], 0, 0.8),
        # A word counts as often as both have it: 1 of 2, and 1 of 1.
        ("tower tower", ["tower"], 0, 2 / 3),
        ("Paris", ["London", "in Paris", "paris."], 1, 1),
        ("yes", ["yes it is"], 0, 0),
        ("yes it is", ["Yes."], 0, 0),
        ("", [""], 1, 1),
        ("", ["A"], 0, 0),
        ("Paris", [], 0, 0),
    ],
)
def test_exact_match_and_f1(answer: str, golds: list[str], em: float, overlap: float) -> None:
    assert (exact_match(answer, golds), f1(answer, golds)) == (em, pytest.approx(overlap))


@given(TEXTS, TEXTS, st.lists(TEXTS, max_size=3))
def test_f1_is_symmetric_and_more_gold_answers_never_lower_a_score(
    one: str, other: str, more: list[str]
) -> None:
    assert f1(one, [other]) == f1(other, [one])
    assert exact_match(one, [other]) <= f1(one, [other]) <= f1(one, [other, *more]) <= 1
    assert f1(one, [one]) == exact_match(one, [*more, one]) == 1


@pytest.mark.parametrize(
    ("answer", "needle", "is_there"),
    [
        ("It happens often.", "ten", False),
        ("It happens ten times.", "ten", True),
        ("The default is 13.", "3", False),
        ("The version v127", "1.27", False),
        ("It is version 1.27.", "1.27", True),
        ("It is 3.5.", "5", False),
        ("It is \u22125 degrees", "-5", True),
        ("It is -5 degrees", "5", False),
        ("pages 3-5", "5", True),
        ("It is written in C++.", "C", False),
        ("It is written in C++.", "c++", True),
        ("A one-arch bridge.", "arch", True),
        ("use `ferry.db`", "ferry.db", True),
        ("--keep-calls keeps them", "--keep-calls", True),
        ("costs 1,000 USD", "1000", True),
        ("USB\u5f00\u5173\u6253\u5f00", "\u5f00\u5173", True),
        ("The answer is A.", "A", True),
        ("It is a receiver.", "A", False),
        ("The grade is A+.", "A", False),
        ("Vitamin A is needed for sight.", "Vitamin A", True),
        ("It is vitamin C.", "Vitamin A", False),
        ("Hepatitis is an inflammation.", "Hepatitis A", False),
        ("He wrote Tale of Two Cities.", "A Tale of Two Cities", True),
        ("He sang Once Upon A Time.", "Once upon a time", True),
        ("\u0926\u0938\u094d\u0924\u093e", "\u0926\u0938", False),
        ("\u0926\u0938\u0964", "\u0926\u0938", True),
        ("\u0643\u062a\u0627\u0628\u064c", "\u0643\u062a\u0627\u0628", True),
    ],
)
def test_names_are_whole_words_and_numbers_have_their_value(
    answer: str, needle: str, is_there: bool
) -> None:
    assert contains(answer, [[needle]]) == is_there


@pytest.mark.parametrize(
    ("answer", "gold", "em"),
    [
        ("35", "3.5", 0),
        ("3.5.", "3.5", 1),
        ("5", "-5", 0),
        ("5", "–5", 0),
        ("−5", "–5", 1),
        ("C", "C++", 0),
        ("C#.", "c#", 1),
        ("35", "3,5", 0),
        ("45.50", "45,50", 1),
        ("1000", "1,000", 1),
        ("100000", "1,00,000", 1),
        ("2, 3", "2,3", 1),
        ("July 4,1776", "July 4, 1776", 1),
        ("USA", "U.S.A.", 1),
        ("QA", "Q&A", 1),
        ("AC Milan", "A.C. Milan", 1),
        ("12", "1/2", 0),
        ("½", "1/2", 1),
        ("1030", "10:30", 0),
        ("106", "10^6", 0),
        ("10⁶", "10^6", 1),
        ("978-3-16-148410-0", "9783161484100", 1),
        ("1e5", "1e-5", 0),
        ("1E−5", "1e-5", 1),
        ("1e+5", "1e5", 1),
        ("==", "!=", 0),
        ("`!=`.", "!=", 1),
        ("**`!=`**", "!=", 1),
        ("**/**", "/", 1),
        ("*", "**", 0),
        ("00:1E:C2:9E:28:6B", "00-1E-C2-9E-28-6B", 1),
        ("> p < 0.05", "p < 0.05", 1),
        (">>> x == 5", "x == 5", 1),
        ("||", "&&", 0),
        ("[]", "{}", 0),
        ("{ }", "{}", 1),
        ("<=", "<", 0),
        ("..", ".", 0),
        ("<3.11", ">=3.11", 0),
        ("> 5", "< 5", 0),
        ("< -5", "> -5", 0),
        ("<-5", ">-5", 0),
        (">= 3.11", ">=3.11", 1),
        ("3.11", ">=3.11", 1),
        (">=3.11", "3.11", 1),
        ("> 30 days", "30 days", 1),
        ("The Eiffel Tower", "Eiffel Tower", 1),
    ],
)
def test_answers_of_another_value_are_not_equal(answer: str, gold: str, em: float) -> None:
    scores = default_scores(Sample(id="1", question="?", answers=[gold]), {"answer": answer})
    assert scores == {"exact match": em, "F1": em, "occurs": em}


@pytest.mark.parametrize(
    ("answer", "gold", "em", "overlap"),
    [
        ("cache=600", "600", 0, 2 / 3),
        ("read/write", "read write", 1, 1),
        ("<b>30 days</b>", "30 days", 0, 2 / 3),
        ("<b>30 days</b>", "<= 30 days", 0, 2 / 3),
        ("3.11 or newer", ">=3.11", 0, 0.5),
        ("load > 5 -> alarm", "load > 5", 0, 0.8),
        ("one-arch", "onearch", 1, 1),
        ("http://a.de", "HTTP a de", 1, 1),
        ("2019–2020", "2019-2020", 1, 1),
        ("Graz — Linz", "Graz, Linz", 1, 1),
        ("東京。", "東京", 1, 1),
    ],
)
def test_punctuation_between_words_is_a_space_or_nothing(
    answer: str, gold: str, em: float, overlap: float
) -> None:
    scores = default_scores(Sample(id="1", question="?", answers=[gold]), {"answer": answer})
    assert scores == {"exact match": em, "F1": overlap, "occurs": 1}


@pytest.mark.parametrize(
    ("answer", "gold"), [("load < 5", "load > 5"), ("p>0.05", "p<0.05"), ("x != y", "x == y")]
)
def test_a_comparison_that_contradicts_the_right_one_is_not_equal(answer: str, gold: str) -> None:
    sample = Sample(id="1", question="?", answers=[gold])
    scores = default_scores(sample, {"answer": answer})
    assert (scores["exact match"], scores["F1"], scores["occurs"]) == (0, 0.5, 0)


@pytest.mark.parametrize(
    ("answer", "gold"),
    [("STANDARDMÄSSIG", "standardmäßig"), ("Gro\u0308ße", "Größe"), ("»Weiter«", "„Weiter“")],
)
def test_forms_of_the_same_characters_are_equal(answer: str, gold: str) -> None:
    scores = default_scores(Sample(id="1", question="?", answers=[gold]), {"answer": answer})
    assert scores == {"exact match": 1, "F1": 1, "occurs": 1}


def test_a_method_without_evidence_has_no_score_for_it() -> None:
    sample = Sample(id="1", question="?", gold=[{"title": "Oster", "sentences": []}])
    assert default_scores(sample, {"answer": "Yes."}) == {}
    assert default_scores(sample, {"answer": "Yes.", "evidence": []}) == {"gold passages": 0}


@pytest.mark.parametrize(
    ("answer", "gold", "passages", "scores"),
    [
        ("30 days [1][3]", "30 days", 3, (1, 1, 1)),
        ("Four retries are made [1], then none [3].", "3", 3, (0, 0, 0)),
        ("保存期間は30日です【2】。", "保存期間は30日です", 3, (1, 1, 1)),
        ("30 days [9]", "30 days", 3, (0, 0.8, 1)),
        ("Press [1]", "press 1", 0, (1, 1, 1)),
        ("Press [1]", "Press [1]", 3, (1, 1, 1)),
        ("`limit[1]`", "limit[1]", 3, (1, 1, 1)),
        ("[2]", "2", 3, (1, 1, 1)),
        ("It is [1, 2, 3]. [1]", "[1, 2, 3]", 3, (0, 2 / 3, 1)),
    ],
)
def test_marks_that_cite_the_evidence_are_no_words_of_the_answer(
    answer: str, gold: str, passages: int, scores: tuple[float, float, float]
) -> None:
    sample = Sample(id="1", question="?", answers=[gold])
    output = {"answer": answer, "evidence": [{"text": "It is so."}] * passages}
    assert (*default_scores(sample, output).values(),) == pytest.approx(scores)


def test_contains_counts_the_needles_found() -> None:
    answer = "It was written by the Beatles in 1967, and sung by Ringo."
    assert contains(answer, [["the beatles"], ["1968"], ["Starr", "ringo!"]]) == pytest.approx(
        2 / 3
    )
    assert contains(answer, [["Elvis", "Presley"]]) == 0
    assert contains(answer, [[""]]) == contains(answer, [[]]) == contains(answer, []) == 0


@pytest.mark.parametrize(
    ("steps", "gold", "score"),
    [
        # One of the two pairs must cross the other: S = 1, so 2 · 1 / (2 + 2).
        (["Add tea", "Boil water"], ["Boil water", "Add tea"], 0.5),
        # S = 2 over 3 steps and 2 gold steps.
        (["Boil water", "Sing", "Add tea"], ["Boil water", "Add tea"], 0.8),
        # A pair of 2 words of 3 and of 2 of 2 has 0.8, so 2 · 0.8 / (1 + 1).
        (["boil water now"], ["boil water"], 0.8),
        (["\u70e7\u5f00\u6c34"], ["\u70e7\u6c34"], 0.8),
        ([], [], 1),
    ],
)
def test_steps_f1(steps: list[str], gold: list[str], score: float) -> None:
    assert steps_f1(steps, gold) == pytest.approx(score)


@given(STEPS, STEPS)
def test_no_other_alignment_in_order_fits_better(steps: list[str], gold: list[str]) -> None:
    def total(places: tuple[int, ...], gold_places: tuple[int, ...]) -> float:
        return sum(
            steps_f1([steps[i]], [gold[j]]) for i, j in zip(places, gold_places, strict=True)
        )

    best = max(
        total(places, gold_places)
        for size in range(min(len(steps), len(gold)) + 1)
        for places in combinations(range(len(steps)), size)
        for gold_places in combinations(range(len(gold)), size)
    )
    expected = 2 * best / (len(steps) + len(gold)) if steps or gold else 1
    assert steps_f1(steps, gold) == pytest.approx(expected)


def test_rouge_lsum_of_the_paper_and_of_its_library() -> None:
    # Lin 2004, §3.2: of w1 … w5 the two sentences hold w1 w2 and w1 w3 w5:
    # recall 4/5, precision 4/10.
    assert rouge_lsum("W1 w2 w6 w7 w8.\nW1 w3 w8 w9 w5.", "w1 w2 w3 w4 w5") == pytest.approx(
        2 * 0.32 / 1.2
    )
    # Sentences of a line are told apart: joined, the order would cost a word.
    assert rouge_lsum("Tea is hot. Water boils.", "Water boils. Tea is hot.") == 1
    assert rouge_lsum("The cats were jumping", "the cat was jumped") == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        (
            "The bridge was finished in 1566. It was destroyed in 1993 and rebuilt by 2004.",
            "Mimar Hayruddin finished the old bridge in 1566. In 1993 it fell; it was rebuilt in 2004.",
        ),
        ("Stir the eggs. Add flour. Stir again.", "Beat eggs and flour. Stir well."),
    ],
)
def test_rouge_lsum_is_what_its_library_says_of_a_sentence_a_line(answer: str, gold: str) -> None:
    from rouge_score.rouge_scorer import RougeScorer  # noqa: PLC0415
    from rouge_score.tokenizers import DefaultTokenizer  # noqa: PLC0415

    scorer = RougeScorer(["rougeLsum"], tokenizer=DefaultTokenizer(use_stemmer=True))
    lines = [re.sub(r"(?<=\.) ", "\n", text) for text in (gold, answer)]
    assert rouge_lsum(answer, gold) == pytest.approx(scorer.score(*lines)["rougeLsum"].fmeasure)


@pytest.mark.parametrize("text", ["", "?!", "\u70e7\u5f00\u6c34\u3002", "Вскипяти воду."])
def test_rouge_lsum_of_texts_without_latin_words(text: str) -> None:
    assert rouge_lsum(text, "Boil water.") == rouge_lsum("Boil water.", text) == 0
    assert rouge_lsum(text, text) == any(map(str.isalpha, text))
    assert rouge_lsum("Лимит 10 MB.", "Срок хранения 10 MB.") < 1


def test_rouge_lsum_compares_beginnings() -> None:
    gold = " ".join(f"w{number}" for number in range(400))
    assert rouge_lsum(gold, gold) == 1
    assert rouge_lsum(f"{gold} {gold}", gold) == pytest.approx(2 / 3)


def test_rouge_lsum_leaves_the_logging_of_the_process_alone() -> None:
    before = list(logging.getLogger().handlers)
    rouge_lsum("a", "b")
    assert logging.getLogger().handlers == before


def test_extras_are_loaded_where_they_are_needed() -> None:
    code = "import sys, stepcraft.evals.scores, stepcraft.evals.stats; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"rouge_score", "nltk", "trueskill", "scipy"} & set(ran.stdout.split())


def test_pass_at_k_of_many() -> None:
    rate = 1 - math.prod((100 - i) / (200 - i) for i in range(50))
    assert pass_at_k(200, 50, 100) == pytest.approx(rate)


@given(st.integers(1, 12), st.data())
def test_pass_at_k_is_the_share_of_all_choices_that_hold_a_correct_one(
    n: int, data: st.DataObject
) -> None:
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    choices = [any(place < c for place in choice) for choice in combinations(range(n), k)]
    assert pass_at_k(n, c, k) == pytest.approx(sum(choices) / len(choices))
