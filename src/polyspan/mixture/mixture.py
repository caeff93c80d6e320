"""SubspaceMixture: a probabilistic union of subspaces, from complete or incomplete data."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from polyspan.base.arrays import Array, limit_threads, moved_to, namespace, pass_work
from polyspan.base.checks import warn_user
from polyspan.base.private_sklearn import Interval, StrOptions, fit_context
from polyspan.base.progress import FitProgress
from polyspan.data.weights import keep_without_weight
from polyspan.linear.options import CONSTRAINTS
from polyspan.mixture._solve.em import run_em
from polyspan.mixture._solve.gaussians import Gaussians
from polyspan.mixture._solve.noise import Shrinkage
from polyspan.mixture.auto_starts import FINALISTS, best_starts, with_enough_rows
from polyspan.mixture.fit_case import FitCase, previous_gaussians
from polyspan.mixture.fitted import LEARNED_BESIDES, by_noise_group, fitted_attributes
from polyspan.mixture.prediction import MixturePrediction
from polyspan.mixture.starts import annealed_start, fit_pooled, start_from_labels, with_outliers


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
    n_subspaces : int, pair of int or "auto", default=3
        Number L of subspaces. A pair (least, most) is chosen from by BIC; "auto" is (1, 10). See
        `candidates_`.
    subspace_dim : int, sequence of int or "auto", default=1
        Dimension s of each, from 0 (round Gaussians) to n_features - 1 (any covariance). A sequence
        has one dimension for every subspace, and the annealed start finds which samples each suits.
        "auto" chooses by BIC: first a common one, then one for every subspace; see
        `subspace_dims_` and `candidates_`.
    closeness : float, default=1.0
        Strength κ ≥ 0 of the shrinkage, in samples. 0 is maximum likelihood; a large value makes
        all covariances equal.
    affine : bool, default=True
        Whether every subspace has its own mean; otherwise all go through the mean of the samples.
    center : bool, default=True
        With `affine=False`: whether all subspaces go through the mean of the observed entries, or
        through the origin.
    noise : {"subspace", "shared"} or float, default="subspace"
        "subspace" learns one noise variance σ_l² per subspace, "shared" one for all subspaces. A
        number is the known standard deviation of the noise.
    outliers : bool or float, default=False
        Whether a uniform component takes samples that fit no subspace. Its density is that of the
        box that holds all samples (of the observed entries, where some are missing). A number is
        its share of the samples, between 0 and 1; True learns the share.
    init : {"auto", "anneal"} or array-like of shape (n_samples,), default="auto"
        "anneal" finds the start of EM by annealing. "auto" also tries the labels of hard unions of
        linear and of affine subspaces, four each, and of k-means: after some steps on a sample of
        the data the two most likely go on, and the more likely is kept. An array has one label 0,
        …, n_subspaces - 1 for every sample, and EM starts from the Gaussians of these clusters; if
        a label is missing, a cluster is cut in two.
    n_init : int, default=1
        Number of annealed starts, of which the one with the highest penalised log-likelihood is
        kept; also beside the others of "auto".
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
        Orthonormal bases D_l, their columns sorted by decreasing variance. Where dimensions differ,
        the last axis has the largest, and columns beyond a subspace's own dimension are zero.
    variances_ : ndarray of shape (n_subspaces, subspace_dim)
        v_l: variance along the basis, beyond the noise.
    noise_variances_ : ndarray of shape (n_subspaces,)
        σ_l²; with `noise_groups` the geometric mean over all observed entries.
    noise_groups_ : ndarray of shape (n_groups,)
        Labels of the groups of noise, sorted; only after a fit with `noise_groups`.
    noise_factors_ : ndarray of shape (n_groups,)
        f_g: a sample of group g has the noise variance f_g σ_l² in subspace l.
    outlier_weight_ : float
        Share of outliers; only with `outliers`.
    outlier_ranges_ : ndarray of shape (n_features,)
        Sides of the box in which outliers are uniform; only with `outliers`.
    mean_ : ndarray of shape (n_features,)
        Mean of the observed entries (zero without `affine` and `center`).
    candidates_ : dict of ndarray
        The sizes that were compared, each with its `n_subspaces`, `subspace_dims`,
        `log_likelihood`, `n_parameters` and `bic`, as columns of a table; only where a size is
        chosen. The `bic` is infinite where a subspace has too few rows.
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
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, when X has string names.

    See Also
    --------
    SubspaceImputer : fills tables, and chooses the sizes itself.

    Notes
    -----
    With one subspace and complete data this is probabilistic PCA (Tipping and Bishop, 1999). Rows
    without any observed entry are allowed; they do not change the result.

    A learned σ_l² is kept above 1e-6 of the mean variance, and above the rounding of the columns:
    δ²/12, averaged over the columns, where values repeat in steps of δ. Of several starts, one with
    a subspace of fewer than 2(s + 1) rows is kept only if all have one.

    A sample of weight 2 counts as two samples, in every sum: κ is in samples too, so that weights
    of another scale change its meaning. From the same labels in `init`, weights give what repeated
    samples give. The annealed start draws samples, and there the two may differ.

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

    # Whether noise is at least as large as the steps in which columns were written down.
    _noise_floor = True

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        **{name: CONSTRAINTS[name] for name in ("center", "max_iter", "tol", "random_state")},
        "n_subspaces": [*CONSTRAINTS["n_subspaces"], StrOptions({"auto"}), tuple, list],
        "subspace_dim": [*CONSTRAINTS["subspace_dim"], StrOptions({"auto"}), "array-like"],
        "closeness": [Interval(Real, 0, None, closed="left")],
        "affine": ["boolean"],
        "noise": [StrOptions({"subspace", "shared"}), Interval(Real, 0, None, closed="neither")],
        "outliers": ["boolean", Interval(Real, 0, 1, closed="neither")],
        "init": [StrOptions({"auto", "anneal"}), "array-like"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "anneal_steps": [Interval(Integral, 0, None, closed="left")],
        "anneal_start": [Interval(Real, 0, 1, closed="right")],
        "warm_start": ["boolean"],
    }

    def __init__(
        self,
        n_subspaces: Any = 3,
        subspace_dim: Any = 1,
        *,
        closeness: float = 1.0,
        affine: bool = True,
        center: bool = True,
        noise: Any = "subspace",
        outliers: Any = False,
        init: Any = "auto",
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
        self.outliers = outliers
        self.init = init
        self.n_init = n_init
        self.anneal_steps = anneal_steps
        self.anneal_start = anneal_start
        self.max_iter = max_iter
        self.tol = tol
        self.warm_start = warm_start
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, noise_groups: Any = None
    ) -> Self:
        """Learn the subspaces from the observed entries.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples, with NaN for missing entries. X is not modified. Under scikit-learn's
            `array_api_dispatch` an array of PyTorch or CuPy is fitted on its own device; the fitted
            arrays and all results are on that device too.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            How often every sample counts: 2 is the sample twice, 0 is no sample (it still gets its
            label).
        noise_groups : array-like of shape (n_samples,), default=None
            Labels of groups of samples, such as the names of two sensors. Each group gets its own
            level of noise: a factor f_g of all noise variances.

        Returns
        -------
        SubspaceMixture
            The fitted estimator.
        """
        X = self._validate(X, reset=True)
        rng = check_random_state(self.random_state)
        case = FitCase.of(self, X, sample_weight, noise_groups, rng)
        keep_without_weight(self, sample_weight)
        problem = case.problem
        mean = problem.mean
        one = case.labels is not None or case.start is not None
        n_starts = 1 if one else FINALISTS if self._compares_starts(case) else self.n_init
        progress = FitProgress(self, X, y, n_starts, self.max_iter)
        n, m = problem.values.shape
        with limit_threads(pass_work(n, m, case.n_subspaces * (case.dim + 1))):
            pooled, single = fit_pooled(problem, case.dim, rng)
            if self.outliers is not False:
                single = with_outliers(single, self.outliers)
            shrinkage = Shrinkage(pooled, float(self.closeness))
            runs = []
            for k, start in enumerate(self._starts(case, single, shrinkage, rng)):
                monitor = progress.monitor(
                    k, lambda current: fitted_attributes(current, mean), measure="log_likelihood"
                )
                runs.append(
                    run_em(
                        problem.samples, start, shrinkage, max_iter=self.max_iter,
                        tol=float(self.tol), monitor=monitor,
                    )
                )  # fmt: skip
                progress.end_start(k)
        runs = with_enough_rows(runs, problem.samples)
        best = max(runs, key=lambda run: run.value)
        for name in LEARNED_BESIDES:  # of an earlier fit
            self.__dict__.pop(name, None)
        self.__dict__.update(fitted_attributes(best.gaussians, mean))
        self.__dict__.update(case.attributes())
        self.log_likelihood_ = best.value
        self.log_likelihood_history_ = moved_to(list(best.history), X, namespace(X).float64)
        self.n_iter_ = best.n_iter
        self.converged_ = best.stopped == "converged"
        groups = case.groups
        del problem, case  # frees its copy of X and the mask, which are no longer needed
        self.labels_ = (
            self._nearest(X) if groups is None else by_noise_group(self, X, groups, "_nearest")
        )
        progress.end()
        if best.stopped == "max_iter":
            warn_user(
                f"EM did not converge to tol={self.tol} in max_iter={self.max_iter} iterations: "
                "raise max_iter or tol",
                ConvergenceWarning,
            )
        return self

    def fit_predict(
        self, X: Any, y: Any = None, sample_weight: Any = None, noise_groups: Any = None
    ) -> Array:
        """Learn the subspaces and return the most probable one of every sample.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples, with NaN for missing entries.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            How often every sample counts, as for `fit`.
        noise_groups : array-like of shape (n_samples,), default=None
            Labels of groups of samples with a level of noise of their own, as for `fit`.

        Returns
        -------
        ndarray of shape (n_samples,)
            The labels `labels_` of the training samples.
        """
        return self.fit(X, y, sample_weight=sample_weight, noise_groups=noise_groups).labels_

    @property
    def _goes_on(self) -> bool:
        """Whether `fit` starts from the result of an earlier fit."""
        return bool(self.warm_start) and hasattr(self, "bases_")

    def _compares_starts(self, case: FitCase) -> bool:
        auto = isinstance(self.init, str) and self.init == "auto"
        return auto and case.n_subspaces > 1 and case.start is None and not self._goes_on

    def _starts(
        self,
        case: FitCase,
        single: Gaussians,
        shrinkage: Shrinkage,
        rng: np.random.RandomState,
    ) -> Iterator[Gaussians]:
        """Yield the starts of EM: of known labels or components one, else `n_init`."""
        n = case.n_subspaces
        given: dict[str, Any] = {"steps": self.anneal_steps, "hottest": float(self.anneal_start)}
        if self._goes_on:
            yield previous_gaussians(self, case, single)
        elif case.start is not None:
            yield case.start
        elif case.labels is not None and n > 1:
            yield start_from_labels(case.problem, single, case.labels, n, shrinkage)
        elif self._compares_starts(case):
            given["n_init"] = self.n_init
            yield from best_starts(case.problem, single, n, shrinkage, rng, **given)
        elif n == 1:
            yield from [single] * (1 if case.labels is not None else self.n_init)
        else:
            for _ in range(self.n_init):
                yield annealed_start(case.problem, single, n, shrinkage, rng, **given)
