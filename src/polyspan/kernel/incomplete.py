"""Kernel values of samples with missing entries (Sec. IV-B), by matrix products for all pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from polyspan.base.inputs import require_numpy
from polyspan.kernel.functions import Kernel, feature_distances


@dataclass(frozen=True)
class Estimate:
    """Estimated kernel values, and the number of pairs that have no common entry.

    Parameters
    ----------
    values : ndarray of shape (n, k)
        Estimate of κ(x, y) for every pair of rows.
    n_unrelated : int
        Pairs of samples without a common observed entry.
    fill : float
        Squared distance or inner product that is used for pairs without a common entry.
    """

    values: np.ndarray
    n_unrelated: int
    fill: float


def estimate_kernel(
    kernel: Kernel,
    X: np.ndarray,
    Y: np.ndarray | None = None,
    *,
    fill: float | None = None,
    sample_weight: np.ndarray | None = None,
) -> Estimate:
    r"""Estimate κ(x, y) of all pairs of rows from the entries observed in both.

    The estimate is :math:`h = k(\tfrac{m}{|\Omega_{ij}|} \|[x - y]_{\Omega_{ij}}\|^2)` for
    the Gaussian kernel, and the same with inner products for linear and polynomial kernels. Three
    matrix products give the estimates of all pairs: of the masks, of the values and (for distances)
    of the squares with the masks. For a pair with no common entry, `fill` is the squared distance
    or inner product.

    Parameters
    ----------
    kernel : Kernel
        A kernel with the name "rbf", "poly" or "linear".
    X : ndarray of shape (n, n_features)
        Samples, with NaN for missing entries.
    Y : ndarray of shape (k, n_features), default=None
        Other samples, with NaN for missing entries; None: X itself, and the result is symmetric.
    fill : float, default=None
        Squared distance (Gaussian) or inner product (other kernels) of pairs with no common entry;
        None: the mean over all pairs of different samples that have a common entry.
    sample_weight : ndarray of shape (n,), default=None
        How often every row of X counts in that mean, where Y is None.

    Returns
    -------
    Estimate
        Kernel values of all pairs, the number of pairs with no common entry, and the value of
        `fill` that was used.
    """
    if kernel.name not in ("rbf", "poly", "linear"):
        raise ValueError(
            f"kernel={kernel.name!r} cannot be estimated from incomplete samples: "
            "'rbf', 'poly' and 'linear' can"
        )
    X = _floats(X)
    Y = None if Y is None else _floats(Y)
    rbf = kernel.name == "rbf"
    if Y is not None:
        X = kernel.near(X)
    with np.errstate(over="ignore", invalid="ignore"):  # such values have an error of their own
        estimates, related = _common_entries(X, Y, distances=rbf)
    counted = related.copy()
    if Y is None:
        np.fill_diagonal(counted, False)
    if fill is None:
        fill = _mean_of_pairs(estimates, related, counted, None if Y is not None else sample_weight)
    unrelated = ~related
    estimates[unrelated] = fill
    n_unrelated = int(np.count_nonzero(unrelated)) // (2 if Y is None else 1)
    of = kernel.of_distances if rbf else kernel.of_products
    with np.errstate(over="ignore", invalid="ignore"):
        values = of(estimates, X.shape[1]).astype(X.dtype, copy=False)
    return Estimate(values, n_unrelated, fill)


def _mean_of_pairs(
    estimates: np.ndarray, related: np.ndarray, counted: np.ndarray, weights: np.ndarray | None
) -> float:
    """Return the mean estimate of pairs of different samples; copies of one are different too."""
    if weights is None:
        return float(estimates[counted].mean()) if counted.any() else 0.0
    pairs = np.outer(weights, weights)
    np.fill_diagonal(pairs, weights * np.maximum(weights - 1.0, 0.0))
    pairs *= related
    total = pairs.sum()
    return float((pairs * estimates).sum() / total) if total > 0 else 0.0


def _common_entries(
    X: np.ndarray, Y: np.ndarray | None, *, distances: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return m/|Ω_ij| times squared distances or inner products, and where |Ω_ij| > 0."""
    seen, values = _split(X)
    seen_other, others = (seen, values) if Y is None else _split(Y)
    common = seen @ seen_other.T
    related = common > 0
    estimates = values @ others.T
    if distances:
        squares = (values * values) @ seen_other.T
        squares += squares.T if Y is None else seen @ (others * others).T
        estimates = np.maximum(squares - 2.0 * estimates, 0.0)
        if Y is None:
            np.fill_diagonal(estimates, 0.0)
    estimates *= X.shape[1] / np.where(related, common, 1.0)
    if Y is None:
        estimates = (estimates + estimates.T) / 2
    return estimates, related


def _floats(X: np.ndarray) -> np.ndarray:
    require_numpy("estimating kernel values", X=X)
    X = np.asarray(X)
    return X if X.dtype.kind == "f" else X.astype(np.float64)


