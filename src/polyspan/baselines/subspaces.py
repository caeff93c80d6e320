"""K-subspaces: the linear model without its closeness term."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polyspan.union.micusal import MiCUSaL


class KSubspaces(MiCUSaL):
    """Assign samples to the nearest of several subspaces, and fit each to its samples.

    This is `MiCUSaL` with λ=∞, which leaves the closeness of the subspaces out.

    Parameters
    ----------
    n_subspaces : int, default=3
    subspace_dim : int or sequence of n_subspaces ints, default=1
    init, solver, n_init, center, affine, residual, trim, anneal_steps, anneal_range, max_iter, \
            tol, forget_factor
        As for `MiCUSaL`. The classical algorithm is `init="random", solver="exact"`.
    random_state, n_jobs
        As for `MiCUSaL`.

    Attributes
    ----------
    As for `MiCUSaL`; `objective_` is the sum of squared residuals.

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
