"""Intrinsic dimension by maximum likelihood (Levina and Bickel), as the paper uses it."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from polyspan.base.checks import warn_user
from polyspan.base.inputs import as_dispatched, numbers_of_samples
from polyspan.base.private_sklearn import Interval, check_parameters, plain_settings


def estimate_dimension(X: Any, k1: int = 6, k2: int = 10) -> float:
    r"""Estimate the dimension of a set of points from distances to nearest neighbours.

    The average over samples and over k_0 = k1, …, k2 of

    .. math:: \hat s^{k_0}(y) = \Big[\frac{1}{k_0-2} \sum_{a=1}^{k_0-1}
        \log \frac{\Gamma_{k_0}(y)}{\Gamma_a(y)}\Big]^{-1}

    with Γ_a(y) the distance of y to its a-th nearest neighbour.

    On samples of a 13-dimensional subspace it gives 9 to 10.5: with a few hundred points the
    nearest neighbours are too far away for an estimate that assumes small distances.
    `polyspan.model_selection.choose_size` does not use it.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples. Equal samples count once: the logarithm of the distance 0 between them does not
        exist.
    k1 : int, default=6
        Smallest number of neighbours, at least 3.
    k2 : int, default=10
        Largest number of neighbours. If there are too few samples for it, it is lowered, with a
        warning.

    Returns
    -------
    float
        Estimated dimension; NaN if there are too few distinct samples for k1 neighbours.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.geometry import estimate_dimension
    >>> plane = np.random.RandomState(0).standard_normal((500, 2)) @ np.ones((2, 7))
    >>> round(estimate_dimension(plane), 1)
    1.0
    """
    check_parameters(
        "estimate_dimension",
        k1=(k1, [Interval(Integral, 3, None, closed="left")]),
        k2=(k2, [Interval(Integral, 3, None, closed="left")]),
    )
    dimension, most = neighbour_estimate(as_dispatched(X), k1, k2)
    if most < k2:
        warn_user(f"{most + 1} distinct samples have only {most} neighbours: k2={k2} was lowered")
    return dimension


def neighbour_estimate(X: Any, k1: int, k2: int) -> tuple[float, int]:
    """Return the estimate and how many neighbours the samples have, without a warning.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Samples. Equal samples count once.
    k1 : int
        Smallest number of neighbours, at least 3.
    k2 : int
        Largest number of neighbours, at least `k1`; lowered if there are too few samples.

    Returns
    -------
    dimension : float
        Estimated dimension, as `estimate_dimension` returns it.
    most : int
        Number of neighbours that a sample has: the number of distinct samples minus 1.
    """
    check_neighbours(k1, k2)
    X = np.unique(numbers_of_samples(X, dtype=[np.float64, np.float32]), axis=0)
    most = len(X) - 1
    if most < k1:
        return float("nan"), most
    k2 = min(k2, most)
    with plain_settings():
        distances, _ = NearestNeighbors(n_neighbors=k2 + 1).fit(X).kneighbors(X)
    logs = np.log(np.maximum(distances[:, 1:], np.finfo(X.dtype).tiny))
    estimates = []
    for k in range(k1, k2 + 1):
        sums = (logs[:, k - 1 : k] - logs[:, : k - 1]).sum(axis=1)
        # Neighbours that are all equally far (a lattice) say nothing about the dimension.
        informative = sums > 0
        if informative.any():
            estimates.append(np.mean((k - 2) / sums[informative]))
    return (float(np.mean(estimates)) if estimates else float("nan")), most


def check_neighbours(k1: int, k2: int) -> None:
    """Raise an error for numbers of neighbours for which the estimate is not defined.

    Parameters
    ----------
    k1 : int
        Smallest number of neighbours; below 3 it is refused.
    k2 : int
        Largest number of neighbours; below `k1` it is refused.
    """
    if k1 <= 2:
        raise ValueError(f"k1={k1} must be at least 3: the estimate divides by k1 - 2")
    if k2 < k1:
        raise ValueError(f"k2={k2} must not be smaller than k1={k1}")
