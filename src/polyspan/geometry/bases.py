"""Orthonormal bases: drawing, mending and finding them."""

from __future__ import annotations

import numpy as np

from polyspan.arrays import Array, machine_epsilon, namespace, transpose


def orthonormal_columns(a: Array) -> Array:
    """Return orthonormal bases that contain the column spans of a stack of tall matrices.

    Householder QR: the columns are orthonormal to rounding even where `a` has not full rank;
    then the span is completed by directions of no meaning.
    """
    return namespace(a).linalg.qr(a, mode="reduced").Q


def range_basis(a: Array) -> Array:
    """Return the left singular vectors that span the columns of `a`, as MATLAB's `orth`.

    The paper's generator passes this very basis on from subspace to subspace, and another basis
    of the same span gives other data: the noise W_l it is added to has a positive mean. Singular
    vectors are defined but for their signs, which LAPACK leaves to chance; scikit-learn's rule
    (`svd_flip`) fixes them: the largest entry of every vector is positive.
    """
    xp = namespace(a)
    u, values, _ = xp.linalg.svd(a, full_matrices=False)
    largest = xp.argmax(xp.abs(u), axis=0)
    u = u * xp.sign(xp.take_along_axis(u, largest[None, :], axis=0))
    threshold = max(a.shape) * machine_epsilon(a) * float(xp.max(values))
    rank = int(xp.sum(xp.astype(values > threshold, xp.int64)))
    return u[:, :rank]


def draw_bases(shape: tuple[int, ...], rng: np.random.RandomState) -> np.ndarray:
    """Draw orthonormal bases uniformly; the last two axes of `shape` are (n_features, dim).

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.geometry import draw_bases
    >>> bases = draw_bases((4, 10, 2), np.random.RandomState(0))
    >>> bool(np.allclose(bases[0].T @ bases[0], np.eye(2)))
    True
    """
    return np.asarray(orthonormal_columns(rng.standard_normal(shape)))


def is_orthonormal(bases: Array, tolerance: float | None = None) -> bool:
    """Tell whether every matrix of a stack has orthonormal columns."""
    xp = namespace(bases)
    if tolerance is None:
        tolerance = machine_epsilon(bases) ** 0.5
    gram = transpose(bases) @ bases
    identity = xp.eye(gram.shape[-1], dtype=gram.dtype)
    return bool(xp.max(xp.abs(gram - identity)) <= tolerance)


def orthonormalise(bases: Array) -> Array:
    """Return the nearest stack with orthonormal columns (the polar factors).

    Raises
    ------
    ValueError
        If a matrix does not have full column rank, so that no nearest one exists.
    """
    xp = namespace(bases)
    u, values, vt = xp.linalg.svd(bases, full_matrices=False)
    threshold = values[..., 0] * machine_epsilon(bases) * bases.shape[-2]
    if not bool(xp.all(values[..., -1] > threshold)):
        bad = [int(i) for i in xp.nonzero(~(values[..., -1] > threshold))[0]]
        raise ValueError(
            f"bases {bad} have linearly dependent columns: give {bases.shape[-1]} independent "
            "columns per subspace"
        )
    return u @ vt
