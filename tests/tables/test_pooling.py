"""Rubin's rules: by hand, in their limits, and as often right as they say."""

import numpy as np
import pytest
from scipy import stats

from polyspan import pool_estimates

RNG = np.random.RandomState(0)
Q, U = RNG.standard_normal((7, 3)), RNG.uniform(0.5, 2.0, (7, 3))


def test_one_case_by_hand():
    # W = 2, B = 1, m = 3: T = 2 + 4/3 = 10/3, r = 2/3, share = 2/5.
    pooled = pool_estimates([4.0, 5.0, 6.0], [1.0, 2.0, 3.0])
    assert pooled.estimate == pytest.approx(5.0)
    assert (pooled.within, pooled.between) == pytest.approx((2.0, 1.0))
    assert pooled.total == pytest.approx(10 / 3)
    assert pooled.std_error == pytest.approx(np.sqrt(10 / 3))
    assert pooled.df == pytest.approx(2 / 0.4**2)
    assert pooled.fraction_missing == pytest.approx((2 / 3 + 2 / 15.5) / (5 / 3))
    assert pooled.relative_efficiency == pytest.approx(1 / (1 + pooled.fraction_missing / 3))
    assert isinstance(pooled.estimate, float)
    # Barnard and Rubin, with 20 degrees of freedom: 21/23 * 20 * 3/5 = 252/23, and 12.5.
    small = pool_estimates([4.0, 5.0, 6.0], [1.0, 2.0, 3.0], complete_df=20)
    assert small.df == pytest.approx(1 / (1 / 12.5 + 23 / 252))


def test_intervals_and_p_values_are_those_of_students_t():
    pooled = pool_estimates(Q, U)
    low, high = pooled.interval(0.9)
    t = stats.t(pooled.df, loc=pooled.estimate, scale=pooled.std_error)
    np.testing.assert_allclose(low, t.ppf(0.05))
    np.testing.assert_allclose(high, t.ppf(0.95))
    np.testing.assert_allclose(pooled.p_value(), 2 * np.minimum(t.cdf(0), t.sf(0)))
    np.testing.assert_allclose(pooled.p_value(pooled.estimate), 1.0)
    # The end of an interval is rejected exactly at its level.
    np.testing.assert_allclose(pooled.p_value(high), 0.1)


def test_each_parameter_alone_and_all_together_are_the_same():
    together = pool_estimates(Q, U, complete_df=30)
    for j in range(3):
        alone = pool_estimates(Q[:, j], U[:, j], complete_df=30)
        for name in ("estimate", "std_error", "df", "total", "fraction_missing"):
            assert getattr(together, name)[j] == pytest.approx(getattr(alone, name))


def test_covariances_have_the_variances_on_their_diagonals():
    A = RNG.standard_normal((7, 3, 3))
    covariances = A @ A.transpose(0, 2, 1)
    full = pool_estimates(Q, covariances)
    plain = pool_estimates(Q, np.diagonal(covariances, axis1=1, axis2=2))
    for name in ("estimate", "std_error", "df", "fraction_missing"):
        np.testing.assert_allclose(getattr(full, name), getattr(plain, name))
    np.testing.assert_allclose(full.between, np.cov(Q.T))
    np.testing.assert_allclose(full.total, covariances.mean(axis=0) + 8 / 7 * np.cov(Q.T))


def test_scale_and_order_of_draws():
    pooled, scaled = pool_estimates(Q, U), pool_estimates(-3 * Q[::-1], 9 * U[::-1])
    np.testing.assert_allclose(scaled.estimate, -3 * pooled.estimate)
    np.testing.assert_allclose(scaled.std_error, 3 * pooled.std_error)
    np.testing.assert_allclose(scaled.df, pooled.df)
    np.testing.assert_allclose(scaled.p_value(), pooled.p_value())


