"""Distances and angles between subspaces (Sec. II of the paper).

The angles are computed here because `scipy.linalg.subspace_angles` takes NumPy arrays only.
"""

from __future__ import annotations

from polyspan.arrays import Array, as_array, float64_sum, namespace, transpose, zeros
from polyspan.inputs import require_dispatch

_BASIS = "n_features, subspace_dim"


def _residual(first: Array, second: Array) -> Array:
    """Return D_1 - P_2 D_1, which unlike s - trace is accurate for small angles."""
    return first - second @ (transpose(second) @ first)


def subspace_distance(first: Array, second: Array, *, normalize: bool = False) -> float:
    r"""Return the distance between two subspaces of equal dimension, given orthonormal bases.

    .. math:: d_u(S_1, S_2) = \sqrt{s - \mathrm{tr}(D_1^T D_2 D_2^T D_1)} = \|D_1 - P_2 D_1\|_F

    It is computed as the norm of the residual: at angles of 1e-9 this has eight correct digits,
    while the trace form returns 0.

    Parameters
    ----------
    first, second : array of shape (n_features, subspace_dim)
        Orthonormal bases.
    normalize : bool, default=False
        Divide by √s, so that the distance lies between 0 and 1.

    Returns
    -------
    distance : float
        Between 0 and √s; a metric on the Grassmann manifold.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.metrics import subspace_distance
    >>> first = np.eye(3)[:, :1]
    >>> second = np.array([[np.cos(1e-9)], [np.sin(1e-9)], [0.0]])
    >>> f"{subspace_distance(first, second):.8e}"
    '1.00000000e-09'
    """
    first, second = same_shape("first and second", _BASIS, first, second)
    xp = namespace(first, second)
    distance = float(xp.linalg.vector_norm(_residual(first, second)))
    return float(distance / first.shape[1] ** 0.5) if normalize else distance


def principal_angles(first: Array, second: Array) -> Array:
    """Return the principal angles between two subspaces, in radians, ascending.

    The singular values of D_1ᵀD_2 are the cosines, those of the residual the sines. Small angles
    are computed from the sine and large ones from the cosine, so that 1e-9 is not rounded to 0.

    Parameters
    ----------
    first, second : array of shape (n_features, subspace_dim)
        Orthonormal bases.

    Returns
    -------
    angles : array of shape (subspace_dim,)
        Between 0 and π/2.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.metrics import principal_angles
    >>> principal_angles(np.eye(4)[:, :2], np.eye(4)[:, 1:3]).round(4).tolist()
    [0.0, 1.5708]
    """
    first, second = same_shape("first and second", _BASIS, first, second)
    xp = namespace(first, second)
    cosines = xp.linalg.svdvals(transpose(first) @ second)
    sines = xp.flip(xp.linalg.svdvals(_residual(second, first)), axis=0)
    one = xp.ones_like(cosines)
    from_cosine = xp.acos(xp.minimum(cosines, one))
    from_sine = xp.asin(xp.minimum(sines, one))
    return xp.where(cosines * cosines < 0.5, from_cosine, from_sine)


def pairwise_subspace_distances(bases: Array) -> Array:
    """Return d_u between all pairs of a stack of bases; the maximum is the ε of Definition 1.

    Parameters
    ----------
    bases : array of shape (n_subspaces, n_features, subspace_dim)

    Returns
    -------
    distances : array of shape (n_subspaces, n_subspaces)
        Symmetric, with a zero diagonal.
    """
    xp = namespace(bases)
    n = bases.shape[0]
    distances = zeros((n, n), bases)
    for i in range(n):
        for j in range(i + 1, n):
            d = xp.linalg.vector_norm(_residual(bases[i, ...], bases[j, ...]))
            distances[i, j] = distances[j, i] = d
    return distances


def closeness(bases: Array) -> Array:
    r"""Return the first term of the paper's objective, for every stack of bases at once.

    .. math:: \sum_{l \ne p} d_u^2(S_l, S_p) = L(L-1)s - \sum_{l \ne p} \|D_l^T D_p\|_F^2

    The trace form is accurate enough here: the term is part of a sum, so that only its absolute
    error matters.

    Parameters
    ----------
    bases : array of shape (n_stacks, n_subspaces, n_features, subspace_dim)

    Returns
    -------
    closeness : float64 array of shape (n_stacks,)
    """
    wide = side_by_side(bases)
    return closeness_of_gram(transpose(wide) @ wide, bases.shape[1])


def side_by_side(bases: Array) -> Array:
    """Return W = [D_1 … D_L] of every stack, (n_stacks, n_features, n_subspaces * subspace_dim)."""
    xp = namespace(bases)
    n_stacks, n, m, s = bases.shape
    return xp.reshape(xp.permute_dims(bases, (0, 2, 1, 3)), (n_stacks, m, n * s))


def closeness_of_gram(gram: Array, n: int) -> Array:
    """Return `closeness` from the products WᵀW of n bases side by side."""
    xp = namespace(gram)
    n_stacks, s = gram.shape[0], gram.shape[2] // n
    blocks = float64_sum(xp.reshape(gram * gram, (n_stacks, n, s, n, s)), axis=(2, 4))
    total = xp.sum(blocks, axis=(1, 2)) - xp.sum(xp.linalg.diagonal(blocks), axis=1)
    return xp.maximum(n * (n - 1) * s - total, xp.zeros_like(total))


def same_shape(names: str, axes: str, first: Array, second: Array) -> tuple[Array, Array]:
    """Return two arrays; raise an error where they do not have one shape with these axes."""
    require_dispatch(**dict(zip(names.split(" and "), (first, second), strict=True)))
    first, second = as_array(first), as_array(second)
    if first.ndim != len(axes.split(",")) or first.shape != second.shape:
        raise ValueError(
            f"{names} need one shape ({axes}), found {tuple(first.shape)} and {tuple(second.shape)}"
        )
    return first, second
