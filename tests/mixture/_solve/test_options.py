"""Bare steps of EM with weights, outliers, groups and unequal dimensions: no value falls."""

from dataclasses import replace

import numpy as np
import pytest

from polyspan.mixture._solve.complete import RowWeights
from polyspan.mixture._solve.gaussians import ExtendedGaussians, Gaussians
from polyspan.mixture._solve.noise import NoiseRule, Shrinkage
from polyspan.mixture.problem import as_samples

N, M, L, DIMS = 60, 6, 3, (1, 2, 4)


def draw(rng, n_components, dims):
    bases, _ = np.linalg.qr(rng.standard_normal((n_components, M, max(dims))))
    within = np.arange(max(dims)) < np.array(dims)[:, None]
    return Gaussians(
        np.full(n_components, -np.log(n_components)),
        np.zeros((n_components, M)),
        bases * within[:, None, :],
        rng.uniform(0.5, 4, within.shape) * within,
        rng.uniform(0.1, 0.5, n_components),
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("holes", [None, 0.3])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("outliers", [None, "given", "learned"])
@pytest.mark.parametrize(("kind", "closeness"), [("subspace", 0.0), ("shared", 3.0)])
def test_no_step_lowers_the_value(seed, holes, grouped, outliers, kind, closeness):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, M)) @ rng.standard_normal((M, M))
    X[:5] = rng.uniform(-9, 9, (5, M))
    observed = None if holes is None else rng.uniform(size=X.shape) >= holes
    X = X if observed is None else np.where(observed, X, 0.0)
    groups = rng.integers(0, 3, N) if grouped else None
    if grouped:
        X = X * (1 + groups[:, None])
    weights = RowWeights(
        rng.uniform(0, 3, N), None if outliers is None else np.full(N, -14.0), outliers == "learned"
    )
    affine = seed % 2 == 0
    rule = NoiseRule(kind, 1e-3)
    samples = as_samples(X, observed, affine=affine, rule=rule, row_weights=weights, groups=groups)
    samples = replace(samples, dims=DIMS)
    factors = np.ones(3) if grouped else None
    current = ExtendedGaussians.of(draw(rng, L, DIMS), 0.2 if outliers else 0.0, factors)
    shrinkage = Shrinkage(draw(rng, 1, (2,)), closeness)
    history, shares = [], []
    for _ in range(25):
        value, sums = samples.expect(current)
        history.append(value - shrinkage.penalty(current))
        shares.append(current.outlier_share)
        current = samples.maximise(current, sums, shrinkage)
    assert np.diff(history)[1:].min() > -1e-8 * abs(history[-1])
    assert history[-1] > history[1]
    assert (len(set(shares)) > 1) == (outliers == "learned")
    assert not current.bases[0][:, 1:].any()
    if grouped:
        assert np.ptp(current.noise_factors) > 0