@pytest.mark.filterwarnings("error")
def test_draws_that_agree_lose_nothing():
    pooled = pool_estimates([2.0, 2.0, 2.0], [0.25, 0.25, 0.25])
    assert pooled.df == np.inf
    assert pooled.fraction_missing == 0.0
    assert pooled.std_error == 0.5
    np.testing.assert_allclose(pooled.interval(), 2 + 0.5 * stats.norm.ppf([0.025, 0.975]))
    assert pooled.p_value() == pytest.approx(2 * stats.norm.sf(4))
    assert pool_estimates([2.0, 2.0], [0.1, 0.1], complete_df=8).df == pytest.approx(9 / 11 * 8)
    certain = pool_estimates([2.0, 2.0], [0.0, 0.0])
    assert certain.interval() == (2.0, 2.0)
    assert (certain.p_value(), certain.p_value(2.0)) == (0.0, 1.0)


@pytest.mark.filterwarnings("error")
def test_all_variance_between_draws():
    assert pool_estimates([1.0, 3.0], [0.0, 0.0]).fraction_missing == pytest.approx(1.0)
    unknown = pool_estimates([1.0, 3.0], [0.0, 0.0], complete_df=5)
    assert unknown.df == 0.0
    assert unknown.interval() == (-np.inf, np.inf)
    assert unknown.p_value() == 1.0


def test_degrees_of_freedom_are_never_more_than_those_of_complete_data():
    for complete in (1.0, 5.0, 100.0):
        assert (pool_estimates(Q, U, complete_df=complete).df < complete).all()
    np.testing.assert_allclose(pool_estimates(Q, U, complete_df=1e9).df, pool_estimates(Q, U).df)


def test_intervals_contain_the_mean_as_often_as_they_say():
    # Half of a normal sample is missing, and is drawn from its posterior: 95 % of 2000 intervals.
    rng = np.random.RandomState(1)
    runs, n, kept, m = 2000, 40, 20, 20
    seen = rng.standard_normal((runs, kept))
    mean, var = seen.mean(axis=1), seen.var(axis=1, ddof=1)
    scale = np.sqrt(var * (kept - 1) / rng.chisquare(kept - 1, (m, runs)))
    centre = mean + scale * rng.standard_normal((m, runs)) / np.sqrt(kept)
    drawn = centre[..., None] + scale[..., None] * rng.standard_normal((m, runs, n - kept))
    filled = np.concatenate([np.broadcast_to(seen, (m, runs, kept)), drawn], axis=2)
    variances = filled.var(axis=2, ddof=1) / n
    pooled = pool_estimates(filled.mean(axis=2), variances, complete_df=n - 1)
    low, high = pooled.interval()
    assert np.mean((low < 0) & (high > 0)) == pytest.approx(0.95, abs=0.015)
    naive = 1.96 * np.sqrt(variances[0])
    assert np.mean(np.abs(filled[0].mean(axis=1)) < naive) < 0.9
    assert np.median(pooled.fraction_missing) == pytest.approx(0.5, abs=0.1)


@pytest.mark.parametrize(
    ("estimates", "variances", "message"),
    [
        ([1.0], [1.0], "estimates has 1 draws: .* at least 2"),
        (1.0, 1.0, r"estimates has shape \(\): give"),
        (Q, U[:, :2], r"variances has shape \(7, 2\), .* \(7, 3\) or \(7, 3, 3\)"),
        (Q[:, 0], np.ones((7, 1, 1)), r"give variances of shape \(7,\)$"),
        ([1.0, 2.0], [1.0, -0.5], "1 negative entries, the least -0.5"),
        (Q, -np.ones((7, 3, 3)), "21 negative entries"),
        ([1.0, 2.0], [1.0, np.nan], "variances contains 1 entries that are NaN"),
        ([1.0, np.inf], [1.0, 1.0], "estimates contains 1 entries that are NaN or infinite"),
    ],
)
def test_what_cannot_be_pooled(estimates, variances, message):
    with pytest.raises(ValueError, match=message):
        pool_estimates(estimates, variances)


def test_levels_and_degrees_of_freedom_are_checked():
    with pytest.raises(ValueError, match="complete_df == 0"):
        pool_estimates(Q, U, complete_df=0)
    for level in (0.0, 1.0):
        with pytest.raises(ValueError, match="level == "):
            pool_estimates(Q, U).interval(level)
