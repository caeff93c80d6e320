"""Posteriors of rows with different masks: systems that rounding makes singular."""

import numpy as np
from numpy.testing import assert_allclose

from polyspan.mixture._solve.gaussians import _eliminate


def systems(noise, dtype):
    """Return factors, masks and right-hand sides of rows of which hardly any entry is observed."""
    rng = np.random.default_rng(0)
    n_features, dim, n = 64, 20, 40
    W = np.linalg.qr(rng.standard_normal((n_features, dim)))[0]
    observed = rng.random((n, n_features)) < 0.05
    right = rng.standard_normal((1, dim, n))
    return [a.astype(dtype) for a in (W[None], observed, right, np.array([noise]))]


def test_a_pivot_that_is_rounding_gives_no_warning_and_no_nan():
    """In float32 the 1 of I + WᵀW/σ² is lost beside 1/σ²: pivots of 0 and less are left."""
    z, logs = _eliminate(*systems(1e-9, np.float32))
    assert np.isfinite(logs).all()
    assert np.isfinite(z).all()


def test_what_is_eliminated_is_the_solution_and_the_determinant():
    W, observed, right, noise = systems(0.1, np.float64)
    z, logs = _eliminate(W, observed, right, noise)
    for i, seen in enumerate(observed):
        system = np.eye(W.shape[2]) + (W[0] * seen[:, None]).T @ W[0] / noise
        assert_allclose(z[0, :, i], np.linalg.solve(system, right[0, :, i]))
        assert_allclose(logs[0, i], np.linalg.slogdet(system)[1])
