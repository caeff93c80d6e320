"""Kernel values of samples with missing entries (Sec. IV-B): all pairs by products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from polyspan.inputs import require_numpy
from polyspan.kernel.functions import Kernel, feature_distances


@dataclass(frozen=True)
class Estimate:
    """Estimated kernel values, and which pairs had nothing to go by."""

    values: np.ndarray
    n_unrelated: int
    """Pairs of samples without a common observed entry."""
    fill: float
    """Squared distance or inner product that stands for pairs without a common entry."""


def estimate_kernel(
    kernel: Kernel, X: np.ndarray, Y: np.ndarray | None = None, *, fill: float | None = None
) -> Estimate:
    r"""Estimate κ(x, y) of all pairs of rows from the entries that both have.

    :math:`h = k(\tfrac{m}{|\Omega_{ij}|} \|[x - y]_{\Omega_{ij}}\|^2)` for the Gaussian kernel, the
    same with inner products for linear and polynomial ones. Three products serve all pairs: of
    the masks, of the values and (for distances) of the squares with the masks. A pair with no
    common entry gets `fill`.

    Parameters
    ----------
    kernel : Kernel
        "rbf", "poly" or "linear".
    X : array of shape (n, n_features)
        NaN marks a missing entry.
    Y : array of shape (k, n_features), default=None
        None: X itself, and the result is symmetric.
    fill : float, default=None
        Squared distance (Gaussian) or inner product (other kernels) of pairs with no common entry;
        None: the mean over the pairs of different samples that have one.
    """
    if kernel.name not in ("rbf", "poly", "linear"):
        raise ValueError(
            f"kernel={kernel.name!r} cannot be estimated from incomplete samples: "
            "'rbf', 'poly' and 'linear' can"
        )
    X = _floats(X)
    Y = None if Y is None else _floats(Y)
    rbf = kernel.name == "rbf"
    estimates, related = _common_entries(X, Y, distances=rbf)
    counted = related.copy()
    if Y is None:
        np.fill_diagonal(counted, False)
    if fill is None:
        fill = float(estimates[counted].mean()) if counted.any() else 0.0
    unrelated = ~related
    estimates[unrelated] = fill
    n_unrelated = int(np.count_nonzero(unrelated)) // (2 if Y is None else 1)
    of = kernel.of_distances if rbf else kernel.of_products
    values = of(estimates, X.shape[1]).astype(X.dtype, copy=False)
    return Estimate(values, n_unrelated, fill)


def _common_entries(
    X: np.ndarray, Y: np.ndarray | None, *, distances: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return m/|Ω_ij| times squared distances or inner products, and which pairs have any."""
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
    """Estimate ‖φ(x) - φ(y)‖ of all pairs of rows, for what depends on who is near whom.

    For dot-product kernels by way of squared distances, ⟨x, y⟩ = (‖x‖² + ‖y‖² - ‖x - y‖²)/2: in
    the difference of two samples that are near each other the errors of the estimates cancel,
    in three kernel values estimated one by one they add up.
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
    return np.asarray(np.nansum(X * X, axis=1) * X.shape[1] / observed)


def _split(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return where entries were observed, as 0 and 1, and the values with zeros elsewhere."""
    missing = np.isnan(X)
    return (~missing).astype(X.dtype), np.where(missing, 0.0, X).astype(X.dtype, copy=False)


@dataclass(frozen=True)
class Mended:
    """A positive definite matrix near an indefinite one, and how to treat new rows alike."""

    G: np.ndarray
    """UΛ̂Uᵀ."""
    signs: np.ndarray
    """S = U sign(Λ) Uᵀ: G is (but for zeros) the old matrix times S, and so are rows of new
    samples, which otherwise would meet subspaces of another geometry."""


def mend(G: np.ndarray, delta_min: float, *, relative: bool = False) -> Mended:
    """Flip the sign of negative eigenvalues and set zeros to `delta_min`.

    Zero is what rounding cannot tell from it. With `relative`, `delta_min` is a fraction of the
    largest eigenvalue.
    """
    values, vectors = scipy.linalg.eigh(G)
    largest = float(np.abs(values).max(initial=0.0))
    zero = np.abs(values) <= 10.0 * np.finfo(G.dtype).eps * len(G) * largest
    lifted = delta_min * largest if relative else delta_min
    signs = np.where((values < 0) & ~zero, -1.0, 1.0)
    values = np.where(zero, lifted, np.abs(values))
    return Mended(
        np.asarray((vectors * values) @ vectors.T), np.asarray((vectors * signs) @ vectors.T)
    )


def nearest_positive_definite(G: np.ndarray, delta_min: float) -> np.ndarray:
    """Return UΛ̂Uᵀ: negative eigenvalues of G with their sign flipped, zeros set to `delta_min`."""
    return mend(G, delta_min).G
