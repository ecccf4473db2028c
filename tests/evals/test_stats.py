"""Statistics: textbook values, exact counts, symmetries, and how often a test is wrong or right in simulations."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepcraft.errors import BadInput
from stepcraft.evals.stats import (
    cohen_kappa,
    holm,
    krippendorff_alpha,
    mcnemar,
    mean_interval,
    paired_bootstrap,
    samples_needed,
    sign_test,
    trueskill,
    wins_losses_ties,
)

SCORES = st.lists(st.floats(-100, 100).map(lambda score: round(score, 3)), min_size=1, max_size=12)
PAIRS = SCORES.flatmap(
    lambda a: st.tuples(st.just(a), st.lists(st.floats(0, 1), min_size=len(a), max_size=len(a)))
)
LABELS = st.lists(st.sampled_from("AB="), max_size=12)


@pytest.mark.parametrize("count", [10, 30])
def test_no_effect_is_called_significant_as_often_as_the_level_says(count: int) -> None:
    """Of 1,600 runs 80 are expected, and 3 standard deviations are 26."""
    runs = np.random.default_rng(7).normal(size=(1600, 2, count))
    found = [
        paired_bootstrap(a, b, seed=seed, resamples=500).p < 0.05
        for seed, (a, b) in enumerate(runs)
    ]
    assert 54 <= sum(found) <= 106


def test_answers_right_or_wrong_are_no_more_often_called_different() -> None:
    random_numbers = np.random.default_rng(8)
    runs = random_numbers.random(size=(400, 2, 20)) < 0.7
    found = [
        paired_bootstrap(a, b, seed=seed, resamples=1000).p < 0.05
        for seed, (a, b) in enumerate(runs)
    ]
    assert sum(found) <= 32


def test_an_effect_of_one_standard_deviation_is_found_in_thirty_samples() -> None:
    random_numbers = np.random.default_rng(9)
    runs = random_numbers.normal(1, 1, size=(400, 30))
    found = [
        paired_bootstrap(a, np.zeros(30), seed=seed, resamples=1000).low > 0
        for seed, a in enumerate(runs)
    ]
    assert sum(found) > 0.95 * 400


@pytest.mark.parametrize("count", [6, 10, 30])
def test_an_interval_covers_the_true_mean_about_as_often_as_its_level_says(count: int) -> None:
    random_numbers = np.random.default_rng(10)
    runs = random_numbers.normal(3, 2, size=(400, count))
    intervals = [mean_interval(values, seed, resamples=1000) for seed, values in enumerate(runs)]
    assert 0.91 <= sum(found.low <= 3 <= found.high for found in intervals) / 400 <= 0.98


def test_an_interval_of_many_values_is_that_of_the_normal_distribution() -> None:
    values = np.random.default_rng(11).normal(size=400)
    found = mean_interval(values, 1)
    half = 1.966 * values.std(ddof=1) / 20
    assert found.mean == pytest.approx(values.mean())
    assert (found.low, found.high) == pytest.approx(
        (values.mean() - half, values.mean() + half), abs=0.01
    )
    narrow = mean_interval(values, 1, level=0.5)
    assert found.low < narrow.low < found.mean < narrow.high < found.high


def test_ones_that_are_no_shares_are_certain() -> None:
    calls, scores = mean_interval([1.0] * 6, 1, shares=False), mean_interval([1.0] * 6, 1)
    assert (calls.low, calls.mean, calls.high) == (1, 1, 1)
    assert scores.low < 0.7 < scores.mean == scores.high == 1


def test_p_is_the_share_of_all_changes_of_signs_that_reach_as_far() -> None:
    differences = [3.0, -1.0, 2.0, 0.5, 1.5, 0.0, 4.0]
    sums = [
        abs(sum(sign * d for sign, d in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=7)
    ]
    exact = sum(reached >= sum(differences) - 1e-9 for reached in sums) / 2**7
    found = paired_bootstrap(differences, [0] * 7, seed=3, resamples=40_000)
    assert found.p == pytest.approx(exact, abs=0.006)


def test_five_wins_of_five_are_too_few_and_seven_of_seven_are_not() -> None:
    few = paired_bootstrap([1] * 5, [0] * 5, seed=1)
    assert (few.low, few.high) == (0, 1)
    assert few.p == pytest.approx(2 / 2**5, abs=0.01)
    enough = paired_bootstrap([1] * 7, [0] * 7, seed=1)
    assert 0 < enough.low < enough.high == 1
    assert enough.p < 0.05


def test_one_pair_shows_nothing() -> None:
    found = paired_bootstrap([0.7], [0], seed=1)
    assert (found.mean, found.low, found.high, found.p) == (0.7, -math.inf, math.inf, 1)
    found = paired_bootstrap([1], [0], seed=1)
    assert found.low < -0.5 < found.mean == found.high == found.p == 1


def test_shares_have_the_interval_of_wilson() -> None:
    """Newcombe 1998, "Two-sided confidence intervals for the single proportion", table I, method 3."""
    for right, count, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        found = mean_interval([1] * right + [0] * (count - right), 1)
        assert (found.low, found.high) == pytest.approx((low, high), abs=0.0001)
        assert found.mean == right / count


def test_right_and_wrong_answers_are_compared_with_the_interval_of_bonett_and_price() -> None:
    # 20 samples: 9 right by the first alone, 1 by the second alone; 10/22 - 2/22 = 0.364 and
    # 1.96 · sqrt((12/22 - 0.364²) / 22) = 0.269.
    a, b = [1] * 9 + [0] + [1] * 10, [0] * 9 + [1] + [1] * 10
    found = paired_bootstrap(a, b, seed=1)
    assert (found.mean, found.low, found.high) == pytest.approx((0.4, 0.095, 0.632), abs=0.001)


@pytest.mark.parametrize("share", [0.5, 0.8, 0.95])
def test_an_interval_of_few_right_answers_covers_the_true_share(share: float) -> None:
    runs = np.random.default_rng(13).random(size=(400, 20)) < share
    intervals = [mean_interval(values.astype(float), seed) for seed, values in enumerate(runs)]
    assert sum(found.low <= share <= found.high for found in intervals) / 400 >= 0.91


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_p_and_interval_of_right_and_wrong_answers_say_the_same(
    pairs: list[tuple[bool, bool]],
) -> None:
    a, b = ([float(one[side]) for one in pairs] for side in (0, 1))
    found = paired_bootstrap(a, b, seed=1, resamples=200)
    assert -1 <= found.low <= found.mean <= found.high <= 1
    assert (found.p <= 0.05) or found.low <= 0 <= found.high


@settings(max_examples=40)
@given(PAIRS, st.integers(0, 5))
def test_a_difference_and_its_reverse_say_the_same(
    pair: tuple[list[float], list[float]], seed: int
) -> None:
    a, b = pair
    found = paired_bootstrap(a, b, seed=seed, resamples=500)
    reverse = paired_bootstrap(b, a, seed=seed, resamples=500)
    assert found == paired_bootstrap(a, b, seed=seed, resamples=500)
    assert found.low <= found.mean <= found.high
    assert 0 < found.p == reverse.p <= 1
    assert (found.mean, found.low, found.high) == pytest.approx(
        (-reverse.mean, -reverse.high, -reverse.low), abs=1e-9
    )
    assert (found.p <= 0.05) or found.low <= 0 <= found.high
    wins, losses, ties = wins_losses_ties(a, b)
    assert wins_losses_ties(b, a) == (losses, wins, ties)
    assert wins + losses + ties == len(a)


def test_wins_losses_ties_overlook_rounding() -> None:
    assert wins_losses_ties([0.1 + 0.2, 1, 0], [0.3, 0, 1]) == (1, 1, 1)


@pytest.mark.parametrize("a", [[], [1.0, 2.0], [math.nan], [math.inf]])
def test_scores_that_cannot_be_compared(a: list[float]) -> None:
    with pytest.raises(BadInput, match=r"score"):
        paired_bootstrap(a, [0.0] * (len(a) and 1), seed=1)
    with pytest.raises(BadInput, match=r"score"):
        wins_losses_ties(a, [0.0] * (len(a) and 1))


@pytest.mark.parametrize(("resamples", "level"), [(0, 0.95), (100, 1), (100, 0), (100, 95)])
def test_an_interval_that_cannot_be_had(resamples: int, level: float) -> None:
    with pytest.raises(BadInput, match=f"level {level} from {resamples} resamples"):
        mean_interval([1, 2], 1, resamples=resamples, level=level)


@pytest.mark.parametrize(
    ("wins", "losses", "p"),
    [
        # 2 · (C(10,0) + C(10,1) + C(10,2)) / 2^10 = 112/1024.
        (8, 2, 0.109375),
        (5, 0, 0.0625),
        (6, 0, 0.03125),
        (5, 5, 1),
        (0, 0, 1),
        # R: binom.test(60, 100)$p.value
        (60, 40, 0.05688793),
    ],
)
def test_sign_test_and_mcnemar(wins: int, losses: int, p: float) -> None:
    assert sign_test(wins, losses) == sign_test(losses, wins) == pytest.approx(p, rel=1e-6)
    assert mcnemar(wins, losses) == sign_test(wins, losses)


@given(st.integers(0, 40), st.integers(0, 40))
def test_the_sign_test_counts_all_that_is_as_uneven(wins: int, losses: int) -> None:
    rounds = wins + losses
    as_uneven = sum(
        math.comb(rounds, k) for k in range(rounds + 1) if abs(2 * k - rounds) >= abs(wins - losses)
    )
    assert sign_test(wins, losses) == pytest.approx(as_uneven / 2**rounds)


def test_the_sign_test_of_many_and_of_impossible_rounds() -> None:
    assert 0 < sign_test(10_200, 9_800) < 0.01
    assert sign_test(20_000, 0) == 0
    with pytest.raises(BadInput, match="-1"):
        sign_test(3, -1)


def test_holm_adjusts_each_value_by_its_rank() -> None:
    # In order 0.005 · 4, 0.01 · 3, 0.03 · 2, and 0.04 no less than the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1, 1]
    assert (holm([]), holm([0.04])) == ([], [0.04])
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(BadInput, match=str(wrong)):
            holm([0.5, wrong])


@given(
    st.lists(st.floats(0, 1), max_size=8).flatmap(
        lambda ps: st.tuples(st.just(ps), st.permutations(ps))
    )
)
def test_holm_keeps_order_and_bounds(values: tuple[list[float], list[float]]) -> None:
    ps, shuffled = values
    adjusted = holm(ps)
    assert all(p <= new <= min(1, len(ps) * p) + 1e-12 for p, new in zip(ps, adjusted, strict=True))
    assert sorted(zip(ps, adjusted, strict=True)) == sorted(
        zip(shuffled, holm(shuffled), strict=True)
    )


def test_so_many_samples_as_needed_show_the_difference_with_that_power() -> None:
    seen = [0.5 + scatter for scatter in (-1.0, 1.0) * 10]
    needed = samples_needed(seen)
    # (1.96 + 0.8416)² · (1.026/0.5)² + 1.92 = 34.97
    assert needed == 35
    random_numbers = np.random.default_rng(12)
    runs = random_numbers.normal(0.5, np.std(seen, ddof=1), size=(400, needed))
    found = [
        paired_bootstrap(a, np.zeros(needed), seed=seed, resamples=500).p <= 0.05
        for seed, a in enumerate(runs)
    ]
    assert 0.74 <= sum(found) / 400 <= 0.87


def test_so_many_samples_as_needed_show_more_right_answers_with_that_power() -> None:
    seen = [1.0] * 15 + [-1.0] * 5 + [0.0] * 30
    needed = samples_needed(seen)
    # ((1.96 · sqrt(0.4) + 0.8416 · sqrt(0.4 - 0.2²)) / 0.2)² + 1/0.2 = 81.1
    assert needed == 82
    kinds = np.random.default_rng(14).choice(
        [1.0, -1.0, 0.0], p=[0.3, 0.1, 0.6], size=(2000, needed)
    )
    found = [mcnemar(int((a > 0).sum()), int((a < 0).sum())) <= 0.05 for a in kinds]
    assert 0.76 <= sum(found) / 2000 <= 0.84


def test_how_many_samples_are_needed_where_little_is_known() -> None:
    assert samples_needed([1, 1, 1, 1]) is None
    assert samples_needed([1, -1] * 5) is None
    assert samples_needed([0.1, 0.2, -0.3] * 5) is None
    assert samples_needed([0.0] * 9) is None
    # With 5 pairs of one sign p is 1/16, with 6 it is 1/32.
    assert samples_needed([1.0] * 5) == 6
    more = samples_needed([1, 0, 0, 0, 0, 1, -1, 0], power=0.99)
    less = samples_needed([1, 0, 0, 0, 0, 1, -1, 0])
    assert more
    assert less
    assert more > less > 8
    with pytest.raises(BadInput, match=r"80"):
        samples_needed([1] * 5, power=80)


def test_kappa_of_two_readers_of_fifty_proposals() -> None:
    """A common textbook table: both yes 20, only the first 5, only the second 10, both no 15; kappa is 0.4."""
    first, second = "y" * 25 + "n" * 25, "y" * 20 + "n" * 5 + "y" * 10 + "n" * 15
    assert cohen_kappa(first, second) == pytest.approx(0.4)
    assert cohen_kappa(first, first) == 1
    assert cohen_kappa("yn", "ny") == -1
    assert cohen_kappa("yy", "yy") is None
    assert cohen_kappa("", "") is None
    assert cohen_kappa("yy", "nn") == 0
    with pytest.raises(BadInput, match="2 ratings and the other 1"):
        cohen_kappa("yn", "y")


@given(LABELS.flatmap(lambda a: st.tuples(st.just(a), st.permutations(a))))
def test_kappa_is_symmetric_and_one_at_most(raters: tuple[list[str], list[str]]) -> None:
    a, b = raters
    kappa = cohen_kappa(a, b)
    assert kappa == cohen_kappa(b, a) == cohen_kappa(a[::-1], b[::-1])
    assert kappa is None or -1 <= kappa <= 1
    assert (kappa is None) == (len(set(a)) < 2)


@pytest.mark.parametrize(
    ("ratings", "alpha"),
    [
        (["0100000010", "1110010000"], 0.095),
        (["aabbdcccedda", "babbbcccedd" + "d"], 0.692),
        (["123321412...", "1233224125.3", ".333234225" + "1.", "123324412" + "51."], 0.743),
    ],
)
def test_the_examples_of_krippendorff(ratings: list[str], alpha: float) -> None:
    """Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", parts A, B and C; "." is missing."""
    rows = [[None if rating == "." else rating for rating in row] for row in ratings]
    assert krippendorff_alpha(rows) == pytest.approx(alpha, abs=0.0005)
    assert krippendorff_alpha(rows[::-1]) == pytest.approx(alpha, abs=0.0005)