def estimate_feature_distances(kernel: Kernel, X: np.ndarray) -> np.ndarray:
    """Estimate ‖φ(x) - φ(y)‖ of all pairs of rows, to find the nearest neighbours of samples.

    For dot-product kernels, inner products come from squared distances:
    ⟨x, y⟩ = (‖x‖² + ‖y‖² - ‖x - y‖²)/2. The errors of the estimates cancel in the difference of two
    samples that are near each other. In three separately estimated kernel values they add up.

    Parameters
    ----------
    kernel : Kernel
        A kernel with the name "rbf", "poly" or "linear".
    X : ndarray of shape (n_samples, n_features)
        Samples, with NaN for missing entries.

    Returns
    -------
    ndarray of shape (n_samples, n_samples)
        Estimated distances in the feature space, with a zero diagonal. For pairs with no common
        entry the squared distance of x and y is the mean estimate of the pairs that have one.
    """
    X = _floats(X)
    estimates, related = _common_entries(X, None, distances=True)
    if not related.all():
        estimates[~related] = estimates[related].mean()
        np.fill_diagonal(estimates, 0.0)
    if kernel.name == "rbf":
        return feature_distances(kernel.of_distances(estimates, X.shape[1]))
    norms = estimate_squared_norms(X)
    products = (norms[:, None] + norms - estimates) / 2.0
    return feature_distances(kernel.of_products(products, X.shape[1]))


def estimate_squared_norms(X: np.ndarray) -> np.ndarray:
    """Estimate ‖x‖² of every row from its observed entries."""
    observed = np.maximum((~np.isnan(X)).sum(axis=1), 1)
    with np.errstate(over="ignore"):
        return np.asarray(np.nansum(X * X, axis=1) * X.shape[1] / observed)


def _split(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mask of observed entries, as 0 and 1, and the values, 0 where missing."""
    missing = np.isnan(X)
    return (~missing).astype(X.dtype), np.where(missing, 0.0, X).astype(X.dtype, copy=False)


@dataclass(frozen=True)
class Mended:
    """A positive definite matrix near an indefinite one, and the factor for rows of new samples."""

    G: np.ndarray
    """UΛ̂Uᵀ."""
    signs: np.ndarray
    """S = U sign(Λ) Uᵀ. Except for zero eigenvalues, G is the old matrix times S. Kernel values of
    new samples must be multiplied by S too, so that they have the inner products of G."""


def mend(
    G: np.ndarray,
    delta_min: float,
    *,
    relative: bool = False,
    sample_weight: np.ndarray | None = None,
) -> Mended:
    """Flip the sign of negative eigenvalues and set zeros to `delta_min`.

    Eigenvalues within the rounding error count as zero. With `relative`, `delta_min` is a
    fraction of the largest eigenvalue. With weights the eigenvalues are those of √w_i G_ij √w_j,
    which repeated samples would have too.

    Parameters
    ----------
    G : ndarray of shape (n_samples, n_samples)
        Symmetric matrix, such as an estimated kernel matrix.
    delta_min : float
        Positive value that replaces zero eigenvalues.
    relative : bool, default=False
        Whether `delta_min` is a fraction of the largest absolute eigenvalue.
    sample_weight : ndarray of shape (n_samples,), default=None
        Positive weights w of the samples; None: 1 for each.

    Returns
    -------
    Mended
        The positive definite matrix `G`, and the matrix `signs` by which kernel values of new
        samples must be multiplied.
    """
    if sample_weight is not None:
        roots = np.sqrt(sample_weight)
        scaled = mend(G * np.outer(roots, roots), delta_min, relative=relative)
        return Mended(scaled.G / np.outer(roots, roots), scaled.signs * roots[:, None] / roots)
    values, vectors = scipy.linalg.eigh(G)
    largest = float(np.abs(values).max(initial=0.0))
    zero = np.abs(values) <= 10.0 * np.finfo(G.dtype).eps * len(G) * largest
    lifted = delta_min * largest if relative else delta_min
    signs = np.where((values < 0) & ~zero, -1.0, 1.0)
    values = np.where(zero, lifted, np.abs(values))
    return Mended(
        np.asarray((vectors * values) @ vectors.T), np.asarray((vectors * signs) @ vectors.T)
    )


def mend_samples(
    G: np.ndarray, X: np.ndarray, delta_min: float, sample_weight: np.ndarray | None = None
) -> Mended:
    """Mend the kernel matrix of samples; copies of a sample are mended as one sample of their sum.

    Otherwise `delta_min` would be set for the zero eigenvalues that copies add, which makes them
    different samples. `delta_min` is a fraction of the largest eigenvalue.
    """
    first, which = distinct_rows(X)
    if len(first) == len(X):
        return mend(G, delta_min, relative=True, sample_weight=sample_weight)
    weights = np.ones(len(X), dtype=G.dtype) if sample_weight is None else sample_weight
    totals = np.bincount(which, weights=weights).astype(G.dtype, copy=False)
    found = mend(G[np.ix_(first, first)], delta_min, relative=True, sample_weight=totals)
    copies = np.ix_(which, which)
    # The rows of S belong to kernel values with the copies, of which each has its share.
    return Mended(found.G[copies], found.signs[copies] * (weights / totals[which])[:, None])


def distinct_rows(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the first of all equal rows, NaN equal to NaN, and which of them every row equals."""
    _, first, which = np.unique(
        np.hstack(_split(X)), axis=0, return_index=True, return_inverse=True
    )
    return first, which.reshape(-1)


def nearest_positive_definite(G: np.ndarray, delta_min: float) -> np.ndarray:
    """Return UΛ̂Uᵀ: negative eigenvalues of G with their sign flipped, zeros set to `delta_min`.

    Parameters
    ----------
    G : ndarray of shape (n_samples, n_samples)
        Symmetric matrix, such as an estimated kernel matrix.
    delta_min : float
        Positive value that replaces zero eigenvalues.

    Returns
    -------
    ndarray of shape (n_samples, n_samples)
        Positive definite matrix with the eigenvectors of G.
    """
    return mend(G, delta_min).G
