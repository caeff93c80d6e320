"""AdaptiveMiCUSaL: number and dimension of subspaces from upper bounds (Algorithm 2)."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import ClusterMixin

from polyspan.base.checks import refuse_lazy, warn_user
from polyspan.base.private_sklearn import Interval, StrOptions, fit_context
from polyspan.data.sliced import row_source
from polyspan.geometry.dimension import check_neighbours
from polyspan.linear._solve.alternation import Rules, one_by_one
from polyspan.linear._solve.merging import (
    learn_adaptively,
    most_frequent_size,
)
from polyspan.linear.fitting import learn_union, warn_about
from polyspan.linear.linear_union import LinearUnion
from polyspan.linear.options import CONSTRAINTS, in_words, n_kept, plan_of
from polyspan.linear.reading import read


class AdaptiveMiCUSaL(ClusterMixin, LinearUnion):  # type: ignore[misc]
    r"""Union of subspaces whose number and dimension are found from upper bounds.

    Algorithm 2 of the paper: alternate as MiCUSaL does and drop subspaces that no sample chose;
    merge the closest pair while its distance, divided by √s_max, is at most `merge_threshold`;
    estimate the dimension of the projected samples of each subspace by maximum likelihood; keep
    the largest; trim all bases to it and run MiCUSaL again.

    The estimate is low for more than a few dimensions: on the paper's synthetic data, of dimension
    13, it gives 9 to 11, and 5 subspaces come out only in narrow windows of the threshold.
    `polyspan.model_selection.choose_size` is the better way to both.

    Parameters
    ----------
    max_subspaces : int, default=3
        Upper bound L_max on the number of subspaces.
    max_dim : int, default=1
        Upper bound s_max on their dimension; lowered to n_features - 1 where it is larger.
    lam : float or "auto", default="auto"
        Weight λ of the data against the closeness of the subspaces, as for `MiCUSaL`.
    k1 : int, default=6
        Fewest neighbours in the estimate of the dimension; the paper's value.
    k2 : int, default=10
        Most neighbours in the estimate of the dimension; the paper's value.
    merge_threshold : float, default=0.08
        Threshold ε_min on the distance of two subspaces over √s_max, in [0, 1), up to which they
        are merged; the paper's value for its city scenes.
    init : {"random", "anneal"}, default="random"
        Start of Algorithm 2: random bases, or annealed ones as for `MiCUSaL`.
    n_init : int or "auto", default="auto"
        Number of starts; "auto" is 8 for "random", 1 for "anneal". Among the runs with the most
        frequent number of subspaces the lowest objective is kept.
    center : bool, default=True
        Subtract the mean (of the observed entries).
    fill_prior : float, default=0.02
        Weight ρ of the prior on filled-in entries, as for `RobustMiCUSaL`; only with missing
        entries.
    trim : float, default=0.0
        Fraction of the samples that takes no part in the updates, as for `MiCUSaL`.
    anneal_steps : int, default=80
        Length of the cooling schedule of `init="anneal"`.
    anneal_range : tuple of float, default=(0.4, 0.05)
        First and last temperature of `init="anneal"`, in the units of `MiCUSaL`.
    max_iter : int, default=300
        Most iterations of the alternation.
    tol : float, default=1e-4
        The alternation has converged when an iteration lowers the objective by no more than this
        fraction of it. Larger than for `MiCUSaL`: with more dimensions than the data have, the
        last ones follow noise and settle slowly.
    random_state : int, RandomState instance or None, default=None
        Draws the starts. An int gives the same bits each time.
    n_jobs : int or None, default=None
        Starts of a large problem to run at once, in threads. Results do not depend on it.

    Attributes
    ----------
    n_subspaces_ : int
        Number of subspaces found.
    subspace_dim_ : int
        Their dimension.
    merge_history_ : list of Merge
        What was pruned and merged, in order, with the distances of merged pairs.
    dimension_estimates_ : ndarray
        Estimated dimension of every subspace before trimming; NaN where a subspace had too few
        samples.
    bases_, mean_, labels_, objective_, objective_history_, n_iter_, converged_
        Of the final run, as for `MiCUSaL`; with `trim` also `trimmed_`.

    Examples
    --------
    >>> from polyspan import AdaptiveMiCUSaL
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> data = make_union_of_subspaces((80, 80, 80), n_features=20, subspace_dim=3, spread=0.8,
    ...                                noise=0.01, random_state=0)
    >>> model = AdaptiveMiCUSaL(max_subspaces=6, max_dim=4, merge_threshold=0.3, lam=20.0,
    ...                         random_state=0).fit(data.X)
    >>> model.n_subspaces_, model.subspace_dim_  # the estimate of the dimension runs low
    (3, 2)
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        **{k: rule for k, rule in CONSTRAINTS.items() if k not in ("n_subspaces", "subspace_dim")},
        "max_subspaces": [Interval(Integral, 1, None, closed="left")],
        "max_dim": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions({"anneal", "random"})],
        "k1": [Integral],
        "k2": [Integral],
        "merge_threshold": [Interval(Real, 0, 1, closed="left")],
        "fill_prior": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        max_subspaces: int = 3,
        max_dim: int = 1,
        *,
        lam: float | str = "auto",
        k1: int = 6,
        k2: int = 10,
        merge_threshold: float = 0.08,
        init: str = "random",
        n_init: int | str = "auto",
        center: bool = True,
        fill_prior: float = 0.02,
        trim: float = 0.0,
        anneal_steps: int = 80,
        anneal_range: tuple[float, float] = (0.4, 0.05),
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.max_subspaces = max_subspaces
        self.max_dim = max_dim
        self.lam = lam
        self.k1 = k1
        self.k2 = k2
        self.merge_threshold = merge_threshold
        self.init = init
        self.n_init = n_init
        self.center = center
        self.fill_prior = fill_prior
        self.trim = trim
        self.anneal_steps = anneal_steps
        self.anneal_range = anneal_range
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the number and the dimension of the subspaces, and learn them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples, with NaN for missing entries; never modified.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples: 2 is the sample twice, 0 is no sample. None: 1 for each.
            Dimensions are estimated from distinct samples, whatever their weights.

        Returns
        -------
        AdaptiveMiCUSaL
            The fitted estimator.
        """
        check_neighbours(self.k1, self.k2)
        refuse_lazy(self, X)
        if row_source(X) is not None:  # a file in chunks, which is read as a whole
            X = np.asarray(X)
        data = read(self, X, self.max_dim, sample_weight)
        dim = max(1, min(self.max_dim, data.n_features - 1))
        rules = Rules("exact", self.max_iter, float(self.tol), trim=float(self.trim))
        plan = plan_of(self, rules, self.max_subspaces, dim, affine=False)
        if data.n_features < 2:
            raise ValueError(f"n_features={data.n_features}: subspaces need at least 2 features")
        if n_kept(data.n_learned, rules.trim) < max(2, dim):
            raise ValueError(
                f"{in_words(data.n_learned, rules.trim)} is fewer than max_dim={self.max_dim}: "
                f"lower max_dim{' or trim' if rules.trim else ''} or give more samples"
            )
        threshold, k1, k2 = float(self.merge_threshold), self.k1, self.k2
        learn = one_by_one(
            partial(learn_adaptively, rules=rules, merge_threshold=threshold, k1=k1, k2=k2)
        )
        best, progress = learn_union(
            self, data, plan, y, learn=learn, choose=most_frequent_size, prior=self._prior()
        )
        self.n_subspaces_, _, self.subspace_dim_ = self.bases_.shape
        self.merge_history_ = list(best.merges)
        self.dimension_estimates_ = np.array(best.dimensions)
        progress.end()
        self._warn_about_neighbours()
        warn_about(best, plan, self.lam_)
        return self

    _takes_missing = True

    def _warn_about_neighbours(self) -> None:
        sizes = np.bincount(self.labels_[self.labels_ >= 0], minlength=self.n_subspaces_)
        small = [p for p, n in enumerate(sizes) if n <= self.k2]
        if small:
            warn_user(
                f"subspaces {small} have at most k2={self.k2} samples: fewer neighbours were used "
                "to estimate their dimension"
            )
