"""GROUSE learns one subspace from a stream of incomplete samples, k-GROUSE several."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from polyspan.base.checks import check_columns_observed, check_subspace_dim, warn_left_out
from polyspan.base.private_sklearn import Interval, StrOptions, fit_context
from polyspan.base.progress import FitProgress
from polyspan.data.missing import Holes, observed_mean
from polyspan.geometry.bases import draw_bases
from polyspan.linear.linear_union import LinearUnion
from polyspan.linear.looking import noise_variance
from polyspan.linear.robust import RobustMiCUSaL


class GROUSE(LinearUnion):
    """Learn one subspace by rank-one steps on the Grassmann manifold; NaN is allowed.

    Each sample rotates the basis towards its residual (Balzano, Nowak and Recht, 2010).

    Parameters
    ----------
    subspace_dim : int, default=1
        Dimension of the subspace.
    step_size : float or "greedy", default="greedy"
        How far a sample rotates the basis. "greedy" rotates by the angle
        arctan(‖residual‖/‖coefficients‖), after which the sample is fitted exactly: for samples
        without noise. A number η > 0, divided by t in the t-th pass over the data, averages noise
        out.
    n_sweeps : int, default=100
        Number of passes of `fit` over the data; `partial_fit` makes one.
    center : bool, default=False
        Whether `fit` subtracts the mean of the observed entries; `partial_fit` never does.
    random_state : int, RandomState instance or None, default=None
        Seed of the first basis and of the order of the samples.

    Attributes
    ----------
    bases_ : ndarray of shape (1, n_features, subspace_dim)
        Orthonormal basis.
    mean_ : ndarray of shape (n_features,)
        Mean that was subtracted; zero without `center`.
    labels_ : ndarray of shape (n_samples,)
        0, or -1 for samples with at most `subspace_dim` observed entries, which are left out.
    n_seen_ : int
        Number of samples seen so far.
    n_features_in_ : int
        Number of features seen during `fit`.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.baselines import GROUSE
    >>> from polyspan.datasets import mask_entries
    >>> rng = np.random.RandomState(0)
    >>> X = rng.standard_normal((200, 2)) @ rng.standard_normal((2, 10))
    >>> holes = mask_entries(X, 0.3, random_state=0)
    >>> filled = GROUSE(2, random_state=0).fit(holes).impute(holes)
    >>> bool(np.allclose(filled, X, atol=1e-5))
    True
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        "subspace_dim": [Interval(Integral, 1, None, closed="left")],
        "step_size": [StrOptions({"greedy"}), Interval(Real, 0, None, closed="neither")],
        "n_sweeps": [Interval(Integral, 1, None, closed="left")],
        "center": ["boolean"],
        "random_state": ["random_state"],
    }
    n_subspaces = 1

    def __init__(
        self,
        subspace_dim: int = 1,
        *,
        step_size: float | str = "greedy",
        n_sweeps: int = 100,
        center: bool = False,
        random_state: Any = None,
    ) -> None:
        self.subspace_dim = subspace_dim
        self.step_size = step_size
        self.n_sweeps = n_sweeps
        self.center = center
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the subspace by several passes over the samples.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples, with NaN for missing entries.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        GROUSE
            The fitted estimator.
        """
        X = self._validate(X, reset=True)
        holes = Holes.of(X)
        check_columns_observed(holes.missing)
        check_subspace_dim(self.subspace_dim, X.shape[1])
        rng = check_random_state(self.random_state)
        mean = np.zeros(X.shape[1], dtype=X.dtype)
        if self.center:
            mean = observed_mean(X, holes.missing)
        learned = holes.n_observed > self.subspace_dim
        warn_left_out(np.flatnonzero(~learned), len(X), self.subspace_dim)
        basis = draw_bases((X.shape[1], self.subspace_dim), rng)
        progress = FitProgress(self, X, y, 1, self.n_sweeps)
        tick = progress.ticker()
        for t in range(1, self.n_sweeps + 1):
            order = rng.permutation(np.flatnonzero(learned))
            basis = self._pass(basis, X - mean, holes, order, t)
            tick()
        self.mean_, self.n_seen_ = mean, 0
        self._store(basis, learned, X)
        progress.end_start(0)
        progress.end()
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Update the subspace by one pass over more samples, in their order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Further samples, with NaN for missing entries.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        GROUSE
            The estimator itself, with the basis after these samples.
        """
        first = not hasattr(self, "bases_")
        X = self._validate(X, reset=first)
        holes = Holes.of(X)
        if first:
            check_subspace_dim(self.subspace_dim, X.shape[1])
            rng = check_random_state(self.random_state)
            self.mean_ = np.zeros(X.shape[1], dtype=X.dtype)
            self.bases_ = draw_bases((1, X.shape[1], self.subspace_dim), rng).astype(X.dtype)
            self.n_seen_ = 0
        learned = holes.n_observed > self.subspace_dim
        basis = np.asarray(self.bases_[0], dtype=np.float64)
        basis = self._pass(basis, X - self.mean_, holes, np.flatnonzero(learned), 1)
        return self._store(basis, learned, X)

    def _store(self, basis: np.ndarray, learned: np.ndarray, X: np.ndarray) -> Self:
        """Store the basis, and which of the last samples were learned from."""
        self.bases_ = basis[None].astype(self.mean_.dtype)
        self.labels_ = np.where(learned, 0, -1).astype(np.int64)
        self.n_seen_ += len(learned)
        self.noise_variance_ = noise_variance(self, X)
        return self

    def _pass(
        self, basis: np.ndarray, X: np.ndarray, holes: Holes, order: np.ndarray, t: int
    ) -> np.ndarray:
        """Visit samples once."""
        from polyspan.linear._solve.grouse import sweep  # loads numba

        values = np.where(holes.missing, 0.0, X).astype(np.float64)
        greedy = isinstance(self.step_size, str)
        steps = np.full(len(X), 0.0 if greedy else float(self.step_size) / t)
        columns = np.array(basis.T, dtype=np.float64, order="C")  # a copy: sweeps are in place
        sweep(columns, values, holes.missing, order, steps, greedy)
        if not np.isfinite(columns).all():
            raise ValueError(
                f"steps are not finite: X has entries up to {np.abs(values).max():.3g} in size; "
                "scale X to rows of norm near 1"
            )
        return columns.T

    _takes_missing = True


