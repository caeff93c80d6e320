"""K-subspaces: the linear model without its closeness term."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyspan.linear.micusal import MiCUSaL


class KSubspaces(MiCUSaL):
    r"""Assign samples to the nearest of several subspaces, and fit each to its samples.

    This is `MiCUSaL` with λ=∞, which leaves the closeness of the subspaces out. The classical
    algorithm is `init="random", solver="exact"`. `MiCUSaL` says more about the parameters.

    Parameters
    ----------
    n_subspaces : int, default=3
        Number of subspaces.
    subspace_dim : int or sequence of n_subspaces ints, default=1
        Dimension of each subspace, or one for each; with `affine` it may be 0.
    init : {"anneal", "random"} or array of shape (n_subspaces, n_features, subspace_dim), \
            default="anneal"
        Start: annealed bases, random bases, or the bases that an array gives.
    solver : {"power", "exact"}, default="power"
        "exact" takes the top eigenvectors in each update, "power" one power step towards them.
    n_init : int or "auto", default="auto"
        Number of starts, at most 1000. The one with the lowest objective is kept. "auto" is 8 for
        `init="random"` and for affine subspaces, 4 where dimensions differ and the start is
        annealed, and 1 otherwise.
    center : bool, default=True
        Subtract the mean of the samples. Affine subspaces do not depend on it.
    affine : bool, default=False
        Learn affine subspaces, which need not go through the mean. With `subspace_dim=0` this is
        k-means.
    residual : {"plain", "loo"}, default="plain"
        "plain" assigns by the residual. "loo" assigns by the residual to the subspace as it would
        be without the sample: for clusters with few samples.
    trim : float, default=0.0
        Fraction of the samples (by weight), at least 0 and below 1, with the largest residuals,
        which takes no part in the updates.
    anneal_steps : int, default=80
        Length of the cooling schedule, one power step each; at most 10 000.
    anneal_range : tuple of float, default=(0.4, 0.05)
        First and last temperature, in units of the mean squared residual to one pooled subspace.
    max_iter : int, default=300
        Most iterations of the alternation, after annealing if any.
    tol : float, default=1e-6
        The alternation has converged when an iteration lowers the objective by no more than this
        fraction of it.
    forget_factor : float, default=1.0
        For `partial_fit` only: factor for everything remembered, applied before each batch.
    random_state : int, RandomState instance or None, default=None
        Draws the starts. An int gives the same bits each time.
    n_jobs : int or None, default=None
        Starts of a large problem to run at once, in threads. Results do not depend on it.

    Attributes
    ----------
    objective_ : float
        Sum of squared residuals.
    bases_, subspace_dims_, mean_, anchors_, labels_, trimmed_, objective_history_, anneal_history_
        As for `MiCUSaL`.
    n_iter_, converged_, noise_variance_, subspace_distances_, n_features_in_, feature_names_in_
        As for `MiCUSaL`.

    Examples
    --------
    >>> from polyspan.baselines import KSubspaces
    >>> from polyspan.datasets import make_union_of_subspaces
    >>> from polyspan.metrics import clustering_error
    >>> data = make_union_of_subspaces((60, 60), n_features=30, subspace_dim=3, spread=0.5,
    ...                                noise=0.02, random_state=0)
    >>> model = KSubspaces(2, 3, random_state=0).fit(data.X)
    >>> clustering_error(data.labels, model.labels_)
    0.0
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        name: rule for name, rule in MiCUSaL._parameter_constraints.items() if name != "lam"
    }
    lam = float("inf")

    def __init__(
        self,
        n_subspaces: int = 3,
        subspace_dim: int | Sequence[int] = 1,
        *,
        init: Any = "anneal",
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
