"""MiCUSaL: metric-constrained union-of-subspaces learning from complete data (Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, Self

from sklearn.base import ClusterMixin

from polyspan.base.private_sklearn import Interval, StrOptions, fit_context
from polyspan.linear.fitting import learn_union, warn_about
from polyspan.linear.linear_union import LinearUnion
from polyspan.linear.options import CONSTRAINTS, check_plan, most_features, sized_plan
from polyspan.linear.reading import read
from polyspan.linear.streaming import partial_fit


class MiCUSaL(ClusterMixin, LinearUnion):  # type: ignore[misc]
    r"""Union of subspaces that are close to each other, learned from complete data.

    Minimises, over L subspaces of dimension s and the assignment of samples to them,

    .. math:: F_1 = \sum_{l \ne p} d_u^2(S_l, S_p) + \lambda \sum_i \|y_i - P_{S_{l_i}} y_i\|^2

    where y_i is the i-th sample minus the mean. A small λ keeps the subspaces together, λ=∞ is
    K-subspaces. λ weighs squared residuals, so a number depends on the scale of the data (X → aX
    needs λ → λ/a²). The default does not.

    Parameters
    ----------
    n_subspaces : int, default=3
        Number L of subspaces.
    subspace_dim : int or sequence of n_subspaces ints, default=1
        Dimension s of each; with `affine` it may be 0. A sequence gives every subspace its own
        s_l; the closeness of two of them is then :math:`\frac12 \|P_l - P_p\|^2`, which is d_u²
        where dimensions are equal. Which cluster gets which dimension is found by annealing, by
        plain residuals also with `residual="loo"`.
    lam : float or "auto", default="auto"
        Weight λ of the data against the closeness of the subspaces; `float("inf")` for
        K-subspaces. "auto" is 4 over the (weighted) mean squared norm of the centred samples. Of a
        sample with missing entries the norm is scaled up by the share of those observed.
    init : {"auto", "anneal", "random"} or array of shape (n_subspaces, n_features, \
            subspace_dim), default="auto"
        "anneal" starts from random bases and cools soft memberships until they are hard, which is
        best where subspaces are close to each other. "auto" also tries starts by k-flats++, which
        is best where they are far apart, and a spectral one for up to 1000 samples; the lowest
        objective is kept. With `residual="loo"` and with `trim` it is "anneal". "random" starts the
        alternation from random bases, as in the paper. An array gives the bases; with `affine` it
        has one column more, a point of the subspace. Where dimensions differ it has the layout of
        `bases_`; columns beyond a subspace's own dimension must be zero.
    solver : {"power", "exact"}, default="power"
        "exact" takes the top eigenvectors in each update, as in the paper; "power" one power step
        towards them, which is many times cheaper. The objective never rises with either.
    n_init : int or "auto", default="auto"
        Number of starts, at most 1000. The one with the lowest objective is kept. With
        `init="auto"` it is that of the starts by k-flats++ beside the annealed one; "auto" then is
        8, and more up to 16 starts in all where the two best disagree. Otherwise "auto" is 8 for
        `init="random"` and for affine subspaces, 4 where dimensions differ and the start is
        annealed, and 1 otherwise.
    center : bool, default=True
        Subtract the mean of the samples. Set it to False for subspaces that go through the origin.
        Affine subspaces do not depend on it.
    affine : bool, default=False
        Learn affine subspaces, which need not go through the mean. The closeness of two of them
        is then :math:`d_u^2(S_l, S_p) + \|b_l - b_p\|^2 / v`, with b_l the point of each that is
        nearest to the mean of the samples and v their mean squared distance from it. With
        `subspace_dim=0` they are points: k-means for λ=∞, and centres that are pulled together
        for smaller λ.
    residual : {"plain", "loo"}, default="plain"
        "plain" assigns by the residual, as the paper does. "loo" assigns by the residual to the
        subspace as it would be without the sample: for clusters with few samples (faces, say). It
        minimises no objective, and `labels_` may differ from `predict(X)`. Of a sample of weight 2
        one of the two copies is left out: with weights keep the largest at 1.
    trim : float, default=0.0
        Fraction of the samples (by weight), at least 0 and below 1, that takes no part in the
        updates: those with the largest residuals, chosen anew in every step. For data with
        outliers; give at least their fraction. Samples so far away that their residuals are lost
        in rounding are trimmed from the start. Not with `residual="loo"` or `partial_fit`.
    anneal_steps : int, default=80
        Length of the cooling schedule, one power step each; at most 10 000.
    anneal_range : tuple of float, default=(0.4, 0.05)
        First and last temperature, in units of the mean squared residual to one pooled subspace
        of dimension `subspace_dim`. Where dimensions differ, clusters are annealed with up to
        three of them in turn as the dimension of all subspaces.
    max_iter : int, default=300
        Most iterations of the alternation, after annealing if any.
    tol : float, default=1e-6
        The alternation has converged when an iteration lowers the objective by no more than this
        fraction of it.
    forget_factor : float, default=1.0
        For `partial_fit` only: factor for everything remembered, applied before each batch, so
        that a sample that came k batches ago counts `forget_factor ** k`. 1 forgets nothing; with
        f the memory is about 1 / (1 - f) batches long.
    random_state : int, RandomState instance or None, default=None
        Draws the starts. An int gives the same bits each time.
    n_jobs : int or None, default=None
        Starts of a large problem to run at once, in threads. All starts of a small problem run in
        one product anyway. Results do not depend on it.

    Attributes
    ----------
    bases_ : ndarray of shape (n_subspaces, n_features, subspace_dim)
        Orthonormal bases D_l. Where dimensions differ, there are as many columns as the largest
        has, and those beyond a subspace's own dimension are zero.
    subspace_dims_ : ndarray of shape (n_subspaces,)
        Dimension of every subspace.
    mean_ : ndarray of shape (n_features,)
        Mean that was subtracted; zero without centring.
    anchors_ : ndarray of shape (n_subspaces, n_features)
        With `affine=True`: the point of every subspace that is nearest to the mean of its samples
        (for λ=∞ that mean itself).
    labels_ : ndarray of shape (n_samples,)
        Subspace of every training sample.
    lam_ : float
        λ, as given or found.
    objective_ : float
        F1 at `labels_` and `bases_`; for λ=∞ the sum of squared residuals. With `trim` it is over
        the samples that take part.
    trimmed_ : ndarray of shape (n_samples,)
        With `trim` above 0: whether a sample took no part in the last update. `labels_` has its
        nearest subspace all the same.
    objective_history_ : ndarray
        F1 at the beginning of the alternation and after each of its iterations; never rises
        (with `residual="loo"` it may, and `objective_` is that of the best assignment). With
        `trim` and centring the alternation goes on about the mean of the samples that take part:
        then it is that about this final mean.
    anneal_history_ : ndarray
        Free energy at each temperature; empty where the best start was not annealed. Where
        dimensions differ, that of the common dimension that led to the result.
    n_iter_ : int
        Iterations of the alternation, the length of `objective_history_` minus 1.
    converged_ : bool
        Whether it ended by `tol` (with `residual="loo"`: or because no better assignment came
        for ten iterations). With `trim` and centring: whether the one about the final mean did.
    noise_variance_ : float
        Variance of the noise: the mean squared residual per remaining dimension.
    subspace_distances_ : ndarray of shape (n_subspaces, n_subspaces)
        d_u between the learned subspaces.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, when X has string names.

    Notes
    -----
    ``MiCUSaL(init="random", solver="exact", n_init=8)`` is Algorithm 1 as printed.
    With ``init="auto"`` starts are found on a sample of the rows where X has more than 10⁶ entries
    (at least 50 rows for every direction), and the two best go on with all rows.
    Memory beyond X: chunks of at most 64 MB, a few times L·m·s numbers per start, and a label
    and a norm per sample (with `residual="loo"` a weight per sample and subspace).

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
        **CONSTRAINTS,
        "forget_factor": [Interval(Real, 0, 1, closed="right")],
        "solver": [StrOptions({"power", "exact"})],
        "residual": [StrOptions({"plain", "loo"})],
        "affine": ["boolean"],
    }

    def __init__(
        self,
        n_subspaces: int = 3,
        subspace_dim: int | Sequence[int] = 1,
        *,
        lam: float | str = "auto",
        init: Any = "auto",
        solver: str = "power",
        n_init: int | str = "auto",
        center: bool = True,
        affine: bool = False,
        residual: str = "plain",
        trim: float = 0.0,
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
        self.anneal_steps = anneal_steps
        self.anneal_range = anneal_range
        self.max_iter = max_iter
        self.tol = tol
        self.forget_factor = forget_factor
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the subspaces.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples without missing entries; never modified. Under scikit-learn's
            `array_api_dispatch` an array of PyTorch or CuPy is fitted on its own device, and the
            fitted arrays are there too.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples: 2 is the sample twice, 0 is no sample. None: 1 for each.

        Returns
        -------
        MiCUSaL
            The fitted estimator.
        """
        plan = sized_plan(self)
        data = read(self, X, plan.subspace_dim, sample_weight, most_features(plan.rules))
        check_plan(plan, data)
        best, progress = learn_union(self, data, plan, y)
        progress.end()
        warn_about(best, plan, self.lam_)
        return self

    partial_fit = partial_fit
    _any_namespace = True