class KGROUSE(RobustMiCUSaL):
    """K-subspaces with missing entries, by rank-one steps (k-GROUSE).

    Algorithm 3 without its closeness term (Balzano, Szlam, Recht and Nowak, 2012).

    Parameters
    ----------
    n_subspaces : int, default=3
        Number of subspaces.
    subspace_dim : int, default=1
        Dimension of each of them.
    step_size : float, default=1.5
        Step size η > 0, divided by t in the t-th sweep. 0.1 with `max_iter=4` comes close to the
        published results; a larger step is much better.
    n_sweeps : int, default=100
        Number of passes over the data after every assignment.
    n_init : int or "auto", default="auto"
        Number of starts; "auto": 8.
    max_iter : int, default=5
        Largest number of assignments of samples to subspaces.
    tol : float, default=1e-6
        Converged when an assignment and its sweeps change the objective by no more than this
        fraction of it.
    center : bool, default=False
        Subtract the mean of the observed entries of every feature.
    random_state : int, RandomState instance or None, default=None
        Draws the starts.
    n_jobs : int or None, default=None
        Starts of a large problem to run at once, in threads.

    Attributes
    ----------
    bases_, mean_, labels_, objective_, objective_history_, n_iter_, converged_, noise_variance_
        As for `RobustMiCUSaL`.

    Examples
    --------
    >>> from polyspan.baselines import KGROUSE
    >>> from polyspan.datasets import make_union_of_subspaces, mask_entries
    >>> data = make_union_of_subspaces((50, 50), n_features=30, subspace_dim=2, spread=0.8,
    ...                                noise=0.01, random_state=0)
    >>> model = KGROUSE(2, 2, random_state=0).fit(mask_entries(data.X, 0.2, random_state=0))
    >>> model.bases_.shape
    (2, 30, 2)
    """

    _parameter_constraints = {
        name: RobustMiCUSaL._parameter_constraints[name]
        for name in (
            "n_subspaces", "step_size", "n_sweeps", "n_init", "max_iter", "tol",
            "center", "random_state", "n_jobs",
        )
    } | {"subspace_dim": [Interval(Integral, 1, None, closed="left")]}  # fmt: skip
    lam = float("inf")
    init = "random"
    affine = False
    residual = "plain"
    trim = 0.0
    forget_factor = 1.0
    solver = "grouse"
    fill_prior = 0.0
    anneal_steps = 1
    anneal_range = (1.0, 1.0)

    def __init__(
        self,
        n_subspaces: int = 3,
        subspace_dim: int = 1,
        *,
        step_size: float = 1.5,
        n_sweeps: int = 100,
        n_init: int | str = "auto",
        max_iter: int = 5,
        tol: float = 1e-6,
        center: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_subspaces = n_subspaces
        self.subspace_dim = subspace_dim
        self.step_size = step_size
        self.n_sweeps = n_sweeps
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.center = center
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:  # type: ignore[override]
        """Learn the subspaces from the observed entries.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples, with NaN for missing entries.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        KGROUSE
            The fitted estimator.
        """
        super().fit(X, y)
        return self

    _weighted = False
    """k-GROUSE does not use the weights m/|Ω| of the paper's F2."""
