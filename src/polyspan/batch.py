"""Many small problems at once: Monte Carlo trials, restarts, one model per block of pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from polyspan.base.arrays import (
    CHUNK_MAX_BYTES,
    DEVICE_CHUNK_BYTES,
    Array,
    as_array,
    is_host,
    is_numpy,
    item_bytes,
    limit_threads,
    machine_epsilon,
    namespace,
    pass_work,
    power_of_two_scale,
    row_slices,
    to_numpy,
)
from polyspan.base.checks import check_device, warn_unconverged, warn_user
from polyspan.base.inputs import plain_numbers
from polyspan.base.private_sklearn import Interval, check_parameters
from polyspan.base.progress import progress_bar
from polyspan.linear.batch_group import BatchFit, Starts, fit_group
from polyspan.linear.micusal import MiCUSaL
from polyspan.linear.options import Plan, check_plan, sized_plan
from polyspan.linear.reading import Data

__all__ = ["BatchFit", "fit_micusal"]


def __dir__() -> list[str]:
    return __all__


def fit_micusal(
    X: Any,
    n_subspaces: int = 3,
    subspace_dim: int | Sequence[int] = 1,
    *,
    lam: float = 4.0,
    init: Any = "anneal",
    n_init: int | str = "auto",
    solver: str = "power",
    center: bool = True,
    affine: bool = False,
    anneal_steps: int = 80,
    anneal_range: tuple[float, float] = (0.4, 0.05),
    max_iter: int = 300,
    tol: float = 1e-6,
    random_state: Any = None,
    max_bytes: int | None = None,
) -> BatchFit:
    """Fit `MiCUSaL` to every one of many problems of the same shape, as batched products.

    Problem k is fitted as ``MiCUSaL(..., random_state=random_state).fit(X[k])`` would fit it with
    the same `lam` and `init` (which have other defaults here), from the same starts, to the same
    objective up to rounding (bases may differ by a rotation within their subspace). There are no
    leave-one-out residuals, and `solver` is "power". Where subspaces of different dimension are
    annealed, their starts are found problem by problem; all other steps are products over all of
    them. The array decides where the work is done: NumPy, PyTorch and CuPy
    arrays stay on their device.

    Parameters
    ----------
    X : array of shape (n_problems, n_samples, n_features)
        Samples of all problems, finite; never modified.
    n_subspaces : int, default=3
        Number L of subspaces of every problem.
    subspace_dim : int or sequence of n_subspaces ints, default=1
        Dimension s of each subspace, or one for each, as for `MiCUSaL`.
    lam : float, default=4.0
        Weight λ of the data against the closeness of the subspaces; `float("inf")` for
        K-subspaces.
    init : {"anneal", "random"} or array, default="anneal"
        Kind of start, as for `MiCUSaL`. An array holds the bases to start from, (n_subspaces,
        n_features, subspace_dim) for all problems, or with one more axis in front for each of
        them; with `affine` it has one column more, a point of the subspace.
    n_init : int or "auto", default="auto"
        Number of starts of every problem, of which the one with the lowest objective is kept;
        "auto" as for `MiCUSaL`.
    solver : {"power"}, default="power"
        One power step in each update; "exact" is refused.
    center : bool, default=True
        Subtract the mean of the samples of every problem.
    affine : bool, default=False
        Learn affine subspaces, which need not go through the mean, as for `MiCUSaL`.
    anneal_steps : int, default=80
        Length of the cooling schedule, one power step each.
    anneal_range : tuple of float, default=(0.4, 0.05)
        First and last temperature, in the units of `MiCUSaL`.
    max_iter : int, default=300
        Most iterations of the alternation, after annealing if any.
    tol : float, default=1e-6
        A problem has converged when an iteration lowers its objective by no more than this
        fraction of it.
    random_state : int, RandomState instance, None or sequence of n_problems ints, default=None
        Draws the starts, whose bases all problems share; a sequence draws those of each problem
        from a seed of its own. Points of affine subspaces are samples of their own problem, chosen
        on the CPU.
    max_bytes : int, default=None
        Most that the projections of the problems in work may take; several times as much memory
        is used in all. None: 64 MiB on a CPU, 4 GiB on an accelerator. There, large groups are
        fast: give it a tenth of the memory.

    Returns
    -------
    BatchFit
        Bases, labels, means and objective of every problem.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.batch import fit_micusal
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> X = np.stack([
    ...     make_union_of_subspaces((40, 40), n_features=20, subspace_dim=2, spread=0.4,
    ...                             random_state=seed).X
    ...     for seed in range(10)
    ... ])
    >>> fit = fit_micusal(X, 2, 2, random_state=0)
    >>> fit.bases.shape, fit.labels.shape, bool(fit.converged.all())
    ((10, 2, 20, 2), (10, 80), True)
    """
    check_parameters(
        "fit_micusal",
        max_bytes=(max_bytes, [Interval(Integral, 1, None, closed="left"), None]),
    )
    parameters = MiCUSaL(
        n_subspaces, subspace_dim, lam=lam, init=init, solver=solver, n_init=n_init, center=center,
        affine=affine, anneal_steps=anneal_steps, anneal_range=anneal_range, max_iter=max_iter,
        tol=tol,
    )  # fmt: skip
    parameters._validate_params()
    for name, value in (("lam", lam), ("init", init)):
        if isinstance(value, str) and value == "auto":
            raise ValueError(f"{name}='auto' is not for batches: give {name} itself")
    if solver != "power":
        raise ValueError(f"solver={solver!r}: batches are fitted by power steps, solver='power'")
    plan, X = sized_plan(parameters), _checked(X)
    n_problems, n, m = X.shape
    check_plan(plan, Data(X[0, ...], m, n))
    starts = Starts(plan, X, init, random_state)
    if max_bytes is None:
        max_bytes = CHUNK_MAX_BYTES if is_host(X) else DEVICE_CHUNK_BYTES
    columns = plan.n_starts * plan.n_columns
    size = max(1, min(n_problems, max_bytes // (n * columns * item_bytes(X))))
    size = math.ceil(n_problems / math.ceil(n_problems / size))  # groups of one size
    groups = []
    with (
        limit_threads(pass_work(n, m, columns), n_problems),
        progress_bar(False, n_problems, "fit_micusal") as advance,
    ):
        for which in row_slices(n_problems, size):
            groups.append(fit_group(plan, float(lam), X, starts, which, max_bytes))
            advance(advance=which.stop - which.start)
    fits, n_narrow, n_empty = zip(*groups, strict=True)
    fit = _joined(fits)
    _warn(plan, fit, sum(n_narrow), sum(n_empty))
    return fit


def _joined(fits: tuple[BatchFit, ...]) -> BatchFit:
    """Return the results of all groups as one."""
    xp = namespace(fits[0].bases)
    found = {name: [getattr(fit, name) for fit in fits] for name in vars(fits[0])}
    return BatchFit(**{k: xp.concat(v) for k, v in found.items() if v[0] is not None})


def _checked(X: Any) -> Array:
    X = as_array(plain_numbers(X))
    if hasattr(X, "dask"):
        raise ValueError("X is a dask array: pass one group of problems after the other, computed")
    xp = namespace(X)
    if X.ndim != 3 or 0 in X.shape:
        raise ValueError(
            f"X has the shape {tuple(X.shape)}: (n_problems, n_samples, n_features) is needed, "
            "none of them 0"
        )
    if xp.isdtype(X.dtype, "complex floating"):
        raise ValueError(f"X is complex ({X.dtype}): pass real numbers, such as both parts")
    if X.dtype not in (xp.float64, xp.float32):
        X = xp.astype(X, xp.float64)
    if not is_numpy(X):
        check_device(X)
    largest = to_numpy(xp.max(xp.abs(X), axis=(1, 2)))
    bad = np.flatnonzero(~np.isfinite(largest))
    if len(bad):
        raise ValueError(
            f"X contains NaN or infinity in {len(bad)} of {len(largest)} problems (the first is "
            f"{bad[0]}): batches need complete data"
        )
    extremes = (largest.max(), np.min(largest, initial=np.inf, where=largest > 0))
    if any(power_of_two_scale(float(v), machine_epsilon(X)) != 1.0 for v in extremes):
        raise ValueError(
            f"entries of X go from {largest.min():.3g} to {largest.max():.3g} in size, and their "
            "squares would leave the range of the type: scale X"
        )
    return X


def _warn(plan: Plan, fit: BatchFit, n_narrow: int, n_empty: int) -> None:
    n = fit.labels.shape[0]
    n_open = n - int(to_numpy(fit.converged).sum())
    if n_narrow:
        warn_user(
            f"the samples of {n_narrow} of {n} problems span fewer directions than subspace_dim="
            f"{plan.subspace_dim}: the other directions of the bases mean nothing"
        )
    if n_empty:
        warn_user(
            f"{n_empty} of {n} problems have subspaces without samples: lower n_subspaces, or "
            "raise lam or n_init"
        )
    if n_open:
        warn_unconverged(
            f"{n_open} of {n} problems did not converge to tol={plan.rules.tol} in max_iter="
            f"{plan.rules.max_iter} iterations: raise max_iter or tol"
        )
