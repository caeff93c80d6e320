"""A start that the user gives is the start of the run, also in the span of few samples."""

import numpy as np
from numpy.testing import assert_allclose

from polyspan.geometry import draw_bases, subspace_distance
from polyspan.linear import MiCUSaL


def objective(X, bases, points, lam):
    """F1 of affine subspaces, written out."""
    about = X - X.mean(axis=0)
    unit = np.mean(np.sum(about**2, axis=1))
    across = [np.eye(X.shape[1]) - basis @ basis.T for basis in bases]
    feet = [Q @ (c - X.mean(axis=0)) for Q, c in zip(across, points, strict=True)]
    closeness = sum(
        subspace_distance(bases[p], bases[q]) ** 2 + np.sum((feet[p] - feet[q]) ** 2) / unit
        for p in range(len(bases))
        for q in range(len(bases))
        if p != q
    )
    squares = [np.sum(((X - c) @ Q) ** 2, axis=1) for Q, c in zip(across, points, strict=True)]
    return closeness + lam * np.min(squares, axis=0).sum()


def test_points_outside_the_span_of_few_samples():
    rng = np.random.RandomState(0)
    X = rng.standard_normal((20, 50)) + 5.0
    bases, points = draw_bases((2, 50, 2), rng), 3.0 + rng.standard_normal((2, 50))
    start = np.concatenate([bases, points[..., None]], axis=-1)
    model = MiCUSaL(2, 2, affine=True, init=start, lam=2.0).fit(X)
    assert_allclose(model.objective_history_[0], objective(X, bases, points, 2.0), rtol=1e-9)
