"""One Gaussian with holes: EM, leaving entries out in closed form, draws."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from polyspan.tables.components import fit_components
from polyspan.tables.encoding import Encoding
from polyspan.tables.gaussian import (
    DIAGONAL_SAMPLES,
    Gaussian,
    Masks,
    conditional_draws,
    conditionals,
    em_step,
    fit_gaussian,
    log_densities,
    precisions,
)

RNG = np.random.default_rng(0)
ROOT = RNG.standard_normal((5, 5))
TRUTH = Gaussian(RNG.standard_normal(5), ROOT @ ROOT.T + 0.2 * np.eye(5))
FULL = RNG.multivariate_normal(TRUTH.mean, TRUTH.covariance, 60)
Z = np.where(RNG.random(FULL.shape) < 0.3, np.nan, FULL)
BLOCKS = [slice(0, 1), slice(1, 3), slice(3, 4), slice(4, 5)]
Z[np.isnan(Z[:, 1]), 2] = np.nan
Z[np.isnan(Z[:, 2]), 1] = np.nan


def given(row, gaussian, hidden=()):
    """Return mean and covariance of all entries given the observed ones that are not hidden."""
    o = np.flatnonzero(~np.isnan(row) & ~np.isin(np.arange(len(row)), hidden))
    gain = gaussian.covariance[:, o] @ np.linalg.inv(gaussian.covariance[np.ix_(o, o)])
    mean = gaussian.mean + gain @ (row[o] - gaussian.mean[o])
    return mean, gaussian.covariance - gain @ gaussian.covariance[o]


def test_complete_data_give_the_moments_of_the_sample():
    found = fit_gaussian(FULL)
    assert_allclose(found.mean, FULL.mean(axis=0))
    expected = np.cov(FULL.T, bias=True)
    shrunk = expected * len(FULL) / (len(FULL) + DIAGONAL_SAMPLES)
    np.fill_diagonal(shrunk, np.diagonal(expected))
    assert_allclose(found.covariance, shrunk, atol=1e-12)


def test_weights_are_repeats():
    weights = np.random.default_rng(1).integers(0, 3, len(Z))
    one = fit_gaussian(Z, weights=weights.astype(float))
    two = fit_gaussian(np.repeat(Z, weights, axis=0))
    assert_allclose(one.mean, two.mean, atol=1e-9)
    assert_allclose(one.covariance, two.covariance, atol=1e-9)


def test_the_likelihood_never_falls():
    masks = Masks.of(~np.isnan(Z))
    values = []
    for steps in range(1, 12):
        found = Gaussian(np.zeros(5), np.eye(5))
        for _ in range(steps):
            inverse = precisions(found.covariance, masks.masks)
            found = em_step(Z, np.ones(len(Z)), masks, found, inverse, np.eye(5), 0.0)
        inverse = precisions(found.covariance, masks.masks)
        values.append(log_densities(Z, found, masks, inverse).sum())
    assert (np.diff(values) > -1e-9).all()
    assert values[-1] > values[0] + 1


def test_entries_are_left_out_as_if_they_were_missing():
    found = conditionals(Z, TRUTH, BLOCKS)
    for i in range(12):
        mean, covariance = given(Z[i], TRUTH)
        missing = np.isnan(Z[i])
        assert_allclose(found.fills[i, missing], mean[missing])
        assert_allclose(found.variances[i, missing], np.diagonal(covariance)[missing])
        for block in BLOCKS:
            without, left = given(Z[i], TRUTH, np.arange(5)[block])
            assert_allclose(found.expected[i, block], without[block])
            assert_allclose(found.variances[i, block], np.diagonal(left)[block])


@pytest.mark.parametrize("block", BLOCKS)
def test_fills_that_have_not_seen_a_block(block):
    found = conditionals(Z, TRUTH, BLOCKS).fills_without(block)
    hidden = Z.copy()
    hidden[:, block] = np.nan
    assert_allclose(found, conditionals(hidden, TRUTH, BLOCKS).fills)


def test_rows_are_treated_by_themselves():
    whole = conditionals(Z, TRUTH, BLOCKS)
    part = conditionals(Z[7:9], TRUTH, BLOCKS)
    assert_allclose(whole.expected[7:9], part.expected)
    assert_allclose(whole.log_densities[7:9], part.log_densities)


def test_draws_are_correlated_as_the_gaussian_says():
    row = np.array([[0.3, np.nan, np.nan, -1.0, np.nan]])
    rows = np.repeat(row, 20_000, axis=0)
    scores = conditional_draws(rows, TRUTH, np.random.default_rng(2).standard_normal(rows.shape))
    assert (scores[:, [0, 3]] == 0).all()
    covariance = given(row[0], TRUTH)[1][np.ix_([1, 2, 4], [1, 2, 4])]
    spread = np.sqrt(np.diagonal(covariance))
    correlations = covariance / np.outer(spread, spread)
    assert_allclose(np.cov(scores[:, [1, 2, 4]].T), correlations, atol=0.04)


def test_several_gaussians_find_groups_and_leave_entries_out():
    rng = np.random.default_rng(3)
    centres = np.array([[4.0, 4.0, 4.0], [-4.0, -4.0, 4.0]])
    groups = rng.integers(0, 2, 300)
    table = centres[groups] + rng.standard_normal((300, 3))
    holes = np.where(rng.random(table.shape) < 0.2, np.nan, table)
    encoding = Encoding.of(holes, [0] * 3, [False] * 3)
    standardised = encoding.standardised(holes)
    found = fit_components(standardised, fit_gaussian(standardised), 2, np.random.RandomState(0))
    assert_allclose(found.weights.sum(), 1)
    mean, variance = found.expect(standardised, encoding)
    hidden = standardised.copy()
    seen = ~np.isnan(hidden[:, 0])
    hidden[:, 0] = np.nan
    again = found.expect(hidden, encoding)
    assert_allclose(mean[seen, 0], again[0][seen, 0], atol=1e-9)
    assert_allclose(variance[seen, 0], again[1][seen, 0], rtol=1e-6)
    known = ~np.isnan(holes[:, 0]) & ~np.isnan(holes[:, 1])
    scale, middle = encoding.scaling.scale[0], encoding.scaling.mean[0]
    assert np.abs(mean[known, 0] * scale + middle - centres[groups[known], 0]).mean() < 0.6
