"""Leading eigenvectors of a large symmetric operator from products alone."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from sklearn.exceptions import ConvergenceWarning

from polyspan.arrays import Array, machine_epsilon, namespace, top_eigenvectors, transpose
from polyspan.geometry import orthonormal_columns

# Blocks per restart: more need fewer restarts and more memory, (KRYLOV_BLOCKS + 1)·m·s numbers.
KRYLOV_BLOCKS = 5
MAX_RESTARTS = 200


def leading_subspace(apply: Callable[[Array], Array], start: Array) -> Array:
    """Return an orthonormal basis of the leading invariant subspace of a semidefinite operator.

    Restarted block Krylov with Rayleigh-Ritz: span [V, AV, …, AᵏV], keep the best vectors, start
    again from them, until ‖AV - VΘ‖ is at rounding level.

    Parameters
    ----------
    apply : callable
        Multiplies a block of shape (n, k) by the operator.
    start : array of shape (n, s)
        Orthonormal; the better it is, the fewer products are needed.
    """
    xp = namespace(start)
    s = start.shape[1]
    tolerance = 100.0 * machine_epsilon(start)
    vectors = start
    for _ in range(MAX_RESTARTS):
        image = apply(vectors)
        theta = transpose(vectors) @ image
        error = float(xp.linalg.vector_norm(image - vectors @ theta))
        size = float(xp.linalg.vector_norm(theta))
        if error <= tolerance * size:
            return vectors
        blocks, images = [vectors], [image]
        for _ in range(KRYLOV_BLOCKS - 1):
            basis = xp.concat(blocks, axis=1)
            fresh = images[-1]
            for _ in range(2):  # twice is enough for orthogonality to rounding
                fresh = fresh - basis @ (transpose(basis) @ fresh)
                fresh = orthonormal_columns(fresh)
            blocks.append(fresh)
            images.append(apply(fresh))
        basis, image = xp.concat(blocks, axis=1), xp.concat(images, axis=1)
        projected = transpose(basis) @ image
        _, small = top_eigenvectors((projected + transpose(projected)) / 2.0, s)
        vectors = orthonormal_columns(basis @ small)
    warnings.warn(
        f"the leading {s} eigenvectors were not found to rounding in {MAX_RESTARTS} restarts "
        f"(residual {error:.2g} of {size:.2g}): the update is not exact",
        ConvergenceWarning,
        stacklevel=2,
    )
    return vectors
