"""Kernel values, from complete and incomplete samples, and bounds of their errors.

The bounds are Corollary 1, Lemma 1, and Theorems 1 and 2 of the paper. Each holds with probability
at least 1 - 2δ when the common entries are drawn uniformly with replacement.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from polyspan.kernel.functions import Kernel
from polyspan.kernel.incomplete import (
    Estimate,
    estimate_feature_distances,
    estimate_kernel,
    mend,
    nearest_positive_definite,
)

__all__ = [
    "Estimate",
    "Kernel",
    "coherence",
    "estimate_feature_distances",
    "estimate_kernel",
    "gaussian_kernel_bounds",
    "inner_product_deviation",
    "mend",
    "nearest_positive_definite",
    "polynomial_kernel_bounds",
    "squared_distance_deviation",
]


def __dir__() -> list[str]:
    return __all__


def coherence(z: np.ndarray) -> float:
    """Return the coherence μ(z) = m ‖z‖²_∞ / ‖z‖² of a vector.

    It is 1 where all entries have the same size, and m where only one entry is not zero.

    Parameters
    ----------
    z : array-like of shape (n_features,)
        The vector, such as the difference x - y of two samples.

    Returns
    -------
    float
        Coherence, between 1 and m = n_features; 1 for the zero vector.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.kernels import coherence
    >>> coherence(np.array([1.0, -1.0, 1.0])), coherence(np.array([0.0, 2.0, 0.0]))
    (1.0, 3.0)
    """
    square = float(np.sum(np.square(z)))
    return len(z) * float(np.max(np.abs(z))) ** 2 / square if square > 0 else 1.0


def squared_distance_deviation(mu: float, n_common: int, delta: float) -> float:
    """Return α of Corollary 1: the estimated squared distance is within 1 ± α of the true one.

    Parameters
    ----------
    mu : float
        Coherence of the difference x - y, as `coherence` returns it.
    n_common : int
        Number of entries that are observed in both samples, at least 1.
    delta : float
        Number δ between 0 and 1; the bound holds with probability at least 1 - 2δ.

    Returns
    -------
    float
        Relative deviation α of the estimate.
    """
    return _deviation(mu, n_common, delta)


def inner_product_deviation(
    n_features: int, largest_product: float, n_common: int, delta: float
) -> float:
    """Return β of Lemma 1: the estimated inner product is within ± β of the true one.

    Parameters
    ----------
    n_features : int
        Number m of features.
    largest_product : float
        Largest absolute product of two entries, ‖x ∘ y‖_∞.
    n_common : int
        Number of entries that are observed in both samples, at least 1.
    delta : float
        Number δ between 0 and 1; the bound holds with probability at least 1 - 2δ.

    Returns
    -------
    float
        Absolute deviation β of the estimate.
    """
    return _deviation(n_features * largest_product, n_common, delta)


def gaussian_kernel_bounds(h: float, mu: float, n_common: int, delta: float) -> tuple[float, float]:
    """Return the lower and upper bound of Theorem 1 on a value κ of the Gaussian kernel.

    For α ≥ 1 the lower bound is the trivial one, 0, and a warning is given.

    Parameters
    ----------
    h : float
        Estimate of κ.
    mu : float
        Coherence of the difference x - y, as `coherence` returns it.
    n_common : int
        Number of entries that are observed in both samples, at least 1.
    delta : float
        Number δ between 0 and 1; the bounds hold with probability at least 1 - 2δ.

    Returns
    -------
    lower : float
        Lower bound h^(1 / (1 - α)) on κ, with α of `squared_distance_deviation`.
    upper : float
        Upper bound h^(1 / (1 + α)) on κ.
    """
    alpha = squared_distance_deviation(mu, n_common, delta)
    upper = h ** (1.0 / (1.0 + alpha))
    if alpha >= 1.0:
        warnings.warn(
            f"alpha={alpha:.3g} is not below 1, so that the lower bound of Theorem 1 is vacuous: "
            f"more than n_common={n_common} common entries or a larger delta are needed",
            RuntimeWarning,
            stacklevel=2,
        )
        return 0.0, upper
    return h ** (1.0 / (1.0 - alpha)), upper


def polynomial_kernel_bounds(h: float, degree: int, beta: float) -> tuple[float, float]:
    """Return the lower and upper bound of Theorem 2 on κ = (⟨x, y⟩ + c)ᵈ, given its estimate h.

    Parameters
    ----------
    h : float
        Estimate of κ.
    degree : int
        Degree d of the polynomial. It must be odd: then the d-th root of h keeps its sign.
    beta : float
        Result of `inner_product_deviation`.

    Returns
    -------
    lower : float
        Lower bound (h^(1/d) - β)ᵈ on κ.
    upper : float
        Upper bound (h^(1/d) + β)ᵈ on κ.
    """
    if degree < 1 or degree % 2 == 0:
        raise ValueError(f"degree={degree}: Theorem 2 holds for odd degrees")
    root = math.copysign(abs(h) ** (1.0 / degree), h)
    return (root - beta) ** degree, (root + beta) ** degree


def _deviation(largest: float, n_common: int, delta: float) -> float:
    """Return the largest error of a mean over common entries, each of size at most `largest`."""
    if n_common < 1:
        raise ValueError(f"n_common={n_common}: a pair without a common entry has no bound")
    if not 0 < delta < 1:
        raise ValueError(f"delta={delta} must be between 0 and 1")
    return math.sqrt(2.0 * largest**2 / n_common * math.log(1.0 / delta))
