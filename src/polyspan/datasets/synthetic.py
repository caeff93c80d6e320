"""Synthetic data: the paper's chain of close subspaces (Sec. V-A), and missing entries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, cast

import numpy as np
from sklearn.utils import check_random_state

from polyspan.base.inputs import naming_columns, plain_numbers, require_numpy
from polyspan.base.private_sklearn import Interval, StrOptions, check_parameters
from polyspan.geometry.bases import orthonormal_columns, range_basis


@dataclass(frozen=True)
class UnionOfSubspaces:
    """A training set and a test set drawn from one union of subspaces.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Noisy training samples.
    X_clean : ndarray of shape (n_samples, n_features)
        The same samples without noise, of norm 1.
    labels : ndarray of shape (n_samples,)
        Which subspace each sample was drawn from.
    bases : ndarray of shape (n_subspaces, n_features, subspace_dim)
        True bases. Where dimensions differ there are as many columns as the largest has, and those
        beyond a subspace's own dimension are zero.
    X_test : ndarray of shape (n_test_samples, n_features)
        Noisy test samples.
    X_test_clean : ndarray of shape (n_test_samples, n_features)
        The test samples without noise.
    labels_test : ndarray of shape (n_test_samples,)
        Which subspace each test sample was drawn from.
    """

    X: np.ndarray
    X_clean: np.ndarray
    labels: np.ndarray
    bases: np.ndarray
    X_test: np.ndarray
    X_test_clean: np.ndarray
    labels_test: np.ndarray


def make_union_of_subspaces(
    sizes: Sequence[int] = (150, 100, 150, 100, 150),
    *,
    n_features: int = 180,
    subspace_dim: int | Sequence[int] = 13,
    spread: float = 0.04,
    noise: float = 0.1,
    test_noise: float | None = None,
    test_sizes: Sequence[int] | None = None,
    random_state: Any = None,
) -> UnionOfSubspaces:
    r"""Draw samples near a chain of subspaces, as in the paper's synthetic experiments.

    T_1 is a random basis and :math:`T_l = \mathrm{orth}(T_{l-1} + t_s W_l)`, with the entries of
    W_l uniform between 0 and 1. Samples are T_l c with standard normal c, scaled to norm 1, plus
    white noise of expected squared norm `noise`. Where dimensions differ, T_{l-1} is cut to its
    first s_l columns before W_l is added, or gets random orthogonal columns: without W_l, of two
    subspaces in a row one would contain the other.

    Parameters
    ----------
    sizes : sequence of int, default=(150, 100, 150, 100, 150)
        Number of training samples per subspace; its length is the number of subspaces.
    n_features : int, default=180
        Dimension m of the ambient space.
    subspace_dim : int or sequence of int, default=13
        Dimension s of every subspace, or one dimension for each.
    spread : float, default=0.04
        How far each subspace is from the one before, t_s ≥ 0.
    noise : float, default=0.1
        Expected squared norm σ² ≥ 0 of the noise of a training sample (variance σ²/m per entry).
    test_noise : float, default=None
        The same for test samples; None: as `noise`.
    test_sizes : sequence of int, default=None
        Test samples per subspace; None: as `sizes`.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws. The subspaces, the clean training samples, the clean test samples, and
        the noise of each are drawn in this order.

    Returns
    -------
    UnionOfSubspaces
        Training samples `X`, `X_clean`, `labels`, the true `bases`, and test samples `X_test`,
        `X_test_clean`, `labels_test`.

    Examples
    --------
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> data = make_union_of_subspaces((30, 20), n_features=10, subspace_dim=2, random_state=0)
    >>> data.X.shape, data.bases.shape
    ((50, 10), (2, 10, 2))
    """
    check_parameters(
        "make_union_of_subspaces",
        n_features=(n_features, [Interval(Integral, 2, None, closed="left")]),
        subspace_dim=(subspace_dim, [Interval(Integral, 1, None, closed="left"), "array-like"]),
        spread=(spread, [Interval(Real, 0, None, closed="left")]),
        noise=(noise, [Interval(Real, 0, None, closed="left")]),
        test_noise=(test_noise, [Interval(Real, 0, None, closed="left"), None]),
        random_state=(random_state, ["random_state"]),
    )
    sizes = _check_sizes("sizes", sizes)
    test_sizes = sizes if test_sizes is None else _check_sizes("test_sizes", test_sizes)
    test_noise = noise if test_noise is None else test_noise
    if len(test_sizes) != len(sizes):
        raise ValueError(f"test_sizes={test_sizes} and sizes={sizes} need the same length")
    if np.ndim(subspace_dim) == 0:
        subspace_dim = np.repeat(subspace_dim, len(sizes)).tolist()
    dims = _check_sizes("subspace_dim", cast(Sequence[int], subspace_dim), "dimension")
    if len(dims) != len(sizes):
        raise ValueError(f"subspace_dim={dims} and sizes={sizes} need the same length")
    if max(dims) >= n_features:
        raise ValueError(
            f"subspace_dim={max(dims)} must be at least 1 and below n_features={n_features}"
        )
    rng = check_random_state(random_state)
    bases = [range_basis(rng.standard_normal((n_features, dims[0])))]
    for s in dims[1:]:
        before = _of_dimension(bases[-1], s, rng)
        bases.append(range_basis(before + spread * rng.uniform(size=(n_features, s))))
    clean, clean_test = (_draw_samples(bases, n, rng) for n in (sizes, test_sizes))
    noisy, noisy_test = (
        x + rng.standard_normal(x.shape) * np.sqrt(power / n_features)
        for x, power in ((clean, noise), (clean_test, test_noise))
    )
    return UnionOfSubspaces(
        X=noisy,
        X_clean=clean,
        labels=np.repeat(np.arange(len(sizes)), sizes),
        bases=np.stack([np.pad(b, ((0, 0), (0, max(dims) - b.shape[1]))) for b in bases]),
        X_test=noisy_test,
        X_test_clean=clean_test,
        labels_test=np.repeat(np.arange(len(sizes)), test_sizes),
    )


def _of_dimension(basis: np.ndarray, s: int, rng: np.random.RandomState) -> np.ndarray:
    """Return the first s columns of a basis, or all and random ones orthogonal to them."""
    n_features, old = basis.shape
    if s <= old:
        return basis[:, :s]
    more = rng.standard_normal((n_features, s - old))
    completed = orthonormal_columns(np.concatenate([basis, more], axis=1))
    return np.concatenate([basis, completed[:, old:]], axis=1)


def _draw_samples(
    bases: list[np.ndarray], sizes: tuple[int, ...], rng: np.random.RandomState
) -> np.ndarray:
    parts = [
        rng.standard_normal((n, basis.shape[1])) @ basis.T
        for basis, n in zip(bases, sizes, strict=True)
    ]
    samples = np.concatenate(parts)
    return np.asarray(samples / np.linalg.norm(samples, axis=1, keepdims=True))


def _check_sizes(
    name: str, sizes: Sequence[int], what: str = "number of samples"
) -> tuple[int, ...]:
    sizes = tuple(sizes) if np.ndim(sizes) == 1 else ()
    if not sizes or not all(isinstance(n, Integral) and n >= 1 for n in sizes):
        raise ValueError(f"{name}={sizes} must hold at least one {what}, each ≥ 1")
    return sizes


def mask_entries(
    X: Any, fraction: float, *, pattern: str = "sample", random_state: Any = None
) -> np.ndarray:
    """Return a copy of X with a fraction of its entries replaced by NaN.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples; never modified.
    fraction : float
        Fraction of the entries to hide: at least 0 and below 1.
    pattern : {"sample", "overall", "block", "side"}, default="sample"
        "sample": the same number of random entries, round(fraction · n_features), in every sample,
        as in the paper; "overall": random entries of the whole array; "block": one run of
        neighbouring features per sample; "side": the last features of one half of the samples,
        drawn at random; the other half stays complete, so that every feature is observed.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw of hidden entries.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        Floating-point values of X, with NaN for hidden entries.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.datasets import mask_entries
    >>> masked = mask_entries(np.ones((3, 10)), 0.3, random_state=0)
    >>> np.isnan(masked).sum(axis=1).tolist()
    [3, 3, 3]
    """
    check_parameters(
        "mask_entries",
        fraction=(fraction, [Interval(Real, 0, 1, closed="left")]),
        pattern=(pattern, [StrOptions({"sample", "overall", "block", "side"})]),
        random_state=(random_state, ["random_state"]),
    )
    require_numpy("mask_entries", X=X)
    given = np.asarray(plain_numbers(X))
    if given.dtype.kind not in "biuf":  # a table of several types
        with naming_columns(X):
            given = given.astype(np.float64)
    masked: np.ndarray = given.astype(np.result_type(given.dtype, np.float32), copy=True)
    if masked.ndim != 2:
        raise ValueError(f"X must have two dimensions, found {masked.ndim}")
    rng = check_random_state(random_state)
    n, m = masked.shape
    hidden = round(fraction * m)
    if pattern == "sample":
        # The order of random numbers in each row is a draw without replacement per sample.
        order = np.argsort(rng.uniform(size=(n, m)), axis=1)
        np.put_along_axis(masked, order[:, :hidden], np.nan, axis=1)
    elif pattern == "overall":
        masked.flat[rng.permutation(n * m)[: round(fraction * n * m)]] = np.nan
    elif pattern == "block":
        starts = rng.randint(0, m - hidden + 1, size=n)
        position = np.arange(m)
        masked[(position >= starts[:, None]) & (position < starts[:, None] + hidden)] = np.nan
    else:
        masked[rng.permutation(n)[n // 2 :], m - hidden :] = np.nan
    return masked
