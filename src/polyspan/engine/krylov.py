"""Leading eigenvectors of a symmetric operator from products alone.

By hand because `eigsh` and `lobpcg` of SciPy take NumPy arrays only. On NumPy the three are alike
(SciPy 1.17, 6000 × 2000 and 20 000 × 1200 samples, 9 or 13 vectors: `eigsh` takes 0.5 to 1.3 times
our time, `lobpcg` 0.6 to 1.2), but `eigsh` multiplies vector by vector and reads the data 21 to 28
times, where blocks read them 5 to 10 times: what counts for rows on disk or on other machines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from polyspan.base.arrays import (
    Array,
    device,
    machine_epsilon,
    namespace,
    top_eigenvectors,
    zeros,
)
from polyspan.geometry.bases import orthonormal_columns

# Blocks per cycle: more need fewer cycles and more memory, KRYLOV_BLOCKS·n·(s + EXTRA) numbers.
KRYLOV_BLOCKS = 5
# Columns beside the start. Without them a start that is invariant already, but not leading,
# would be returned as it came.
EXTRA = 1


@dataclass(frozen=True)
class Leading:
    """An orthonormal basis of the leading eigenspace, as far as it was found."""

    values: Array
    vectors: Array
    converged: bool


def leading_subspace(
    apply: Callable[[Array], Array],
    start: Array,
    *,
    max_cycles: int,
    start_tol: float = float("inf"),
) -> Leading:
    """Find the leading eigenvectors of a semidefinite operator by restarted block Krylov.

    Span [V, AV, …, AᵏV], take the best vectors in it (Rayleigh-Ritz), start again from them,
    until ‖AV - VΘ‖ is a small fraction of ‖Θ‖: the root of the rounding unit, since the trace of
    VᵀAV, which is what an update maximises, errs by its square.

    Parameters
    ----------
    apply : callable
        Multiplies a block of shape (n, k) by the operator.
    start : array of shape (n, s)
        The better it is, the fewer products are needed.
    max_cycles : int
    start_tol : float, default=inf
        Stop at once if the residual ‖AV - VΘ‖ of the start is above this fraction of ‖Θ‖.
    """
    xp = namespace(start)
    n, s = start.shape
    width = s + EXTRA
    tol = machine_epsilon(start) ** 0.5
    # cos(0), cos(1), … has no structure, so that no data are orthogonal to it by construction.
    filler = xp.cos(xp.astype(xp.arange(n * EXTRA, device=device(start)), start.dtype))
    block = orthonormal_columns(xp.concat([start, xp.reshape(filler, (n, EXTRA))], axis=1))
    n_blocks = max(1, min(KRYLOV_BLOCKS, n // width))
    basis = zeros((n, n_blocks * width), start)
    image = xp.empty_like(basis)
    for cycle in range(max_cycles):
        for j in range(n_blocks):
            here = slice(j * width, (j + 1) * width)
            basis[:, here], image[:, here] = block, apply(block)
            if cycle == 0 and j == 0 and _residual(block[:, :s], image[:, :s]) > start_tol:
                return Leading(zeros((s,), start), start, False)
            if j + 1 < n_blocks:
                block = _orthogonal_to(basis[:, : here.stop], image[:, here])
        projected = basis.mT @ image
        values, ritz = top_eigenvectors((projected + projected.mT) / 2.0, width)
        block = basis @ ritz
        converged = _residual(block[:, :s], image @ ritz[:, :s]) <= tol
        if converged:
            break
        block = orthonormal_columns(block)
    return Leading(values[:s], orthonormal_columns(block[:, :s]), converged)


def _orthogonal_to(basis: Array, block: Array) -> Array:
    """Orthonormalise a block against a basis, again where the first time was not enough.

    It is not where little of the block lies outside the span of the basis.
    """
    xp = namespace(basis)
    inside = basis.mT @ block
    for _ in range(3):
        block = orthonormal_columns(block - basis @ inside)
        inside = basis.mT @ block
        if float(xp.max(xp.abs(inside))) <= 100.0 * machine_epsilon(basis):
            break
    return block


def _residual(vectors: Array, image: Array) -> float:
    """Return ‖AV - VΘ‖ / ‖Θ‖ with Θ = VᵀAV."""
    xp = namespace(vectors)
    theta = vectors.mT @ image
    size = float(xp.linalg.vector_norm(theta))
    error = float(xp.linalg.vector_norm(image - vectors @ theta))
    if size > 0:
        return error / size
    return float("inf") if error > 0 else 0.0
