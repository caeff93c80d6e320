"""RobustMiCUSaL: unions of subspaces from data with missing entries (Algorithm 3 and others)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from numbers import Integral, Real
from typing import Any, Self

from sklearn.base import ClusterMixin

from polyspan.base.private_sklearn import Interval, StrOptions, fit_context
from polyspan.linear._solve.alternation import Learn, Rules, one_by_one
from polyspan.linear.fitting import learn_union, warn_about
from polyspan.linear.linear_union import LinearUnion
from polyspan.linear.options import CONSTRAINTS, MOST_SWEEPS, check_plan, most_features, sized_plan
from polyspan.linear.reading import read
from polyspan.linear.streaming import partial_fit


class RobustMiCUSaL(ClusterMixin, LinearUnion):  # type: ignore[misc]
    r"""Union of subspaces that are close to each other, learned from incomplete data.

    NaN marks a missing entry. Minimises

    .. math:: F_2 = \sum_{l \ne p} d_u^2(S_l, S_p)
        + \lambda \sum_i \frac{m}{|\Omega_i|} \|[y_i]_{\Omega_i} - P [y_i]_{\Omega_i}\|^2

    with P the projection on the observed rows of the subspace of sample i, plus, for
    `solver="mm"`, a small prior ρ on the squares of filled-in entries, without which a sample with
    few more than `subspace_dim` observed entries would be filled with anything.

    Parameters
    ----------
    n_subspaces : int, default=3
        Number L of subspaces.
    subspace_dim : int or sequence of n_subspaces ints, default=1
        Dimension s of each, or one for each; see `MiCUSaL`. Not a sequence of different numbers
        with `solver="grouse"`.
    lam : float or "auto", default="auto"
        Weight λ of the data against the closeness of the subspaces, as for `MiCUSaL`;
        `float("inf")` leaves closeness out (`solver="mm"` only).
    init : {"auto", "anneal", "random"} or array of shape (n_subspaces, n_features, \
            subspace_dim), default="auto"
        As for `MiCUSaL`. Annealing always takes majorise-minimise steps. Seeds of "auto" are drawn
        from rows that one subspace has filled. With `solver="grouse"` "auto" is "anneal".
    solver : {"mm", "exact", "grouse"}, default="mm"
        "mm" majorises F2 and takes one power step towards the minimum of the majoriser: F2 never
        rises and there is no step size. "exact" takes that minimum itself, by eigenvectors.
        "grouse" is Algorithm 3 as printed.
    n_init : int or "auto", default="auto"
        Number of starts, at most 1000. The one with the lowest F2 is kept. "auto" as for `MiCUSaL`.
    center : bool, default=False
        Subtract the mean of the observed entries of every feature. The paper does not. Affine
        subspaces are always learned about it.
    affine : bool, default=False
        Learn affine subspaces, which need not go through the mean; see `MiCUSaL`. The prior is on
        the squares of filled-in entries relative to the mean. Not with `solver="grouse"`.
    residual : {"plain", "loo"}, default="plain"
        As for `MiCUSaL`, on the filled samples. Not with `solver="grouse"`.
    trim : float, default=0.0
        Fraction of the samples (by weight), at least 0 and below 1, that takes no part in the
        updates: those with the largest residuals, chosen anew in every step. For data with
        outliers; give at least their fraction. Samples so far away that their residuals are lost
        in rounding are trimmed from the start. Not with `residual="loo"`, `solver="grouse"` or
        `partial_fit`.
    fill_prior : float, default=0.02
        Weight ρ of the prior on filled-in entries, between 0 and 1, for `solver="mm"`.
    step_size : float, default=1.5
        Step size η of `solver="grouse"`, for samples of norm about 1; the paper gives none, and
        1.5 comes nearest to its table. Steps on the data are λη long, for λ=∞ (k-GROUSE) η.
    n_sweeps : int, default=100
        Inner iterations of `solver="grouse"`, with step η/t in the t-th; at most 1000.
    anneal_steps : int, default=80
        Length of the cooling schedule; at most 10 000.
    anneal_range : tuple of float, default=(0.4, 0.05)
        First and last temperature, in units of the mean residual to one pooled subspace.
    max_iter : int, default=300
        Most (outer) iterations; the paper's tables fit 5 with `solver="grouse"`.
    tol : float, default=1e-6
        Converged when an iteration changes F2 by no more than this fraction of it.
    forget_factor : float, default=1.0
        For `partial_fit` only: factor for everything remembered, applied before each batch, so
        that a sample that came k batches ago counts `forget_factor ** k`. 1 forgets nothing; with
        f the memory is about 1 / (1 - f) batches long.
    random_state : int, RandomState instance or None, default=None
        Draws the starts.
    n_jobs : int or None, default=None
        Starts of a large problem to run at once, in threads.

    Attributes
    ----------
    bases_ : ndarray of shape (n_subspaces, n_features, subspace_dim)
        Orthonormal bases D_l, in the layout of `MiCUSaL`.
    mean_ : ndarray of shape (n_features,)
        Mean of the observed entries that was subtracted; zero without centring.
    anchors_ : ndarray of shape (n_subspaces, n_features)
        With `affine=True`: a point of every subspace, as for `MiCUSaL`.
    labels_ : ndarray of shape (n_samples,)
        Subspace of every training sample; -1 for samples with at most `subspace_dim` observed
        entries (the largest, where dimensions differ), which have no residual to judge by and were
        not learned from.
    objective_, objective_history_, anneal_history_, n_iter_, converged_
        As for `MiCUSaL`, with F2 plus its prior in place of F1.
    trimmed_ : ndarray of shape (n_samples,)
        With `trim` above 0: whether a sample took no part in the last update. `labels_` has its
        nearest subspace all the same.
    noise_variance_ : float
        Variance of the noise: the mean squared residual per remaining dimension.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, when X has string names.

    See Also
    --------
    MiCUSaL : For complete data; without any NaN the two give the same result, given the same
        `center`, `anneal_steps` and `anneal_range`.

    References
    ----------
    T. Wu and W. U. Bajwa, "Learning the nonlinear geometry of high-dimensional data: models and
    algorithms", IEEE Transactions on Signal Processing, 2015, Sec. III-C.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan import RobustMiCUSaL
    >>> from polyspan.datasets import make_union_of_subspaces, mask_entries
    >>> data = make_union_of_subspaces((60, 60), n_features=30, subspace_dim=3, spread=0.3,
    ...                                noise=0.02, random_state=0)
    >>> X = mask_entries(data.X, 0.3, random_state=0)
    >>> model = RobustMiCUSaL(n_subspaces=2, subspace_dim=3, random_state=0).fit(X)
    >>> filled = model.impute(X)
    >>> bool(np.abs(filled - data.X_clean).mean() < 0.05)
    True
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        **CONSTRAINTS,
        "forget_factor": [Interval(Real, 0, 1, closed="right")],
        "solver": [StrOptions({"mm", "exact", "grouse"})],
        "affine": ["boolean"],
        "residual": [StrOptions({"plain", "loo"})],
        "fill_prior": [Interval(Real, 0, 1, closed="both")],
        "step_size": [Interval(Real, 0, None, closed="neither")],
        "n_sweeps": [Interval(Integral, 1, MOST_SWEEPS, closed="both")],
    }

    def __init__(
        self,
        n_subspaces: int = 3,
        subspace_dim: int | Sequence[int] = 1,
        *,
        lam: float | str = "auto",
        init: Any = "auto",
        solver: str = "mm",
        n_init: int | str = "auto",
        center: bool = False,
        affine: bool = False,
        residual: str = "plain",
        trim: float = 0.0,
        fill_prior: float = 0.02,
        step_size: float = 1.5,
        n_sweeps: int = 100,
        anneal_steps: int = 80,
        anneal_range: tuple[float, float] = (0.4, 0.05),
        max_iter: int = 300,
        tol: float = 1e-6,
        forget_factor: float = 1.0,
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
        self.affine = affine
        self.residual = residual
        self.trim = trim
        self.fill_prior = fill_prior
        self.step_size = step_size
        self.n_sweeps = n_sweeps
        self.anneal_steps = anneal_steps
        self.anneal_range = anneal_range
        self.max_iter = max_iter
        self.tol = tol
        self.forget_factor = forget_factor
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the subspaces from the observed entries.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples, with NaN for missing entries; never modified. Under scikit-learn's
            `array_api_dispatch` an array of PyTorch or CuPy is fitted on its own device
            (`solver="mm"` only).
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples: 2 is the sample twice, 0 is no sample. None: 1 for each.
            Not with `solver="grouse"`.

        Returns
        -------
        RobustMiCUSaL
            The fitted estimator.
        """
        plan, grouse = sized_plan(self), self.solver == "grouse"
        data = read(self, X, plan.subspace_dim, sample_weight, most_features(plan.rules))
        check_plan(plan, data)
        learn = self._sweeps(plan.rules) if grouse else None
        best, progress = learn_union(
            self, data, plan, y, learn=learn, prior=self._prior(), masked=grouse
        )
        progress.end()
        warn_about(best, plan, self.lam_)
        return self

    partial_fit = partial_fit

    _takes_missing = True
    _weighted = True
    """Whether steps of `solver="grouse"` are longer for samples with few observed entries."""

    def _sweeps(self, rules: Rules) -> Learn:
        # Imported here: numba takes a second to load.
        from polyspan.linear._solve.grouse import learn_by_grouse

        return one_by_one(
            partial(
                learn_by_grouse,
                rules=rules,
                step_size=float(self.step_size),
                n_sweeps=self.n_sweeps,
                weighted=self._weighted,
            )
        )

    @property
    def _any_namespace(self) -> bool:  # type: ignore[override]
        return self.solver != "grouse"  # which is compiled for NumPy
