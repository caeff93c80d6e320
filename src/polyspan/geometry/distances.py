"""Distances and angles between subspaces (Sec. II of the paper).

The angles are computed here because `scipy.linalg.subspace_angles` takes NumPy arrays only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polyspan.base.arrays import (
    Array,
    float64_sum,
    machine_epsilon,
    moved_to,
    namespace,
    to_numpy,
    zeros,
)
from polyspan.base.checks import warn_user
from polyspan.base.inputs import as_dispatched
from polyspan.geometry.angle_metrics import METRICS, Angles, check_metric
from polyspan.geometry.bases import is_orthonormal
from polyspan.geometry.checked import check_axes, finite_floats

# Products of the columns of a basis may differ from 0 and 1 by this much. Rounding in float32, and
# in bases that were written with four digits, stays below.
SKEW = 1e-3


def _residual(first: Array, second: Array) -> Array:
    """Return D_1 - P_2 D_1, which unlike s - trace is accurate for small angles."""
    return first - second @ (second.mT @ first)


def _cosines_and_sines(first: Array, second: Array) -> tuple[Array, Array]:
    """Return the cosines and sines of the principal angles, which ascend."""
    xp = namespace(first, second)
    smaller, larger = (second, first) if second.shape[1] <= first.shape[1] else (first, second)
    if smaller.shape[1] == 0:
        return zeros((0,), first), zeros((0,), first)
    cosines = xp.linalg.svdvals(first.mT @ second)
    sines = xp.flip(xp.linalg.svdvals(_residual(smaller, larger)), axis=0)
    one = xp.ones_like(cosines)
    return xp.minimum(cosines, one), xp.minimum(sines, one)


def _distance(first: Array, second: Array, metric: str) -> Array:
    """Return the distance of two bases without padding, a number or an array of one."""
    s, t = first.shape[1], second.shape[1]
    if s != t and not METRICS[metric].takes_unequal:
        others = ", ".join(repr(name) for name, own in METRICS.items() if own.takes_unequal)
        raise ValueError(
            f"metric={metric!r} is not defined for subspaces of different dimension, found {s} "
            f"and {t}: take one of {others}, or principal_angles"
        )
    if metric == "chordal" and s == t:
        return namespace(first, second).linalg.vector_norm(_residual(first, second))
    cosines, sines = (
        to_numpy(found).astype(np.float64) for found in _cosines_and_sines(first, second)
    )
    return METRICS[metric].of(Angles(cosines, sines, abs(s - t), machine_epsilon(first)))


def subspace_distance(
    first: Array, second: Array, *, metric: str = "chordal", normalize: bool = False
) -> float:
    r"""Return the distance between two subspaces, given orthonormal bases.

    The default is the paper's d_u, for two subspaces of s dimensions

    .. math:: d_u(S_1, S_2) = \sqrt{s - \mathrm{tr}(D_1^T D_2 D_2^T D_1)} = \|D_1 - P_2 D_1\|_F

    In terms of the principal angles θ_1, …, θ_s the metrics are

    =================  ====================================  ============
    metric             distance                              largest
    =================  ====================================  ============
    "chordal"          √(Σ sin²θ_i)                          √s
    "geodesic"         √(Σ θ_i²)                             (π/2)√s
    "projection"       max sin θ_i = ‖P_1 - P_2‖₂            1
    "procrustes"       2√(Σ sin²(θ_i/2))                     √(2s)
    "fubini-study"     arccos Π cos θ_i                      π/2
    "martin"           √(-log Π cos²θ_i)                     infinite
    =================  ====================================  ============

    All of them are computed from sines where angles are small: at angles of 1e-9 they have eight
    correct digits, while the trace and products of cosines would give 0.

    Parameters
    ----------
    first, second : array of shape (n_features, subspace_dim)
        Orthonormal bases; a column of zeros is padding and no direction.
    metric : str, default="chordal"
        One of the table. "martin" is infinite where an angle is π/2 (to rounding), and violates
        the triangle inequality at large angles; the others are metrics.
    normalize : bool, default=False
        Divide by the largest value of the metric, so that the distance lies between 0 and 1; an
        error for "martin", which has none.

    Returns
    -------
    float
        The distance, at least 0.

    Notes
    -----
    For dimensions s_1 ≠ s_2, "chordal" is ‖P_1 - P_2‖_F/√2, of which the largest value is
    √((s_1 + s_2)/2), and "projection" is ‖P_1 - P_2‖₂, which is then 1 whatever the subspaces are.
    For "geodesic" and "procrustes" the angles that are missing count as π/2, which
    makes them metrics between subspaces of all dimensions (Ye and Lim, "Schubert varieties and
    distances between subspaces of different dimensions", 2016); s is then the larger dimension.
    In the same way "fubini-study" and "martin" would be π/2 and infinite for any two subspaces:
    they raise an error.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.metrics import subspace_distance
    >>> first = np.eye(3)[:, :1]
    >>> second = np.array([[np.cos(1e-9)], [np.sin(1e-9)], [0.0]])
    >>> f"{subspace_distance(first, second):.8e}"
    '1.00000000e-09'
    >>> f"{subspace_distance(first, second, metric='fubini-study'):.8e}"
    '1.00000000e-09'
    """
    check_metric(metric, normalize)
    first, second = _two_bases(first, second)
    distance = float(_distance(first, second, metric))
    if not normalize:
        return distance
    largest = METRICS[metric].largest(first.shape[1], second.shape[1])
    return distance / largest if largest else 0.0


def principal_angles(first: Array, second: Array) -> Array:
    """Return the principal angles between two subspaces, in radians, ascending.

    The singular values of D_1ᵀD_2 are the cosines, those of the residual the sines. Small angles
    are computed from the sine and large ones from the cosine, so that 1e-9 is not rounded to 0.

    Parameters
    ----------
    first, second : array of shape (n_features, subspace_dim)
        Orthonormal bases; a column of zeros is padding and no direction.

    Returns
    -------
    array of shape (subspace_dim,)
        Angles between 0 and π/2. Where dimensions differ, there are as many as the smaller
        dimension.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.metrics import principal_angles
    >>> principal_angles(np.eye(4)[:, :2], np.eye(4)[:, 1:3]).round(4).tolist()
    [0.0, 1.5708]
    """
    first, second = _two_bases(first, second)
    xp = namespace(first, second)
    cosines, sines = _cosines_and_sines(first, second)
    return xp.where(cosines * cosines < 0.5, xp.acos(cosines), xp.asin(sines))


def pairwise_subspace_distances(bases: Array, *, metric: str = "chordal") -> Array:
    """Return the distances between all pairs of a stack of bases.

    The maximum of the paper's d_u, which is the default, is the ε of Definition 1.

    Parameters
    ----------
    bases : array of shape (n_subspaces, n_features, subspace_dim)
        Orthonormal bases, as `bases_` of a model. Where dimensions differ, columns beyond a
        subspace's own dimension are zero.
    metric : str, default="chordal"
        Name of the metric, as for `subspace_distance`.

    Returns
    -------
    array of shape (n_subspaces, n_subspaces)
        Distances; the matrix is symmetric, with a zero diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.metrics import pairwise_subspace_distances
    >>> bases = np.stack([np.eye(4)[:, :2], np.eye(4)[:, 1:3]])
    >>> pairwise_subspace_distances(bases, metric="projection").round(4).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    check_metric(metric)
    bases = as_floats(bases)
    check_axes(bases.shape, "bases", "n_subspaces, n_features, subspace_dim")
    _warn_if_skew(without_padding(bases), "bases")
    return distances_between(bases, metric)


def distances_between(bases: Array, metric: str = "chordal") -> Array:
    """Return `pairwise_subspace_distances` of checked bases, of any array package.

    Parameters
    ----------
    bases : array of shape (n_subspaces, n_features, subspace_dim)
        Orthonormal bases, padded with columns of zeros where dimensions differ.
    metric : str, default="chordal"
        Name of the metric, as for `subspace_distance`.

    Returns
    -------
    array of shape (n_subspaces, n_subspaces)
        Distances; the matrix is symmetric, with a zero diagonal.
    """
    n, each = bases.shape[0], without_padding(bases)
    distances = zeros((n, n), bases)
    for i in range(n):
        for j in range(i + 1, n):
            distances[i, j] = distances[j, i] = _distance(each[i], each[j], metric)
    return distances


def closeness(bases: Array, dims: tuple[int, ...] | None = None) -> Array:
    r"""Return the first term of the paper's objective, for every stack of bases at once.

    .. math:: \sum_{l \ne p} d_u^2(S_l, S_p) = (L-1) \sum_l s_l - \sum_{l \ne p} \|D_l^T D_p\|_F^2

    For subspaces of different dimension the squared distance is ½‖P_l - P_p‖², which is the
    paper's d_u² where dimensions are equal. The trace form is accurate enough here: the term is
    part of a sum, so that only its absolute error matters.

    Parameters
    ----------
    bases : array of shape (n_stacks, n_subspaces, n_features, subspace_dim)
        Orthonormal bases. Where dimensions differ, columns beyond a subspace's own dimension are
        zero.
    dims : tuple of n_subspaces ints or None, default=None
        Dimension s_l of every subspace; None: that of all is the number of columns.

    Returns
    -------
    float64 array of shape (n_stacks,)
        Sum of the squared distances of all ordered pairs of every stack.
    """
    wide = side_by_side(bases)
    return closeness_of_gram(wide.mT @ wide, bases.shape[1], dims)


def side_by_side(bases: Array) -> Array:
    """Return W = [D_1 … D_L] of every stack.

    Parameters
    ----------
    bases : array of shape (n_stacks, n_subspaces, n_features, subspace_dim)
        Bases D_l of every stack.

    Returns
    -------
    array of shape (n_stacks, n_features, n_subspaces * subspace_dim)
        Bases of every stack side by side.
    """
    xp = namespace(bases)
    n_stacks, n, m, s = bases.shape
    return xp.reshape(xp.permute_dims(bases, (0, 2, 1, 3)), (n_stacks, m, n * s))


def closeness_of_gram(gram: Array, n: int, dims: tuple[int, ...] | None = None) -> Array:
    """Return `closeness` from the products WᵀW of n bases side by side.

    Parameters
    ----------
    gram : array of shape (n_stacks, n * subspace_dim, n * subspace_dim)
        Products WᵀW, with W as `side_by_side` returns it.
    n : int
        Number of subspaces of every stack.
    dims : tuple of n ints or None, default=None
        Dimension of every subspace; None: that of all is `subspace_dim`.

    Returns
    -------
    float64 array of shape (n_stacks,)
        Sum of the squared distances of all ordered pairs of every stack.
    """
    xp = namespace(gram)
    n_stacks, s = gram.shape[0], gram.shape[2] // n
    blocks = float64_sum(xp.reshape(gram * gram, (n_stacks, n, s, n, s)), axis=(2, 4))
    total = xp.sum(blocks, axis=(1, 2)) - xp.sum(xp.linalg.diagonal(blocks), axis=1)
    n_directions = n * s if dims is None else sum(dims)
    return xp.maximum((n - 1) * n_directions - total, xp.zeros_like(total))


def as_floats(bases: Array, name: str = "bases") -> Array:
    """Return finite real numbers; those that are no floats in double precision."""
    return finite_floats(as_dispatched(bases, name), name)


def without_padding(bases: Array) -> list[Array]:
    """Return every basis of a stack without its columns of zeros."""
    xp = namespace(bases)
    kept = to_numpy(xp.any(bases != 0, axis=1))
    return [
        bases[i, ...]
        if own.all()
        else xp.take(bases[i, ...], moved_to(np.flatnonzero(own), bases), axis=1)
        for i, own in enumerate(kept)
    ]


def _two_bases(first: Array, second: Array) -> tuple[Array, Array]:
    """Return two bases without padding; raise an error where they are not in one space."""
    first, second = as_floats(first, "first"), as_floats(second, "second")
    if first.ndim != 2 or second.ndim != 2 or first.shape[0] != second.shape[0]:
        raise ValueError(
            "first and second need the shape (n_features, subspace_dim) with the same n_features, "
            f"found {tuple(first.shape)} and {tuple(second.shape)}"
        )
    pair = without_padding(first[None, ...])[0], without_padding(second[None, ...])[0]
    _warn_if_skew(pair, "first and second")
    return pair


def _warn_if_skew(bases: Sequence[Array], name: str) -> None:
    """Warn of bases without padding that are clearly not orthonormal."""
    if all(basis.shape[1] == 0 or is_orthonormal(basis, SKEW) for basis in bases):
        return
    warn_user(
        f"{name} must have orthonormal columns, and products of columns differ from 0 and 1 by "
        f"more than {SKEW:g}: the result is not that of their spans; take the Q of a QR "
        "factorisation"
    )