def test_alpha_where_it_is_not_defined() -> None:
    assert krippendorff_alpha([]) is None
    assert krippendorff_alpha(["aaa", "aaa"]) is None
    assert krippendorff_alpha([["a", None], [None, "b"]]) is None
    assert krippendorff_alpha(["ab", "ab"]) == 1
    with pytest.raises(BadInput, match="2 to 3 ratings"):
        krippendorff_alpha(["aaa", "aa"])


@given(st.lists(st.tuples(*[st.sampled_from(["A", "B", "=", None])] * 3), max_size=8), st.randoms())
def test_alpha_does_not_depend_on_the_order_of_units(
    units: list[tuple[str | None, ...]], random
) -> None:
    alpha = krippendorff_alpha(list(zip(*units, strict=True)))
    random.shuffle(units)
    assert krippendorff_alpha(list(zip(*units, strict=True))) == pytest.approx(alpha)
    assert alpha is None or alpha <= 1


def test_the_first_vote_moves_ratings_as_trueskill_publishes() -> None:
    """Two new players: 29.396 and 20.604 with sigma 7.171 after a win, 25.000 with 6.458 after a tie."""
    win = trueskill([("a", "b", "b")], ["a", "b", "c"], shuffles=1, seed=1)
    assert (win["a"].mean, win["b"].mean, win["c"].mean) == pytest.approx(
        (20.604, 29.396, 25), abs=0.001
    )
    assert win["b"].high - win["b"].mean == pytest.approx(1.96 * 7.171, abs=0.01)
    tie = trueskill([("a", "b", None)], ["a", "b"], shuffles=3, seed=1)
    assert (tie["a"].mean, tie["b"].mean) == pytest.approx((25, 25))
    assert tie["a"].mean - tie["a"].low == pytest.approx(1.96 * 6.458, abs=0.01)


