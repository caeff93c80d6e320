"""Errors of a learned union of subspaces, compared with the truth (Sec. II, V-A of the paper).

Under scikit-learn's `array_api_dispatch` arrays of any namespace and device, two of them on the
same one; labels may come from anywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix
from sklearn.utils.validation import check_consistent_length, column_or_1d

from polyspan.base.arrays import Array, as_array, namespace, to_numpy
from polyspan.base.inputs import as_dispatched, plain_numbers
from polyspan.base.private_sklearn import plain_settings
from polyspan.geometry.dimension import estimate_dimension
from polyspan.geometry.distances import (
    as_floats,
    pairwise_subspace_distances,
    principal_angles,
    subspace_distance,
    without_padding,
)

__all__ = [
    "average_subspace_distance",
    "clustering_error",
    "estimate_dimension",
    "pairwise_subspace_distances",
    "principal_angles",
    "relative_reconstruction_error",
    "subspace_distance",
]


def __dir__() -> list[str]:
    return __all__


def average_subspace_distance(bases: Array, true_bases: Array) -> float:
    r"""Return the mean normalised distance of learned from true subspaces, the paper's d_avg.

    .. math:: d_{avg} = \frac1L \sum_l
        \sqrt{\frac{s - \mathrm{tr}(D_l^T T_{\hat l} T_{\hat l}^T D_l)}{s}}

    The paper pairs D_l with the T_p of largest ‖D_lᵀT_p‖_F and lets no two share one. Here the
    pairing is the one-to-one matching with the largest sum of ‖D_lᵀT_p‖²_F, which does not depend
    on the order of the subspaces. Where dimensions differ, the distance is ‖P_1 - P_2‖_F/√2 over
    its largest value √((s_1 + s_2)/2), and the matching is the one with the smallest mean.

    Parameters
    ----------
    bases, true_bases : array of shape (n_subspaces, n_features, subspace_dim)
        Orthonormal bases. Where dimensions differ, columns beyond a subspace's own dimension are
        zero; the two arrays may then have different numbers of columns.

    Returns
    -------
    float
        Mean distance, between 0 and 1; smaller is better.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.metrics import average_subspace_distance
    >>> truth = np.stack([np.eye(4)[:, :2], np.eye(4)[:, 2:]])
    >>> average_subspace_distance(truth[::-1], truth)
    0.0
    """
    bases, true_bases = as_floats(bases), as_floats(true_bases, "true_bases")
    if bases.ndim != 3 or true_bases.ndim != 3 or bases.shape[:2] != true_bases.shape[:2]:
        raise ValueError(
            "bases and true_bases need the shape (n_subspaces, n_features, subspace_dim) with the "
            f"same numbers of subspaces and features, found {tuple(bases.shape)} and "
            f"{tuple(true_bases.shape)}"
        )
    found, truth = without_padding(bases), without_padding(true_bases)
    if len({basis.shape[1] for basis in (*found, *truth)}) == 1:
        xp = namespace(bases, true_bases)
        cosines = bases.mT[:, None, ...] @ true_bases[None, ...]
        cost = -to_numpy(xp.sum(cosines * cosines, axis=(2, 3)))
    else:
        cost = np.array([[subspace_distance(a, b, normalize=True) for b in truth] for a in found])
    own, matched = linear_sum_assignment(cost)
    distances = [
        subspace_distance(found[int(i)], truth[int(j)], normalize=True)
        for i, j in zip(own, matched, strict=True)
    ]
    return float(sum(distances) / len(distances))


def clustering_error(labels_true: Any, labels_pred: Any) -> float:
    """Return the fraction of samples in the wrong cluster, with the clusters matched optimally.

    Parameters
    ----------
    labels_true, labels_pred : array-like of shape (n_samples,)
        True and found cluster of every sample. The clusters are matched one to one. The numbers of
        clusters may differ; samples of a cluster that has no match count as wrong.

    Returns
    -------
    float
        Fraction of wrong samples, between 0 and 1.

    Examples
    --------
    >>> from polyspan.metrics import clustering_error
    >>> clustering_error([0, 0, 1, 1], [1, 1, 0, 1])
    0.25
    """
    for name, labels in (("labels_true", labels_true), ("labels_pred", labels_pred)):
        if np.ma.is_masked(labels):
            raise ValueError(f"{name} is masked in places: leave these samples out of both")
    labels_true = column_or_1d(to_numpy(as_dispatched(labels_true, "labels_true")))
    labels_pred = column_or_1d(to_numpy(as_dispatched(labels_pred, "labels_pred")))
    if labels_true.size == 0:
        raise ValueError("there are no labels to compare")
    check_consistent_length(labels_true, labels_pred)
    with plain_settings():
        table = contingency_matrix(labels_true, labels_pred)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return float(1.0 - table[rows, columns].sum() / len(labels_true))


def relative_reconstruction_error(X_true: Array, X_reconstructed: Array) -> float:
    r"""Return the mean of ‖x - x̂‖² / ‖x‖² over samples, with x the noiseless sample.

    x̂ is what `reconstruct` returns for the noisy sample z: D_τ D_τᵀ(z - ȳ) + ȳ for a model with
    the mean ȳ, where D_τ is the basis of the nearest subspace.

    Parameters
    ----------
    X_true : array of shape (n_samples, n_features)
        Clean samples, none of them zero.
    X_reconstructed : array of shape (n_samples, n_features)
        Samples as a model reconstructs them, in the same order.

    Returns
    -------
    float
        Mean relative squared error; 0 is the best.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.metrics import relative_reconstruction_error
    >>> relative_reconstruction_error(np.array([[0.0, 4.0]]), np.array([[0.0, 3.0]]))
    0.0625
    """
    X_true, X_reconstructed = (
        as_array(as_dispatched(plain_numbers(a, name), name))
        for a, name in ((X_true, "X_true"), (X_reconstructed, "X_reconstructed"))
    )
    if X_true.ndim != 2 or X_true.shape != X_reconstructed.shape:
        raise ValueError(
            "X_true and X_reconstructed need one shape (n_samples, n_features), found "
            f"{tuple(X_true.shape)} and {tuple(X_reconstructed.shape)}"
        )
    xp = namespace(X_true, X_reconstructed)
    error = xp.linalg.vector_norm(X_true - X_reconstructed, axis=1)
    size = xp.linalg.vector_norm(X_true, axis=1)
    if bool(xp.any(size == 0)):
        raise ValueError(
            f"{int(xp.sum(xp.astype(size == 0, xp.int64)))} of {X_true.shape[0]} samples of X_true "
            "are zero: their relative error is not defined; leave them out"
        )
    return float(xp.mean((error / size) ** 2))
