"""MiCUSaL: metric-constrained union-of-subspaces learning from complete data (Algorithm 1)."""

from __future__ import annotations

import warnings
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from polyspan.arrays import item_bytes, limit_threads, machine_epsilon, pass_work
from polyspan.geometry import draw_bases, is_orthonormal, orthonormalise
from polyspan.models.base import UnionOfSubspacesBase
from polyspan.models.progress import FitProgress
from polyspan.solvers.annealing import anneal, pooled_residual, temperatures
from polyspan.solvers.micusal import Rules, learn_subspaces, refill_empty
from polyspan.solvers.preparation import Prepared, prepare
from polyspan.solvers.problem import Monitor, Solution

# Starts share one product while all their projections fit in this many bytes.
GROUP_BYTES = 8 << 20


class MiCUSaL(UnionOfSubspacesBase):
    r"""Union of subspaces that are close to each other, learned from complete data.

    Minimises, over L subspaces of dimension s and the assignment of samples to them,

    .. math:: F_1 = \sum_{l \ne p} d_u^2(S_l, S_p) + \lambda \sum_i \|y_i - P_{S_{l_i}} y_i\|^2

    where y_i is the i-th sample minus the mean. A small λ keeps the subspaces together, λ=∞ is
    K-subspaces. λ weighs squared residuals, so it goes with the scale of the data (X → aX needs
    λ → λ/a²): the default suits samples of norm about 1.

    Parameters
    ----------
    n_subspaces : int, default=3
        Number L of subspaces.
    subspace_dim : int, default=1
        Dimension s of each.
    lam : float, default=4.0
        Weight λ of the data against the closeness of the subspaces; `float("inf")` for
        K-subspaces.
    init : {"anneal", "random"} or array of shape (n_subspaces, n_features, subspace_dim), \
            default="anneal"
        "anneal" starts from random bases and cools soft memberships until they are hard, which
        finds far better optima than the alternation alone. "random" is the paper's. An array
        gives the bases to start from.
    solver : {"power", "exact"}, default="power"
        "exact" takes the top eigenvectors in each update, as in the paper; "power" one power step
        towards them, many times cheaper, and the objective never rises either.
    n_init : int or "auto", default="auto"
        Number of starts, of which the one with the lowest objective is kept. "auto" is 8 for
        `init="random"` and 1 otherwise.
    center : bool, default=True
        Subtract the mean of the samples.
    residual : {"plain", "loo"}, default="plain"
        "plain" assigns by the residual, as the paper does. "loo" assigns by the residual to the
        subspace as it would be without the sample: for clusters with few samples (faces, say). It
        minimises no objective, and `labels_` may differ from `predict(X)`.
    anneal_steps : int, default=80
        Length of the cooling schedule, one power step each.
    anneal_range : tuple of float, default=(0.3, 0.05)
        First and last temperature, in units of the mean squared residual to one pooled subspace
        of dimension `subspace_dim`.
    max_iter : int, default=300
        Most iterations of the alternation, after annealing if any.
    tol : float, default=1e-6
        The alternation has converged when an iteration lowers the objective by no more than this
        share of it.
    random_state : int, RandomState instance or None, default=None
        Draws the starts. An int gives the same bits each time.
    n_jobs : int or None, default=None
        Starts of a large problem to run at once, in threads. All starts of a small problem run in
        one product anyway. Results do not depend on it.

    Attributes
    ----------
    bases_ : ndarray of shape (n_subspaces, n_features, subspace_dim)
        Orthonormal bases D_l.
    mean_ : ndarray of shape (n_features,)
        Mean that was subtracted; zero without centring.
    labels_ : ndarray of shape (n_samples,)
        Subspace of every training sample.
    objective_ : float
        F1 at `labels_` and `bases_`; for λ=∞ the sum of squared residuals.
    objective_history_ : ndarray
        F1 at the beginning of the alternation and after each of its iterations; never rises.
    anneal_history_ : ndarray
        Free energy at each temperature; empty without annealing.
    n_iter_ : int
        Iterations of the alternation.
    converged_ : bool
        Whether it ended by `tol`.
    subspace_distances_ : ndarray of shape (n_subspaces, n_subspaces)
        d_u between the learned subspaces.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, when X has string names.

    Notes
    -----
    ``MiCUSaL(init="random", solver="exact", n_init=8)`` is Algorithm 1 as printed.
    Memory beyond X: about 64 MB of chunks, plus a few times L·m·s numbers per start.

    References
    ----------
    T. Wu and W. U. Bajwa, "Learning the nonlinear geometry of high-dimensional data: models and
    algorithms", IEEE Transactions on Signal Processing, 2015.

    Examples
    --------
    >>> from polyspan import MiCUSaL
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.metrics import clustering_error
    >>> data = make_union_of_subspaces((60, 60), n_features=30, subspace_dim=3, spread=0.3,
    ...                                noise=0.02, random_state=0)
    >>> model = MiCUSaL(n_subspaces=2, subspace_dim=3, random_state=0).fit(data.X)
    >>> clustering_error(data.labels, model.labels_)
    0.0
    >>> model.reconstruct(data.X_test).shape
    (120, 30)
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        "n_subspaces": [Interval(Integral, 1, None, closed="left")],
        "subspace_dim": [Interval(Integral, 1, None, closed="left")],
        "lam": [Interval(Real, 0, None, closed="right")],
        "init": [StrOptions({"anneal", "random"}), "array-like"],
        "solver": [StrOptions({"power", "exact"})],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "center": ["boolean"],
        "residual": [StrOptions({"plain", "loo"})],
        "anneal_steps": [Interval(Integral, 1, None, closed="left")],
        "anneal_range": [tuple, list],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        n_subspaces: int = 3,
        subspace_dim: int = 1,
        *,
        lam: float = 4.0,
        init: Any = "anneal",
        solver: str = "power",
        n_init: int | str = "auto",
        center: bool = True,
        residual: str = "plain",
        anneal_steps: int = 80,
        anneal_range: tuple[float, float] = (0.3, 0.05),
        max_iter: int = 300,
        tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_subspaces = n_subspaces
        self.subspace_dim = subspace_dim
        self.lam = lam
        self.init = init
        self.solver = solver
        self.n_init = n_init
        self.center = center
        self.residual = residual
        self.anneal_steps = anneal_steps
        self.anneal_range = anneal_range
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the subspaces.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Complete data; never modified.
        y : ignored

        Returns
        -------
        self : MiCUSaL
        """
        X = self._validate(X, reset=True)
        self._check_sizes(*X.shape)
        rng = check_random_state(self.random_state)
        given = self._given_start(X)
        prepared = prepare(X, float(self.lam), center=self.center, start=given)
        n_starts = self._n_starts()
        progress = FitProgress(self, X, n_starts, self._max_steps())
        best = self._best_solution(prepared, given, n_starts, rng, progress)
        self._store(prepared, best)
        progress.end({})
        self._warn_about(best)
        return self

    def _best_solution(
        self,
        prepared: Prepared,
        given: np.ndarray | None,
        n_starts: int,
        rng: np.random.RandomState,
        progress: FitProgress,
    ) -> Solution:
        """Run all starts, in groups that share their products, and return the lowest."""
        n, m = prepared.problem.rows.shape
        dtype = prepared.problem.rows.X.dtype
        n_columns = self.n_subspaces * self.subspace_dim
        pooled_start = draw_bases((m, self.subspace_dim), rng).astype(dtype)
        if given is not None:
            starts = prepared.inward(given)[None, ...]
        else:
            shape = (n_starts, self.n_subspaces, m, self.subspace_dim)
            starts = draw_bases(shape, rng).astype(dtype)
        size = max(1, min(n_starts, GROUP_BYTES // (n * n_columns * item_bytes(starts))))
        firsts = range(0, n_starts, size)
        work = pass_work(n, m, n_columns * size)
        rows = prepared.problem.rows.with_columns(n_columns * size)
        prepared = replace(prepared, problem=replace(prepared.problem, rows=rows))

        with limit_threads(work, len(firsts)):
            unit, ritz = pooled_residual(prepared.problem, pooled_start)
            self._warn_about_rank(ritz)
            solve = delayed(self._solve_group)
            groups = Parallel(n_jobs=self.n_jobs, prefer="threads")(
                solve(prepared, starts[first : first + size], unit, first, progress)
                for first in firsts
            )
        solutions: list[Solution] = [solution for group in groups for solution in group]
        return _first_of_the_best(solutions)

    def _solve_group(
        self,
        prepared: Prepared,
        bases: np.ndarray,
        unit: float,
        first: int,
        progress: FitProgress,
    ) -> list[Solution]:
        """Anneal (if asked), alternate and refill empty subspaces, for starts in one product."""
        problem = prepared.problem
        loo = self.residual == "loo"
        rules = Rules(self.solver, self.max_iter, float(self.tol), loo)
        monitor = progress.monitor(
            first,
            lambda current: {"bases_": prepared.outward(current), "mean_": prepared.mean},
        )
        cooling = np.empty((0, len(bases)))
        if isinstance(self.init, str) and self.init == "anneal":
            # A temperature of 0 divides 0 by 0 where all samples lie in one subspace.
            unit = max(unit, machine_epsilon(bases) * problem.total / len(problem.norms), 1e-300)
            schedule = temperatures(unit, *self.anneal_range, self.anneal_steps)
            bases, cooling = anneal(problem, bases, schedule, leave_one_out=loo, monitor=monitor)
        solutions = []
        for k, solution in enumerate(learn_subspaces(problem, bases, rules, monitor=monitor)):
            refilled = refill_empty(problem, solution, rules, monitor=_shifted(monitor, k))
            solutions.append(replace(refilled, anneal_history=tuple(cooling[:, k].tolist())))
            progress.end_start(first + k)
        return solutions

    def _store(self, prepared: Prepared, best: Solution) -> None:
        self.bases_ = prepared.outward(best.bases)
        self.mean_ = prepared.mean
        self.labels_ = best.labels.astype(np.int64)
        self.objective_ = prepared.objective(best.objective)
        self.objective_history_ = np.array([prepared.objective(v) for v in best.history])
        self.anneal_history_ = np.array([prepared.objective(v) for v in best.anneal_history])
        self.n_iter_ = best.n_iter
        self.converged_ = best.stopped == "converged"

    def _n_starts(self) -> int:
        if not isinstance(self.init, str):
            if self.n_init not in ("auto", 1):
                warnings.warn(
                    f"an init array is one start: n_init={self.n_init} is not used",
                    RuntimeWarning,
                    stacklevel=3,
                )
            return 1
        if self.n_init == "auto":
            return 8 if self.init == "random" else 1
        return int(self.n_init)

    def _max_steps(self) -> int:
        annealed = isinstance(self.init, str) and self.init == "anneal"
        # Each refilling of empty subspaces evaluates its new start once more.
        return (self.anneal_steps if annealed else 0) + self.max_iter + 1 + self.n_subspaces

    def _check_sizes(self, n_samples: int, n_features: int) -> None:
        if self.subspace_dim >= n_features:
            raise ValueError(
                f"subspace_dim={self.subspace_dim} must be smaller than n_features={n_features}: "
                "a subspace of full dimension represents every sample"
            )
        needed = self.n_subspaces * self.subspace_dim
        if n_samples < needed:
            raise ValueError(
                f"n_samples={n_samples} is fewer than n_subspaces * subspace_dim = "
                f"{self.n_subspaces} * {self.subspace_dim} = {needed}: every sample could have a "
                "direction of its own; lower n_subspaces or subspace_dim, or give more samples"
            )
        hottest, coldest = _two_temperatures(self.anneal_range)
        if not 0 < coldest <= hottest < np.inf:
            raise ValueError(
                f"anneal_range={self.anneal_range} must be (first, last) temperature with "
                "0 < last <= first"
            )

    def _given_start(self, X: np.ndarray) -> np.ndarray | None:
        """Check an init array; orthonormalise it where needed, and say so."""
        if isinstance(self.init, str):
            return None
        shape = (self.n_subspaces, X.shape[1], self.subspace_dim)
        start = np.asarray(self.init)
        if start.shape != shape:
            raise ValueError(
                f"init has the shape {start.shape}, but (n_subspaces, n_features, subspace_dim) "
                f"is {shape}"
            )
        start = start.astype(X.dtype)
        if not np.isfinite(start).all():
            raise ValueError("init contains NaN or infinity: give finite orthonormal bases")
        if not is_orthonormal(start):
            start = orthonormalise(start)
            warnings.warn(
                "the bases in init are not orthonormal: the nearest orthonormal ones are used",
                UserWarning,
                stacklevel=3,
            )
        return start

    def _warn_about_rank(self, ritz: np.ndarray) -> None:
        used = int((ritz > ritz.max() * machine_epsilon(ritz) * 10).sum()) if ritz.max() > 0 else 0
        if used < self.subspace_dim:
            warnings.warn(
                f"the samples{' minus their mean' if self.center else ''} span only {used} "
                f"directions, fewer than subspace_dim={self.subspace_dim}: the other directions of "
                "the bases mean nothing; lower subspace_dim",
                UserWarning,
                stacklevel=4,
            )

    def _warn_about(self, best: Solution) -> None:
        empty = np.flatnonzero(best.counts == 0)
        if len(empty):
            warnings.warn(
                f"no sample is assigned to subspaces {empty.tolist()}: starting them anew from the "
                "worst represented samples did not lower the objective; lower n_subspaces, or "
                "raise lam or n_init",
                UserWarning,
                stacklevel=3,
            )
        if best.stopped == "max_iter":
            warnings.warn(
                f"the alternation did not converge to tol={self.tol} in max_iter={self.max_iter} "
                "iterations: raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=3,
            )


def _first_of_the_best(solutions: list[Solution]) -> Solution:
    """Return the lowest; of starts that met in one optimum the first, whatever rounding says."""
    lowest = min(solution.criterion for solution in solutions)
    enough = lowest + 1e-9 * abs(lowest)
    return next(solution for solution in solutions if solution.criterion <= enough)


def _two_temperatures(values: Any) -> tuple[float, float]:
    if len(values) != 2 or not all(isinstance(v, Real) for v in values):
        raise ValueError(f"anneal_range={values} must hold two numbers")
    return float(values[0]), float(values[1])


def _shifted(monitor: Monitor | None, by: int) -> Monitor | None:
    """Report a single start as the start that it is in its group."""
    if monitor is None:
        return None
    return lambda start, iteration, objective, bases: monitor(
        start + by, iteration, objective, bases
    )
