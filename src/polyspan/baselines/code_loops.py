"""The loops of `lasso.py`, compiled by numba: coordinate descent, and matching pursuit.

The lasso alternates sweeps over the coordinates, which find the signs, with Newton steps on the
nonzero coordinates, which are exact once the signs are right. `target` is the index of the sample
that is coded; it is left out of its own dictionary.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

# Sweeps over the nonzero coordinates before a Newton step: they are cheap, and find most of the
# signs.
SWEEPS = 20


@numba.njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _sweep(
    gram: Any, target: int, weight: float, code: Any, gradient: Any, active_only: bool
) -> float:  # pragma: no cover - compiled
    """Visit every coordinate, or every nonzero one, once; return the largest change.

    `gradient` holds Yᵀ(y - Yc). A coordinate that stays zero costs one comparison.
    """
    n = len(code)
    largest = 0.0
    for j in range(n):
        square = gram[j, j]
        if j == target or square <= 0.0 or (active_only and code[j] == 0.0):
            continue
        z = gradient[j] + square * code[j]
        new = 0.0
        if z > weight:
            new = (z - weight) / square
        elif z < -weight:
            new = (z + weight) / square
        step = new - code[j]
        if step != 0.0:
            code[j] = new
            row = gram[j]
            for i in range(n):
                gradient[i] -= step * row[i]
            largest = max(largest, abs(step) * square)
    return largest


@numba.njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _newton(  # noqa: C901 - plain loops are what compiles well
    gram: Any, target: int, weight: float, code: Any, gradient: Any, active: Any, work: Any,
    step: Any,
) -> None:  # fmt: skip  # pragma: no cover - compiled
    """Move the nonzero coordinates to their minimum for fixed signs, up to the first sign change.

    For fixed signs the objective is quadratic, and a Newton step reaches its minimum. Coordinate
    descent alone would take hundreds of sweeps where samples are nearly linearly dependent.
    """
    k = 0
    for j in range(len(code)):
        if code[j] != 0.0:
            active[k] = j
            k += 1
    for a in range(k):
        row = gram[active[a]]
        for b in range(a):
            x = row[active[b]]
            for i in range(b):
                x -= work[a, i] * work[b, i]
            work[a, b] = x * work[b, b]
        x = row[active[a]]
        floor = 1e-10 * x
        for i in range(a):
            x -= work[a, i] * work[a, i]
        if x <= floor:
            return  # linearly dependent samples: only sweeps are used
        work[a, a] = 1.0 / np.sqrt(x)
    for a in range(k):
        j = active[a]
        x = gradient[j] - (weight if code[j] > 0 else -weight)
        for i in range(a):
            x -= work[a, i] * step[i]
        step[a] = x * work[a, a]
    for a in range(k - 1, -1, -1):
        step[a] *= work[a, a]
        for i in range(a):
            step[i] -= work[a, i] * step[a]
    fraction, first = 1.0, -1
    for a in range(k):
        c = code[active[a]]
        if (c + step[a]) * c < 0.0 and -c / step[a] < fraction:
            fraction, first = -c / step[a], a
    for a in range(k):
        j = active[a]
        change = fraction * step[a]
        code[j] = 0.0 if a == first else code[j] + change
        row = gram[j]
        for i in range(len(code)):
            gradient[i] -= change * row[i]


@numba.njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _violation(
    target: int, weight: float, code: Any, gradient: Any
) -> float:  # pragma: no cover - compiled
    """Return the largest violation of the optimality conditions."""
    worst = 0.0
    for j in range(len(code)):
        if j == target:
            continue
        if code[j] > 0.0:
            violation = abs(gradient[j] - weight)
        elif code[j] < 0.0:
            violation = abs(gradient[j] + weight)
        else:
            violation = max(abs(gradient[j]) - weight, 0.0)
        worst = max(worst, violation)
    return worst


@numba.njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def solve_lassos(
    gram: Any, first: int, weights: Any, codes: Any, max_rounds: int, tol: float
) -> int:  # pragma: no cover - compiled
    """Solve the lasso for consecutive samples from `first` on; return how many did not converge."""
    n = gram.shape[0]
    failed = 0
    gradient, step = np.empty(n), np.empty(n)
    active = np.empty(n, dtype=np.int64)
    work = np.empty((n, n))
    for k in range(codes.shape[0]):
        target, weight, code = first + k, weights[k], codes[k]
        for i in range(n):
            gradient[i] = gram[target, i]
        converged = False
        for _ in range(max_rounds):
            _sweep(gram, target, weight, code, gradient, False)
            for _ in range(SWEEPS):
                _sweep(gram, target, weight, code, gradient, True)
            _newton(gram, target, weight, code, gradient, active, work, step)
            if _violation(target, weight, code, gradient) <= tol * weight:
                converged = True
                break
        if not converged:
            failed += 1
    return failed


@numba.njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _next_atom(
    gram: Any, target: int, alpha: Any, picked: Any
) -> tuple[int, float]:  # pragma: no cover - compiled
    """Return the unpicked sample with the largest inner product with the residual, and its size."""
    best, value = -1, 0.0
    for i in range(len(alpha)):
        if i == target or gram[i, i] <= 0.0:
            continue
        a = abs(alpha[i])
        if a > value:
            taken = False
            for j in picked:
                if j == i:
                    taken = True
            if not taken:
                best, value = i, a
    return best, value


@numba.njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def run_omp(  # noqa: C901 - plain loops are what compiles well
    gram: Any, k_most: int, tol: float, codes: Any, chosen: Any
) -> None:  # pragma: no cover
    """Run orthogonal matching pursuit for all samples, with a growing Cholesky factor.

    The caller fills `chosen` with -1, which stays where fewer than `k_most` samples are chosen.
    """
    n = gram.shape[0]
    factor = np.empty((k_most, k_most))
    half = np.empty(k_most)
    coef = np.empty(k_most)
    alpha = np.empty(n)
    for target in range(n):
        picked = chosen[target]
        for i in range(n):
            alpha[i] = gram[target, i]
        k = 0
        while k < k_most:
            best, value = _next_atom(gram, target, alpha, picked[:k])
            if best < 0 or value <= 1e-12 * gram[target, target]:
                break
            # Compute the new row of the factor. A sample in the span of those chosen adds nothing.
            square = gram[best, best]
            for j in range(k):
                x = gram[best, picked[j]]
                for i in range(j):
                    x -= factor[k, i] * factor[j, i]
                factor[k, j] = x / factor[j, j]
                square -= factor[k, j] * factor[k, j]
            if square <= 1e-12 * gram[best, best]:
                break
            factor[k, k] = np.sqrt(square)
            picked[k] = best
            x = gram[target, best]
            for i in range(k):
                x -= factor[k, i] * half[i]
            half[k] = x / factor[k, k]
            k += 1
            for j in range(k - 1, -1, -1):
                x = half[j]
                for i in range(j + 1, k):
                    x -= factor[i, j] * coef[i]
                coef[j] = x / factor[j, j]
            residual = gram[target, target]
            for j in range(k):
                residual -= half[j] * half[j]
            for i in range(n):
                alpha[i] = gram[target, i]
            for j in range(k):
                c = coef[j]
                row = gram[picked[j]]
                for i in range(n):
                    alpha[i] -= c * row[i]
            if residual <= tol * gram[target, target]:
                break
        for j in range(k):
            codes[target, j] = coef[j]
