"""Where fits start: flats through rows that are not yet covered (k-flats++), and filled rows.

The alternation ends near where it starts. On data whose subspaces are far apart, k-flats++ starts
it near the truth: each subspace is spanned by rows of small angle to a seed, and seeds are drawn
where no subspace is near yet, as k-means++ draws its centres.
"""

from __future__ import annotations

import numpy as np

# Rows that span a start, for each of its directions; one more is the seed.
ROWS_PER_DIRECTION = 2
# Seeds of which every second start takes the one that leaves the least uncovered.
CANDIDATES = 3
# Steps of the low-rank fit that fills missing entries.
FILLING_STEPS = 50


def flats_plus_plus(
    X: np.ndarray, n_flats: int, dim: int, n_starts: int, rng: np.random.RandomState, *,
    affine: bool = False, weights: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """Draw starts of `n_flats` subspaces by k-flats++.

    A seed is a row, drawn with a chance that is its squared residual to the flats so far. The rows
    of smallest angle to it (for affine flats the nearest), among those that are not covered, span
    the next flat. Every second start takes the best of three seeds each time: such starts settle
    sooner, but fail together where outliers look like a flat.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Complete rows; linear flats go through the origin.
    weights : array of shape (n_samples,), default=None
        Weights of the rows; None: 1 for each.

    Returns
    -------
    frames : array of shape (n_starts, n_flats, n_features, dim), one column more if affine
        Orthonormal bases; the last column of affine flats is a point.
    """
    norms = np.einsum("ij,ij->i", X, X)
    residuals = np.tile(np.ones_like(norms) if affine else norms, (n_starts, 1))
    greedy = np.arange(n_starts) % 2 == 1
    frames = []
    for k in range(n_flats):
        left = np.full(n_starts, np.inf)
        chosen, uncovered = np.empty((n_starts, X.shape[1], dim + affine)), residuals
        for _ in range(CANDIDATES if n_starts > 1 else 1):
            seeds = _drawn(residuals, weights, rng)
            flat = _flats_at(X, norms, seeds, residuals, dim, affine=affine, first=k == 0)
            after = _squared_distances(X, norms, flat, affine=affine)
            after = after if affine and k == 0 else np.minimum(residuals, after)
            total = after.sum(axis=1) if weights is None else after @ weights
            better = (total < left) & (greedy | np.isinf(left))
            left = np.where(better, total, left)
            chosen = np.where(better[:, None, None], flat, chosen)
            uncovered = np.where(better[:, None], after, uncovered)
        residuals = uncovered
        frames.append(chosen)
    return np.stack(frames, axis=1)


def _drawn(
    residuals: np.ndarray, weights: np.ndarray | None, rng: np.random.RandomState
) -> np.ndarray:
    """Draw one row for every start, by its residual; any row where all are covered."""
    chances = residuals if weights is None else residuals * weights
    chances = np.where(chances.sum(axis=1, keepdims=True) > 0, chances, 1.0)
    sums = np.cumsum(chances / chances.max(axis=1, keepdims=True), axis=1)
    below = sums <= rng.random_sample(len(sums))[:, None] * sums[:, -1:]
    return np.asarray(np.minimum(below.sum(axis=1), residuals.shape[1] - 1))


def _flats_at(
    X: np.ndarray, norms: np.ndarray, seeds: np.ndarray, residuals: np.ndarray, dim: int, *,
    affine: bool, first: bool,
) -> np.ndarray:  # fmt: skip
    """Return one flat for every start, spanned by uncovered rows near its seed."""
    products = X[seeds] @ X.T
    if affine:
        distances = np.maximum(norms + norms[seeds][:, None] - 2.0 * products, 0.0)
        score = -distances if first else -distances / np.maximum(residuals, 1e-300)
    else:
        size = np.where(norms > 0, norms, 1.0)
        score = np.abs(products) / np.sqrt(size) * (residuals / size)
    n_near = min(len(X), ROWS_PER_DIRECTION * dim + 1)
    near = X[np.argpartition(-score, n_near - 1, axis=1)[:, :n_near]]
    points = near.mean(axis=1)
    near = near - points[:, None] if affine else near
    bases = np.linalg.svd(near, full_matrices=False)[2][:, :dim].swapaxes(1, 2)
    if bases.shape[2] < dim:  # fewer rows than directions
        extra = np.broadcast_to(np.eye(X.shape[1])[:, :dim], (len(seeds), X.shape[1], dim))
        bases = np.linalg.qr(np.concatenate([bases, extra], axis=2))[0][:, :, :dim]
    return np.concatenate([bases, points[..., None]], axis=2) if affine else bases


def _squared_distances(
    X: np.ndarray, norms: np.ndarray, flats: np.ndarray, *, affine: bool
) -> np.ndarray:
    """Return the squared distance of every row to the flat of every start: (n_starts, n)."""
    if not affine:
        inside = X @ flats  # (n_starts, n, dim)
        return np.asarray(np.maximum(norms - np.einsum("rij,rij->ri", inside, inside), 0.0))
    bases, points = flats[..., :-1], flats[..., -1]
    inside = X @ bases - (points[:, None, :] @ bases)
    apart = norms - 2.0 * (points @ X.T) + np.einsum("rj,rj->r", points, points)[:, None]
    return np.asarray(np.maximum(apart - np.einsum("rij,rij->ri", inside, inside), 0.0))


def filled_rows(
    values: np.ndarray, missing: np.ndarray, rank: int, rng: np.random.RandomState
) -> np.ndarray:
    """Fill the missing entries of rows by one subspace that is fitted to all of them."""
    rank = min(rank, len(values), values.shape[1] - 1)
    if rank < 1:
        return values
    filled = values
    basis = np.linalg.qr(rng.standard_normal((values.shape[1], rank)))[0]
    for _ in range(FILLING_STEPS):
        inside = filled @ basis
        filled = np.where(missing, inside @ basis.T, values)
        basis = np.linalg.qr(filled.T @ (filled @ basis))[0]
    return filled
