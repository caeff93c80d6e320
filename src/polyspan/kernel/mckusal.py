"""MCKUSaL: a union of subspaces in the feature space of a kernel."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Self

from sklearn.base import ClusterMixin
from sklearn.utils import check_random_state

from polyspan.base.arrays import keep_freed_memory
from polyspan.base.private_sklearn import Interval, StrOptions, fit_context
from polyspan.data.sliced import row_source
from polyspan.kernel.fitting import learn, read
from polyspan.kernel.functions import KERNEL_CONSTRAINTS, kernel_of, matrix_of
from polyspan.kernel.gram import GramProblem
from polyspan.kernel.nystrom import NystromProblem
from polyspan.kernel.options import options_of
from polyspan.kernel.prediction import KernelUnion
from polyspan.linear.options import CONSTRAINTS


class MCKUSaL(ClusterMixin, KernelUnion):  # type: ignore[misc]
    r"""Learn subspaces of a kernel's feature space that are close to each other (MC-KUSaL).

    The objective is

    .. math:: F_3 = \sum_{l \ne p} d_u^2(S_l, S_p)
              + \lambda \sum_i \|\phi(y_i) - P_{l_i} \phi(y_i)\|^2

    in the feature space. Every subspace lies in the span of the samples that belong to it.
    Everything is computed from kernel values.

    Parameters
    ----------
    n_subspaces : int, default=3
        Number L of subspaces.
    subspace_dim : int, default=1
        Dimension s of each of them.
    kernel : {"rbf", "poly", "linear", "precomputed"} or callable, default="rbf"
        The kernel function. With "precomputed", `fit` takes the kernel matrix. A callable takes
        two samples and returns a number.
    gamma : float or None, default=None
        Positive factor in "rbf", exp(-gamma d²), and in "poly"; None: 1 / n_features. The paper's
        exp(-d²/c) has gamma = 1/c.
    degree : float, default=3
        Positive exponent of "poly", (gamma ⟨x, y⟩ + coef0)^degree.
    coef0 : float, default=1
        Constant of "poly".
    kernel_params : dict or None, default=None
        Further arguments of a callable `kernel`.
    lam : float or "auto", default="auto"
        Weight λ ≥ 0 of the residuals against the closeness; infinity leaves the closeness out.
        "auto" is 4 over the mean of the centred k(x, x); `lam_` holds it.
    init : {"spectral", "gkiop"} or array-like of n_samples labels, default="spectral"
        "spectral" clusters the graph of the `n_neighbors` nearest samples in the feature space.
        "gkiop" is the paper's Algorithm 4: greedy, from random samples.
    gkiop_seeds : array-like of n_subspaces samples or None, default=None
        Indices of the samples that GKIOP starts from; None: random samples.
    n_neighbors : int, default=10
        Neighbours of each sample in the graph of "spectral".
    n_init : int or "auto", default="auto"
        Number of starts, of which the lowest F3 is kept (with `residual="loo"` the lowest sum of
        leave-one-out residuals). "auto": 8 for "gkiop", else 1.
    residual : {"plain", "loo"}, default="plain"
        "plain" assigns by the residual, as the paper does. "loo" assigns by the residual to the
        (affine) subspace as it would be without the sample, and then finds the bases for these
        labels. It clusters better where clusters have few samples for their dimension, and needs
        a small `subspace_dim` (8 to 15). `labels_` can then differ from `predict(X)`.
    low_rank : int or None, default=None
        Number of landmarks of a Nyström map, which replaces the kernel matrix where there are too
        many samples for it. The subspaces are then no longer confined to the span of their own
        samples, which is a slightly different problem. `members_` are then the landmarks, and
        `coefs_` are the coefficients of the bases over the landmarks.
    preimage : {"closed_form", "fixed_point"}, default="closed_form"
        How `reconstruct` returns to the input space; "fixed_point" improves the closed form of
        the Gaussian kernel by iteration.
    max_iter : int, default=100
        Largest number of iterations. An iteration is an assignment and an update; one more
        assignment follows the last update.
    tol : float, default=1e-6
        Relative change of F3 at which a run has converged. It has also converged when no label
        changes.
    max_update_iter : int, default=50
        Largest number of iterations of the update loop between two assignments; with `low_rank`
        there is no such loop.
    update_tol : float, default=1e-6
        Relative change of F3 at which the update loop has converged.
    random_state : int, RandomState instance or None, default=None
        Seed of random samples and landmarks, and of spectral clustering.
    n_jobs : int or None, default=None
        Number of starts that run at the same time, in threads; not used with `low_rank`.

    Attributes
    ----------
    members_ : list of n_subspaces arrays
        c_l: indices of the samples that span subspace l.
    coefs_ : list of n_subspaces arrays
        E_l, with D_l = φ̃(Y_l)E_l orthonormal.
    labels_ : ndarray of shape (n_samples,)
        Index of the subspace of every training sample.
    objective_ : float
        F3 at the final labels and subspaces; for λ=∞ the sum of squared residuals.
    objective_history_ : ndarray
        F3 after every assignment.
    subspace_distances_ : ndarray of shape (n_subspaces, n_subspaces)
        d_u between the subspaces, in the feature space.
    runs_ : list of KernelRun
        F3, labels and `converged` of every start.
    n_iter_ : int
        Number of iterations of the best start.
    converged_ : bool
        Whether the best start converged before `max_iter`.
    n_features_in_ : int
        Number of features seen during `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, when X has string names.

    Notes
    -----
    Memory: a few times N² numbers, with `low_rank=r` a few times N·r.

    References
    ----------
    T. Wu and W. U. Bajwa, "Learning the nonlinear geometry of high-dimensional data: models and
    algorithms", IEEE Transactions on Signal Processing, 2015, Sec. IV.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan import MCKUSaL
    >>> from sklearn.datasets import make_circles
    >>> X, y = make_circles(120, factor=0.3, noise=0.03, random_state=0)
    >>> model = MCKUSaL(n_subspaces=2, subspace_dim=4, gamma=2.0, random_state=0).fit(X)
    >>> labels = model.labels_
    >>> bool(max((labels == y).mean(), (labels != y).mean()) > 0.99)
    True
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        **{
            name: CONSTRAINTS[name]
            for name in ("n_subspaces", "lam", "n_init", "max_iter", "tol", "random_state")
        },
        "subspace_dim": [Interval(Integral, 1, None, closed="left")],
        **KERNEL_CONSTRAINTS,
        "kernel_params": [dict, None],
        "init": [StrOptions({"spectral", "gkiop"}), "array-like"],
        "gkiop_seeds": ["array-like", None],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "residual": [StrOptions({"plain", "loo"})],
        "low_rank": [Interval(Integral, 1, None, closed="left"), None],
        "preimage": [StrOptions({"closed_form", "fixed_point"})],
        "max_update_iter": [Interval(Integral, 1, None, closed="left")],
        "update_tol": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        n_subspaces: int = 3,
        subspace_dim: int = 1,
        *,
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: dict[str, Any] | None = None,
        lam: float | str = "auto",
        init: Any = "spectral",
        gkiop_seeds: Any = None,
        n_neighbors: int = 10,
        n_init: int | str = "auto",
        residual: str = "plain",
        low_rank: int | None = None,
        preimage: str = "closed_form",
        max_iter: int = 100,
        tol: float = 1e-6,
        max_update_iter: int = 50,
        update_tol: float = 1e-6,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_subspaces = n_subspaces
        self.subspace_dim = subspace_dim
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.lam = lam
        self.init = init
        self.gkiop_seeds = gkiop_seeds
        self.n_neighbors = n_neighbors
        self.n_init = n_init
        self.residual = residual
        self.low_rank = low_rank
        self.preimage = preimage
        self.max_iter = max_iter
        self.tol = tol
        self.max_update_iter = max_update_iter
        self.update_tol = update_tol
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the subspaces.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples; with `kernel="precomputed"` the kernel matrix, (n_samples,
            n_samples). Under scikit-learn's `array_api_dispatch` an array of PyTorch or CuPy is
            fitted on its own device; for `init="spectral"` the distances are copied to the CPU,
            and the labels back. With `low_rank`, X can also be a dask array, or a Zarr or HDF5
            array, which is read in slices.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            How often every sample counts, in the mean of the feature space, the objective and the
            start: 2 is the sample twice, 0 is no sample (its label is then a prediction). For
            samples of different noise give 1/σ². Starts "spectral" and "gkiop" look at different
            samples, not at copies of one: repeated samples may then start elsewhere. With
            `residual="loo"` one copy of a sample is left out. With `low_rank`, landmarks are drawn
            with chances by their weights.

        Returns
        -------
        MCKUSaL
            The fitted estimator.
        """
        keep_freed_memory()
        source = row_source(X)
        if source is not None:
            self._check_needs()
        data = read(self, X, sample_weight, source)
        options = options_of(self, data.n_given, data.kept)
        rng = check_random_state(self.random_state)
        kernel = kernel_of(self, self.kernel_params)
        problem: GramProblem | NystromProblem
        if self.low_rank is not None:
            problem = NystromProblem.of(data, kernel, self.low_rank, options, rng)
        else:
            G = matrix_of(kernel, data.X)
            loo = options.leave_one_out
            problem = GramProblem.of(G, kernel, data.X, leave_one_out=loo, **data.weighting)
        learn(self, data, y, problem, options, rng)
        return self

    def _check_needs(self) -> None:
        """Raise an error for options that need all samples in memory."""
        if self.low_rank is None:
            raise ValueError(
                "rows in blocks have no kernel matrix, which would have a number for every pair of "
                "samples: set low_rank, or pass an array"
            )
        if self.residual != "plain":
            raise ValueError(
                f"residual={self.residual!r} needs all samples in memory: pass an array"
            )
        if not isinstance(self.init, str) or self.gkiop_seeds is not None:
            raise ValueError(
                "labels or seeds of single samples need all of them in memory: pass an array, or "
                "init='spectral' or 'gkiop' without gkiop_seeds"
            )

    _any_namespace = True
