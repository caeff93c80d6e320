"""SubspaceMixture: a probabilistic union of subspaces, from complete or incomplete data."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from polyspan._sklearn import Interval, StrOptions, fit_context
from polyspan.arrays import Array, limit_threads, moved_to, namespace, pass_work, to_numpy
from polyspan.checks import check_scale, check_subspace_dim, warn_user
from polyspan.mixture._solve.em import run_em
from polyspan.mixture._solve.gaussians import Gaussians
from polyspan.mixture._solve.noise import Shrinkage
from polyspan.mixture.prediction import MixturePrediction, fitted_attributes, gaussians_of
from polyspan.mixture.starts import Problem, annealed_start, fit_pooled
from polyspan.progress import FitProgress
from polyspan.union.plan import CONSTRAINTS


class SubspaceMixture(MixturePrediction):
    r"""Mixture of low-rank Gaussians: a union of subspaces with soft membership.

    A sample comes from subspace l with probability π_l, and then from a Gaussian around it,

    .. math:: x \sim N(\mu_l, C_l), \qquad C_l = D_l \,\mathrm{diag}(v_l)\, D_l^T + \sigma_l^2 I

    with D_l an orthonormal basis. `fit` maximises

    .. math:: \sum_i \log \sum_l \pi_l N(x_i; \mu_l, C_l)
              - \kappa \sum_l \mathrm{KL}\big(N(0, P) \,\|\, N(0, C_l)\big)

    by expectation-maximisation (EM). Where entries are missing, the density is that of the observed
    entries. The value never falls from one iteration to the next. P is the pooled covariance of all
    samples, and κ the `closeness`: the covariance of a subspace is shrunk as if the subspace had κ
    more samples, drawn from the pooled Gaussian.

    Parameters
    ----------
    n_subspaces : int, default=3
        Number L of subspaces.
    subspace_dim : int, default=1
        Dimension s of each, from 0 (round Gaussians) to n_features - 1 (any covariance).
    closeness : float, default=1.0
        κ ≥ 0, in samples. 0 is maximum likelihood; a large value makes all covariances equal.
    affine : bool, default=True
        Whether every subspace has its own mean; otherwise all go through the mean of the samples.
    center : bool, default=True
        With `affine=False`: whether all subspaces go through the mean of the observed entries, or
        through the origin.
    noise : {"subspace", "shared"} or float, default="subspace"
        "subspace" learns one noise variance σ_l² per subspace, "shared" one for all subspaces. A
        number is the known standard deviation of the noise.
    n_init : int, default=1
        Number of starts, of which the one with the highest penalised log-likelihood is kept.
    anneal_steps : int, default=20
        Number of annealed steps before EM, in which responsibilities go from soft to those of the
        model.
    anneal_start : float, default=0.1
        Inverse temperature of the first annealed step, between 0 and 1; that of the last is 1.
    max_iter : int, default=100
        Largest number of EM iterations.
    tol : float, default=1e-5
        EM has converged when an iteration raises the penalised log-likelihood by no more than this
        per observed entry.
    warm_start : bool, default=False
        Whether a second `fit` starts from the result of the first, without annealing.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Attributes
    ----------
    weights_ : ndarray of shape (n_subspaces,)
        π_l: probabilities of the subspaces.
    means_ : ndarray of shape (n_subspaces, n_features)
        μ_l; all equal to `mean_` without `affine`.
    bases_ : ndarray of shape (n_subspaces, n_features, subspace_dim)
        Orthonormal bases D_l, their columns sorted by decreasing variance.
    variances_ : ndarray of shape (n_subspaces, subspace_dim)
        v_l: variance along the basis, beyond the noise.
    noise_variances_ : ndarray of shape (n_subspaces,)
        σ_l².
    mean_ : ndarray of shape (n_features,)
        Mean of the observed entries (zero without `affine` and `center`).
    labels_ : ndarray of shape (n_samples,)
        The most probable subspace of every training sample.
    log_likelihood_ : float
        The penalised log-likelihood of all samples, which EM maximises, at its end.
    log_likelihood_history_ : ndarray
        The same at the start of EM and after every iteration; never falls.
    n_iter_ : int
        Number of EM iterations.
    converged_ : bool
        Whether EM stopped by `tol`.
    n_features_in_, feature_names_in_ : as in all of scikit-learn

    See Also
    --------
    SubspaceImputer : fills tables, and chooses the sizes itself.

    Notes
    -----
    With one subspace and complete data this is probabilistic PCA (Tipping and Bishop, 1999). σ_l²
    is kept above 1e-6 of the mean variance. Rows without any observed entry are allowed; they do
    not change the result.

    For complete data of up to 512 features the updates are exact, from eigenvectors of m×m
    covariances. Otherwise every step solves one (s+1)×(s+1) system per feature and subspace, and
    one s×s system per sample and subspace; samples with the same mask have the same matrix. Memory:
    a filled copy of X, its mask, and L·m·(s+1)² numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan import SubspaceMixture
    >>> from polyspan.datasets import make_union_of_subspaces, mask_entries
    >>> data = make_union_of_subspaces((60, 60), n_features=15, subspace_dim=2, spread=0.8,
    ...                                noise=0.05, random_state=0)
    >>> X = mask_entries(data.X, 0.1, random_state=0)
    >>> model = SubspaceMixture(2, 2, random_state=0).fit(X)
    >>> bool(np.isfinite(model.impute(X)).all())
    True
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        **{
            name: CONSTRAINTS[name]
            for name in ("n_subspaces", "subspace_dim", "center", "max_iter", "tol", "random_state")
        },
        "closeness": [Interval(Real, 0, None, closed="left")],
        "affine": ["boolean"],
        "noise": [StrOptions({"subspace", "shared"}), Interval(Real, 0, None, closed="neither")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "anneal_steps": [Interval(Integral, 0, None, closed="left")],
        "anneal_start": [Interval(Real, 0, 1, closed="right")],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        n_subspaces: int = 3,
        subspace_dim: int = 1,
        *,
        closeness: float = 1.0,
        affine: bool = True,
        center: bool = True,
        noise: Any = "subspace",
        n_init: int = 1,
        anneal_steps: int = 20,
        anneal_start: float = 0.1,
        max_iter: int = 100,
        tol: float = 1e-5,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.n_subspaces = n_subspaces
        self.subspace_dim = subspace_dim
        self.closeness = closeness
        self.affine = affine
        self.center = center
        self.noise = noise
        self.n_init = n_init
        self.anneal_steps = anneal_steps
        self.anneal_start = anneal_start
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the subspaces from the observed entries.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN marks missing entries. X is not modified. Under scikit-learn's `array_api_dispatch`
            an array of PyTorch or CuPy is fitted on its own device; the fitted arrays and all
            results are on that device too.
        y : ignored

        Returns
        -------
        self : SubspaceMixture
        """
        X = self._validate(X, reset=True)
        check_subspace_dim(self.subspace_dim, X.shape[1])
        if X.shape[0] < max(2, self.n_subspaces):
            raise ValueError(
                f"n_samples={X.shape[0]} is too few for n_subspaces={self.n_subspaces}: every "
                "subspace needs a sample, and the noise needs two in all"
            )
        check_scale(X)
        rng = check_random_state(self.random_state)
        center = self.affine or self.center
        problem = Problem.of(X, self.noise, affine=self.affine, center=center)
        mean = problem.mean
        progress = FitProgress(self, X, y, self.n_init, self.max_iter)
        n_columns = self.n_subspaces * (self.subspace_dim + 1)
        with limit_threads(pass_work(X.shape[0], X.shape[1], n_columns)):
            pooled, single = fit_pooled(problem, self.subspace_dim, rng)
            shrinkage = Shrinkage(pooled, float(self.closeness))
            runs = []
            for k, start in enumerate(self._starts(problem, single, shrinkage, rng)):
                monitor = progress.monitor(k, lambda current: fitted_attributes(current, mean))
                runs.append(
                    run_em(
                        problem.samples, start, shrinkage, max_iter=self.max_iter,
                        tol=float(self.tol), monitor=monitor,
                    )
                )  # fmt: skip
                progress.end_start(k)
        best = max(runs, key=lambda run: run.value)
        self.__dict__.update(fitted_attributes(best.gaussians, mean))
        self.log_likelihood_ = best.value
        self.log_likelihood_history_ = moved_to(list(best.history), X, namespace(X).float64)
        self.n_iter_ = best.n_iter
        self.converged_ = best.stopped == "converged"
        del problem  # frees its copy of X and the mask, which are no longer needed
        self.labels_ = self._nearest(X)
        progress.end()
        if best.stopped == "max_iter":
            warn_user(
                f"EM did not converge to tol={self.tol} in max_iter={self.max_iter} iterations: "
                "raise max_iter or tol",
                ConvergenceWarning,
            )
        return self

    def fit_predict(self, X: Any, y: Any = None) -> Array:
        """Learn the subspaces and return the most probable one of every sample."""
        return self.fit(X, y).labels_

    def _starts(
        self,
        problem: Problem,
        single: Gaussians,
        shrinkage: Shrinkage,
        rng: np.random.RandomState,
    ) -> Iterator[Gaussians]:
        """Yield `n_init` starts of EM; with `warm_start` only the previous result."""
        if self.warm_start and hasattr(self, "bases_"):
            yield self._previous(problem)
            return
        for _ in range(self.n_init):
            if self.n_subspaces == 1:
                yield single
                continue
            yield annealed_start(
                problem, single, self.n_subspaces, shrinkage, rng, steps=self.anneal_steps,
                hottest=float(self.anneal_start),
            )  # fmt: skip

    def _previous(self, problem: Problem) -> Gaussians:
        """Return the result of the previous fit, relative to the mean of these samples."""
        mean, rule = problem.mean, problem.rule
        shape = (self.n_subspaces, mean.shape[0], self.subspace_dim)
        if self.bases_.shape != shape:
            raise ValueError(
                f"warm_start goes on from bases of shape {self.bases_.shape}, but n_subspaces, "
                f"n_features and subspace_dim are {shape}: set warm_start=False"
            )
        learned = gaussians_of(self)
        means = to_numpy(learned.means)
        means = means + (to_numpy(self.mean_) - to_numpy(mean)) if self.affine else 0 * means
        noise = to_numpy(learned.noise)
        if rule.kind != "subspace":  # the previous fit may have had another rule
            noise = to_numpy(
                rule.estimate(noise * to_numpy(self.weights_), to_numpy(self.weights_))
            )
        arrays = (learned.log_weights, means, learned.bases, learned.variances, noise)
        dtype = problem.values.dtype
        return Gaussians(*(moved_to(to_numpy(array), mean, dtype) for array in arrays))