def test_ratings_hardly_depend_on_the_order_of_the_votes() -> None:
    votes: list[tuple[str, str, str | None]] = [
        *[("rat", "cot", "rat")] * 14,
        *[("cot", "rat", "cot")] * 6,
        *[("rat", "rag", None)] * 10,
        *[("rag", "cot", "cot")] * 4,
    ]
    found = trueskill(votes, ["rat", "rag", "cot"], shuffles=40, seed=1)
    reverse = trueskill(votes[::-1], ["cot", "rag", "rat"], shuffles=40, seed=2)
    assert found == trueskill(votes, ["rat", "rag", "cot"], shuffles=40, seed=1)
    assert found["rat"].mean > found["cot"].mean
    for player, rating in found.items():
        assert rating.low < rating.mean < rating.high
        assert reverse[player].mean == pytest.approx(rating.mean, abs=0.5)


@pytest.mark.parametrize(
    "vote", [("a", "c", "a"), ("a", "a", "a"), ("a", "b", "c"), ("a", "b", "tie")]
)
def test_a_vote_that_cannot_be_counted(vote: tuple[str, str, str | None]) -> None:
    with pytest.raises(BadInput, match=r"The vote \('a', '.*cannot be counted"):
        trueskill([vote], ["a", "b"], shuffles=1, seed=1)


def test_ratings_need_an_order() -> None:
    with pytest.raises(BadInput, match="0 orders"):
        trueskill([], ["a"], shuffles=0, seed=1)
