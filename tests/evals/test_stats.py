"""Statistics: textbook values, exact counts, and how often a test is wrong in simulations."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepcraft import BadInput
from stepcraft.evals.stats import (
    Interval,
    holm,
    kappa,
    mean_interval,
    paired,
    power,
    share,
    sign_test,
)


@pytest.mark.parametrize(
    ("count", "total", "low", "high"),
    [
        # R: prop.test(81, 263, correct = FALSE)$conf.int
        (81, 263, 0.2553, 0.3662),
        (0, 20, 0.0, 0.1611),
    ],
)
def test_wilsons_interval(count: int, total: int, low: float, high: float) -> None:
    interval = share(count, total)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=5e-5)
    assert mean_interval([1] * count + [0] * (total - count)) == interval


@pytest.mark.parametrize(
    ("a", "b", "low", "high", "p"),
    [
        # R: t.test(a, b, paired = TRUE); Student's data of sleep, 1908.
        (
            [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
            [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0],
            0.7001,
            2.4599,
            0.002833,
        ),
        ([1.0, 2.0], [0.0, 0.5], -1.9266, 4.4266, 0.1257),
    ],
)
def test_the_paired_t_test(
    a: list[float], b: list[float], low: float, high: float, p: float
) -> None:
    difference = paired(a, b)
    assert (difference.low, difference.high) == pytest.approx((low, high), abs=2e-3)
    assert difference.p == pytest.approx(p, rel=1e-3)
    assert paired(b, a).p == pytest.approx(difference.p)


def test_values_that_are_all_the_same_have_no_scatter() -> None:
    assert paired([1] * 5, [0] * 5).p == 2 / 32
    always = paired([1] * 6, [0] * 6)
    # Of six of six, statsmodels' proportion_confint with the method "beta" has 0.540742.
    assert (always.low, always.high) == pytest.approx((2 * 0.540742 - 1, 1), abs=1e-6)
    assert paired([5.0] * 6, [3.0] * 6).high == np.inf, "what has no bounds may be anything"
    assert paired([1, 0], [1, 0]).p == paired([1], [0]).p == 1
    one = mean_interval([0.3])
    assert 0 < one.low < one.mean < one.high < 1


def test_the_interval_of_shares_ends_at_0_and_1() -> None:
    interval = mean_interval([0.9, 1.0, 0.5, 1.0])
    assert 0 < interval.low < interval.mean < interval.high == 1


def test_no_effect_is_called_significant_as_often_as_the_level_says() -> None:
    """Of 1,600 runs 80 are expected, and 3 standard deviations are 26."""
    runs = np.random.default_rng(7).normal(size=(1600, 2, 10))
    differences = [paired(a.tolist(), b.tolist()) for a, b in runs]
    assert 54 <= sum(each.p < 0.05 for each in differences) <= 106
    assert all((each.p < 0.05) == (each.low > 0 or each.high < 0) for each in differences)


@pytest.mark.parametrize(
    ("wins", "losses", "p"),
    [
        # 2 · (C(10,0) + C(10,1) + C(10,2)) / 2^10 = 112/1024.
        (8, 2, 0.109375),
        (5, 0, 0.0625),
        (5, 5, 1),
        (0, 0, 1),
        # R: binom.test(60, 100)$p.value
        (60, 40, 0.05688793),
    ],
)
def test_the_sign_test(wins: int, losses: int, p: float) -> None:
    assert sign_test(wins, losses) == sign_test(losses, wins) == pytest.approx(p, rel=1e-6)


def test_the_sign_test_of_many() -> None:
    assert 0 < sign_test(1_100, 900) < 0.001
    assert sign_test(2_000, 0) == 0


def test_holm_adjusts_each_value_by_its_rank() -> None:
    # In order 0.005 · 4, 0.01 · 3, 0.03 · 2, and 0.04 no less than the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1, 1]
    assert (holm([]), holm([0.04])) == ([], [0.04])


@given(st.lists(st.floats(0, 1), max_size=8))
def test_holm_keeps_order_and_bounds(ps: list[float]) -> None:
    adjusted = holm(ps)
    assert all(p <= new <= min(1, len(ps) * p) + 1e-12 for p, new in zip(ps, adjusted, strict=True))
    assert holm(ps[::-1]) == adjusted[::-1]


def test_holm_counts_scores_of_one_family_once() -> None:
    assert holm([0.016] * 3, ["answer"] * 3) == [0.016] * 3
    assert holm([0.01, 0.02, 0.03], ["a", "b", "a"]) == pytest.approx([0.02, 0.02, 0.03])


def test_kappa_of_cohens_data_and_of_perfect_agreement() -> None:
    # The values are those of statsmodels.
    table = {("yes", "yes"): 20, ("yes", "no"): 5, ("no", "yes"): 10, ("no", "no"): 15}
    measured = kappa([pair for pair, count in table.items() for _ in range(count)])
    assert (measured.mean, measured.low, measured.high) == pytest.approx(
        (0.4, 0.151092, 0.648908), abs=1e-6
    )
    perfect = kappa([("yes", "yes")] * 5 + [("no", "no")] * 5)
    assert perfect.mean == perfect.high == 1
    assert 0 < perfect.low < 1, "ten labels are not proof"
    assert kappa([("yes", "yes"), ("yes", "no")]) == Interval(0.0, -np.inf, np.inf)


@pytest.mark.parametrize(("count", "points", "chance"), [(30, 0.2, 0.403176), (20, 0.4, 0.804190)])
def test_the_power_of_the_sign_test(count: int, points: float, chance: float) -> None:
    """As scipy's multinomial and binomtest have it, over all counts of wins and losses."""
    assert power(count, points) == pytest.approx(chance, abs=1e-6)
    assert power(count, 0.0) < 0.05


def test_without_scipy_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(BadInput, match=r'scipy: pip install "stepcraft\[evals\]"'):
        share(1, 2)
