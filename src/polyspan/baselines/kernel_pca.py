"""Kernel PCA as a denoiser, with and without missing entries: kernel models of one subspace."""

from __future__ import annotations

from typing import Any

import numpy as np

from polyspan.models.kernel_model import KernelModel
from polyspan.models.mckusal import MCKUSaL
from polyspan.models.robust_mckusal import RobustKernelModel, RobustMCKUSaL

_KERNEL_PARAMETERS = ("kernel", "gamma", "degree", "coef0")


class _OneSubspace:
    """One subspace holds all samples and is found at once: nothing to choose but its dimension."""

    n_subspaces = 1
    lam = 1.0
    init = "spectral"
    gkiop_seeds = None
    n_neighbors = 1
    n_init: int | str = 1
    residual = "plain"
    max_iter, tol, max_update_iter, update_tol = 2, 0.0, 1, 0.0
    random_state: Any = 0
    n_jobs: int | None = None

    def _store(self, solution: Any, distances: np.ndarray) -> None:
        super()._store(solution, distances)  # type: ignore[misc]
        self.n_iter_ = 1


class KernelPCADenoiser(_OneSubspace, KernelModel):
    """Project on the leading kernel principal components and return by a pre-image.

    `MCKUSaL` with one subspace. `choose_by_noise` chooses `subspace_dim` where the noise is known.

    Parameters
    ----------
    subspace_dim : int, default=1
        Number of components.
    kernel, gamma, degree, coef0, preimage
        As for `MCKUSaL`.

    Attributes
    ----------
    As for `MCKUSaL`.

    Examples
    --------
    >>> from polyspan.baselines import KernelPCADenoiser
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits(n_class=2).data / 60
    >>> KernelPCADenoiser(10, gamma=1.0).fit(X).reconstruct(X).shape
    (360, 64)
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        name: MCKUSaL._parameter_constraints[name]
        for name in ("subspace_dim", *_KERNEL_PARAMETERS, "preimage")
    }
    low_rank = None
    kernel_params = None

    def __init__(
        self,
        subspace_dim: int = 1,
        *,
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        preimage: str = "closed_form",
    ) -> None:
        self.subspace_dim = subspace_dim
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.preimage = preimage


class RobustKernelPCA(_OneSubspace, RobustKernelModel):
    """Kernel PCA from samples with missing entries (the paper's rKPCA).

    `RobustMCKUSaL` with one subspace.

    Parameters
    ----------
    subspace_dim : int, default=1
        Number of components.
    kernel, gamma, degree, coef0, delta_min, preimage
        As for `RobustMCKUSaL`.

    Attributes
    ----------
    As for `MCKUSaL`.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.baselines import RobustKernelPCA
    >>> from polyspan.datasets import mask_entries
    >>> from sklearn.datasets import load_digits
    >>> X = mask_entries(load_digits(n_class=2).data / 60, 0.1, random_state=0)
    >>> bool(np.isfinite(RobustKernelPCA(10, gamma=1.0).fit(X).impute(X)).all())
    True
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        name: RobustMCKUSaL._parameter_constraints[name]
        for name in ("subspace_dim", *_KERNEL_PARAMETERS, "delta_min", "preimage")
    }

    def __init__(
        self,
        subspace_dim: int = 1,
        *,
        kernel: str = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        delta_min: float = 1e-6,
        preimage: str = "corrected",
    ) -> None:
        self.subspace_dim = subspace_dim
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.delta_min = delta_min
        self.preimage = preimage
