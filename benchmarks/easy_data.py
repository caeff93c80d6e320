"""Easy problems: unions of subspaces and blobs whose clusters anybody would expect to be found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.datasets import make_blobs

from polyspan.datasets import make_union_of_subspaces


@dataclass(frozen=True)
class Problem:
    """Rows with known clusters, and the sizes that every method is given."""

    X: np.ndarray
    labels: np.ndarray
    """-1: an outlier, which no method is judged on."""
    n_subspaces: int
    subspace_dim: int
    affine: bool = False
    """Whether clusters have a place of their own; linear methods then learn affine subspaces."""


def union(
    rng: np.random.Generator, sizes: Sequence[int], n_features: int, dims: int | Sequence[int],
    noise: float = 0.05, *, orthogonal: bool = False, offset: float = 0.0,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Draw rows of mean squared norm 1 near subspaces; `noise` is the norm of a row's noise."""
    each = [dims] * len(sizes) if isinstance(dims, int) else list(dims)
    drawn = [rng.standard_normal((n_features, dim)) for dim in each]
    if orthogonal:
        together = np.linalg.qr(rng.standard_normal((n_features, sum(each))))[0]
        drawn = np.split(together, np.cumsum(each)[:-1], axis=1)
    rows = []
    for n, directions in zip(sizes, drawn, strict=True):
        inside = rng.standard_normal((n, directions.shape[1])) @ np.linalg.qr(directions)[0].T
        inside *= 1 / np.sqrt(directions.shape[1]) if directions.shape[1] else 0.0
        place = offset * rng.standard_normal(n_features) / np.sqrt(n_features)
        rows.append(inside + place + noise * rng.standard_normal((n, n_features)) / n_features**0.5)
    return np.concatenate(rows), np.repeat(np.arange(len(sizes)), sizes)


def drawn_at_random(rng: np.random.Generator) -> Problem:
    """Draw a union with random number, dimension, sizes and noise."""
    n, dim = int(rng.integers(2, 16)), int(rng.integers(1, 9))
    m = int(rng.integers(dim + 1, 201))
    sizes = rng.integers(3 * dim + 5, 12 * dim + 21, size=n).astype(float)
    if rng.random() < 0.5:
        sizes *= rng.uniform(0.5, 4.0, size=n)
    noise = float(rng.choice([0.0, 0.05, 0.2, 0.5]))
    return Problem(*union(rng, sizes.astype(int).tolist(), m, dim, noise), n, dim)


def near(spread: float) -> Callable[[np.random.Generator], Problem]:
    """Return a generator of the paper's setting, with neighbours at this distance."""

    def drawn(rng: np.random.Generator) -> Problem:
        data = make_union_of_subspaces(spread=spread, random_state=int(rng.integers(2**31)))
        return Problem(data.X, data.labels, 5, 13)

    return drawn


def blobs(
    sizes: Sequence[int], n_features: int, dim: int = 0, spread: float = 1.0
) -> Callable[[np.random.Generator], Problem]:
    """Return a generator of round blobs."""

    def drawn(rng: np.random.Generator) -> Problem:
        seed = int(rng.integers(2**31))
        X, labels = make_blobs(sizes, n_features, cluster_std=spread, random_state=seed)
        return Problem(X, labels, len(sizes), dim, affine=True)

    return drawn


def of_union(
    sizes: Sequence[int], n_features: int, dims: int | Sequence[int], noise: float = 0.05, *,
    given: tuple[int, int] | None = None, orthogonal: bool = False, offset: float = 0.0,
    outliers: float = 0.0, scale: float = 1.0,
) -> Callable[[np.random.Generator], Problem]:  # fmt: skip
    """Return a generator of unions; `given` are the sizes that methods get instead of the true."""
    dim = dims if isinstance(dims, int) else max(dims)

    def drawn(rng: np.random.Generator) -> Problem:
        X, labels = union(rng, sizes, n_features, dims, noise, orthogonal=orthogonal, offset=offset)
        n = round(outliers * len(X))
        far = rng.standard_normal((n, n_features)) / np.sqrt(n_features)
        X, labels = np.concatenate([X, far]), np.concatenate([labels, np.full(n, -1)])
        return Problem(scale * X, labels, *(given or (len(sizes), dim)), affine=offset > 0)

    return drawn


