"""Loops of sparse codes, compiled by numba: an active-set lasso, and matching pursuit.

The lasso adds the coordinate that misses its optimality condition most, solves for all that are
not zero with their signs held, and drops those whose sign would change, until no condition is
missed. The objective falls with every step and there are finitely many signs, so it ends.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

# A sample counts as dependent on others where less than this fraction of its square is left.
DEPENDENT = 1e-10
# Most rounds of one lasso; each adds a coordinate.
MOST_ROUNDS = 2000


@numba.njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _factorise(
    gram: Any, active: Any, begin: int, k: int, factor: Any
) -> int:  # pragma: no cover - compiled
    """Bring the Cholesky factor of the active samples up to date; return its number of rows.

    Rows before `begin` are those of the last step. It ends before the first sample that depends on
    those before it; the row of that sample is left beside the factor. Diagonal entries are stored
    as their inverses.
    """
    for a in range(begin, k):
        row = gram[active[a]]
        for b in range(a):
            x = row[active[b]]
            for i in range(b):
                x -= factor[a, i] * factor[b, i]
            factor[a, b] = x * factor[b, b]
        left = row[active[a]]
        for i in range(a):
            left -= factor[a, i] * factor[a, i]
        if left <= DEPENDENT * row[active[a]]:
            return a
        factor[a, a] = 1.0 / np.sqrt(left)
    return k


@numba.njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _step(
    weight: float, code: Any, gradient: Any, active: Any, rank: int, k: int, factor: Any, step: Any
) -> int:  # pragma: no cover - compiled
    """Fill `step` with the way to the minimum; return how many coordinates it moves.

    Where a sample depends on those before it, it is the way along which the fit stays and ‖c‖₁ does
    not grow, instead.
    """
    if rank < k:
        rate = np.sign(code[active[rank]])
        step[rank] = 1.0
        for a in range(rank - 1, -1, -1):
            x = factor[rank, a]
            for b in range(a + 1, rank):
                x += factor[b, a] * step[b]
            step[a] = -x * factor[a, a]
            rate += step[a] * np.sign(code[active[a]])
        if rate > 0.0:
            for a in range(rank + 1):
                step[a] = -step[a]
        return rank + 1
    for a in range(k):
        x = gradient[active[a]] - weight * np.sign(code[active[a]])
        for i in range(a):
            x -= factor[a, i] * step[i]
        step[a] = x * factor[a, a]
    for a in range(k - 1, -1, -1):
        step[a] *= factor[a, a]
        for i in range(a):
            step[i] -= factor[a, i] * step[a]
    return k


@numba.njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _solve_active(
    gram: Any, weight: float, code: Any, gradient: Any, active: Any, k: int, factor: Any, step: Any
) -> int:  # pragma: no cover - compiled
    """Solve for the active coordinates, dropping those that reach zero.

    Returns how many are left, or -1 where the step is not finite.

    Between two changes of sign the objective is a parabola.
    """
    begin = k - 1  # all but the newest are in the factor
    while True:
        rank = _factorise(gram, active, begin, k, factor)
        moved = _step(weight, code, gradient, active, rank, k, factor, step)
        fraction, first = 1.0 if rank == k else np.inf, -1
        for a in range(moved):
            c = code[active[a]]
            if c * step[a] < 0.0 and -c / step[a] < fraction:
                fraction, first = -c / step[a], a
        if fraction == np.inf:
            return -1  # not finite
        for a in range(moved):
            change = fraction * step[a]
            code[active[a]] += change
            row = gram[active[a]]
            for i in range(len(code)):
                gradient[i] -= change * row[i]
        if first < 0:
            return k
        code[active[first]] = 0.0
        for a in range(first, k - 1):
            active[a] = active[a + 1]
        k -= 1
        begin = first


@numba.njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def _solve_one(
    gram: Any, target: int, weight: float, code: Any, gradient: Any, active: Any, factor: Any,
    step: Any, max_rounds: int, tol: float, nonnegative: bool,
) -> bool:  # fmt: skip  # pragma: no cover - compiled
    """Solve the lasso of one sample from zero; return whether it converged."""
    n = len(code)
    for i in range(n):
        gradient[i] = gram[target, i]
    k = 0
    for _ in range(max_rounds):
        worst, excess = -1, tol * weight
        for j in range(n):
            miss = (gradient[j] if nonnegative else abs(gradient[j])) - weight
            if miss > excess and j != target and code[j] == 0.0 and gram[j, j] > 0.0:
                worst, excess = j, miss
        if worst < 0:
            return True
        # The best step of this coordinate alone gives it its sign.
        change = np.sign(gradient[worst]) * excess / gram[worst, worst]
        code[worst] = change
        for i in range(n):
            gradient[i] -= change * gram[worst, i]
        active[k] = worst
        k = _solve_active(gram, weight, code, gradient, active, k + 1, factor, step)
        if k < 0:
            return False
    return False


@numba.njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def solve_lassos(
    gram: Any, first: int, weights: Any, codes: Any, tol: float
) -> int:  # pragma: no cover - compiled
    """Solve the lasso for consecutive samples from `first` on; return how many did not converge."""
    n = gram.shape[0]
    failed = 0
    gradient, step = np.empty(n), np.empty(n)
    active = np.empty(n, dtype=np.int64)
    factor = np.empty((n, n))
    for b in range(codes.shape[0]):
        if not _solve_one(
            gram, first + b, weights[b], codes[b], gradient, active, factor, step, MOST_ROUNDS,
            tol, False,
        ):  # fmt: skip
            failed += 1
    return failed


@numba.njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def solve_on_candidates(
    X: Any, first: int, candidates: Any, counts: Any, weight: float, ridge: float,
    nonnegative: bool, codes: Any,
) -> int:  # fmt: skip  # pragma: no cover - compiled
    """Solve elastic nets over a few candidates for each sample; return how many did not converge.

    A ridge on the diagonal of the Gram matrix turns the lasso into an elastic net.
    """
    most, m = candidates.shape[1], X.shape[1]
    failed = 0
    gram, factor = np.empty((most + 1, most + 1)), np.empty((most + 1, most + 1))
    gradient, step, code = np.empty(most + 1), np.empty(most + 1), np.empty(most + 1)
    active = np.empty(most + 1, dtype=np.int64)
    for b in range(codes.shape[0]):
        k = counts[b]
        for i in range(k + 1):
            x = X[first + b] if i == k else X[candidates[b, i]]
            code[i] = 0.0
            for j in range(i + 1):
                y = X[first + b] if j == k else X[candidates[b, j]]
                total = 0.0
                for f in range(m):
                    total += x[f] * y[f]
                gram[i, j] = total
                gram[j, i] = total
        for i in range(k):
            gram[i, i] += ridge
        if not _solve_one(
            gram[: k + 1, : k + 1], k, weight, code[: k + 1], gradient[: k + 1], active, factor,
            step, 10 * (k + 1), 1e-6, nonnegative,
        ):  # fmt: skip
            failed += 1
        for i in range(k):
            codes[b, i] = code[i]
    return failed


@numba.njit(cache=True, error_model="numpy", fastmath={"reassoc", "contract"})
def pursue(gram: Any, first: int, n_nonzero: int, codes: Any) -> None:  # pragma: no cover
    """Run orthogonal matching pursuit for consecutive samples from `first` on, from codes of zero.

    The next sample is the one with the largest inner product with the residual. It ends before a
    sample in the span of those chosen, which would add nothing.
    """
    n = gram.shape[0]
    gradient, step = np.empty(n), np.empty(n_nonzero)
    active = np.empty(n_nonzero, dtype=np.int64)
    factor = np.empty((n_nonzero, n_nonzero))
    for b in range(codes.shape[0]):
        code, target = codes[b], first + b
        for i in range(n):
            gradient[i] = gram[target, i]
        for k in range(n_nonzero):
            best, largest = -1, 1e-12 * gram[target, target]
            for j in range(n):
                size = abs(gradient[j])
                if size > largest and j != target and code[j] == 0.0 and gram[j, j] > 0.0:
                    best, largest = j, size
            if best < 0:
                break
            active[k] = best
            if _factorise(gram, active, k, k + 1, factor) == k:
                break
            _step(0.0, code, gradient, active, k + 1, k + 1, factor, step)
            for a in range(k + 1):
                change, row = step[a], gram[active[a]]
                code[active[a]] += change
                for i in range(n):
                    gradient[i] -= change * row[i]