PROBLEMS: dict[str, Callable[[np.random.Generator], Problem]] = {
    # The rows of the table on the page.
    "two orthogonal planes in R4": of_union([100] * 2, 4, 2, orthogonal=True),
    "five orthogonal planes in R10": of_union([60] * 5, 10, 2, 0.2, orthogonal=True),
    "three lines in the plane": of_union([80] * 3, 2, 1),
    "three planes in R3": of_union([100] * 3, 3, 2, 0.02),
    "four of dimension 3 in R20": of_union([60] * 4, 20, 3, 0.1),
    "ten planes in R20": of_union([40] * 10, 20, 2, 0.1),
    "twenty planes in R50": of_union([30] * 20, 50, 2, 0.1),
    "five of dimension 5 in R200": of_union([20] * 5, 200, 5, 0.2),
    "those times 1e-6": of_union([20] * 5, 200, 5, 0.2, scale=1e-6),
    "five blobs in R10": blobs([60] * 5, 10),
    # Linear subspaces.
    "two lines in the plane": of_union([80] * 2, 2, 1),
    "five lines in R3": of_union([50] * 5, 3, 1, 0.02),
    "eight lines in R10": of_union([30] * 8, 10, 1),
    "two planes in R3": of_union([100] * 2, 3, 2, 0.02),
    "five planes in R5": of_union([80] * 5, 5, 2, 0.02),
    "three of dimension 3 in R6": of_union([100] * 3, 6, 3),
    "four of dimension 3 times 1e6": of_union([60] * 4, 20, 3, 0.1, scale=1e6),
    "four without noise": of_union([60] * 4, 20, 3, 0.0),
    "four with strong noise": of_union([100] * 4, 20, 3, 0.5),
    "sizes 200, 60, 30, 20 in R20": of_union([200, 60, 30, 20], 20, 3, 0.1),
    "sizes 300, 30, 30 in R10": of_union([300, 30, 30], 10, 2),
    "orthogonal, of dimension 8 in R40": of_union([60] * 5, 40, 8, 0.2, orthogonal=True),
    "few rows of many features": of_union([15] * 4, 500, 4, 0.2),
    "many rows": of_union([2000] * 4, 10, 3, 0.1),
    "one subspace": of_union([150], 20, 3, 0.1),
    "close, as in the paper": near(0.04),
    "less close": near(0.1),
    "not close": near(0.2),
    # Sizes that are not the true ones, and outliers.
    "given 5 for 3 subspaces": of_union([80] * 3, 20, 3, 0.1, given=(5, 3)),
    "given 3 for one subspace": of_union([150], 20, 3, 0.1, given=(3, 3)),
    "given dimension 5 for 3": of_union([80] * 4, 30, 3, 0.1, given=(4, 5)),
    "a tenth of outliers": of_union([80] * 4, 20, 3, 0.1, outliers=0.1),
    "a tenth of outliers, planes in R3": of_union([100] * 2, 3, 2, 0.02, outliers=0.1),
    # Clusters with a place of their own.
    "three blobs in the plane": blobs([100] * 3, 2),
    "seven blobs in R3": blobs([50] * 7, 3),
    "blobs of sizes 400, 40, 40": blobs([400, 40, 40], 5),
    "narrow blobs": blobs([50] * 6, 8, spread=0.1),
    "four lines with offsets in R3": of_union([60] * 4, 3, 1, 0.02, offset=2.0),
    "three planes with offsets in R5": of_union([80] * 3, 5, 2, 0.05, offset=2.0),
    "five of dimension 3 with offsets in R20": of_union([60] * 5, 20, 3, 0.1, offset=1.0),
    **{f"random union {k}": drawn_at_random for k in range(1, 25)},
}
