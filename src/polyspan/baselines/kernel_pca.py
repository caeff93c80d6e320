"""Kernel PCA as a denoiser, with and without missing entries: kernel models of one subspace."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from polyspan.base.arrays import keep_freed_memory
from polyspan.base.checks import check_columns_observed
from polyspan.base.private_sklearn import Interval, StrOptions, fit_context
from polyspan.kernel.fitting import Data, learn, read
from polyspan.kernel.functions import KERNEL_CONSTRAINTS, kernel_of, matrix_of
from polyspan.kernel.gram import GramProblem
from polyspan.kernel.mckusal import MCKUSaL
from polyspan.kernel.options import KernelOptions, check_sizes
from polyspan.kernel.prediction import KernelUnion
from polyspan.kernel.robust import RobustMCKUSaL, incomplete_problem
from polyspan.model_selection.held_out import NoiseChoice, choose_by_noise

# How many numbers of components to try, in a geometric sequence.
N_SIZES = 24


def _one_subspace(subspace_dim: int, n_samples: int) -> KernelOptions:
    """Return the options of a fit of one subspace to all samples, which needs no iterations."""
    check_sizes(1, subspace_dim, n_samples)
    return KernelOptions(
        1, subspace_dim, 1.0, max_iter=2, tol=0.0, max_update_iter=1, update_tol=0.0
    )


def _learn(
    model: KernelUnion, data: Data, y: Any, problem: GramProblem, options: KernelOptions
) -> None:
    """Find the subspace, for which no random numbers are needed, and store it."""
    learn(model, data, y, problem, options, np.random.RandomState(0))
    model.n_iter_ = 1


class KernelPCADenoiser(KernelUnion):
    """Denoise by projection on the leading kernel principal components and pre-images.

    This is `MCKUSaL` with one subspace.

    Parameters
    ----------
    subspace_dim : int or "noise", default=1
        Number of components; "noise" chooses the number that denoises held-out
        samples best.
    kernel : {"rbf", "poly", "linear", "precomputed"} or callable, default="rbf"
        The kernel function. With "precomputed", `fit` takes the kernel matrix. A callable takes
        two samples and returns a number.
    gamma : float or None, default=None
        Positive factor in "rbf", exp(-gamma d²), and in "poly"; None: 1 / n_features.
    degree : float, default=3
        Positive exponent of "poly", (gamma ⟨x, y⟩ + coef0)^degree.
    coef0 : float, default=1
        Constant of "poly".
    preimage : {"closed_form", "fixed_point"}, default="closed_form"
        How `reconstruct` returns to the input space; "fixed_point" improves the closed form of
        the Gaussian kernel by iteration.
    noise : float or sequence of float, default=None
        For `subspace_dim="noise"`: expected squared norm of the noise of a new sample. It is added
        to held-out samples; several levels are averaged.
    n_splits : int, default=3
        Number of folds, each held out once.
    random_state : int, RandomState instance or None, default=None
        Seed of the folds and of the noise.

    Attributes
    ----------
    subspace_dim_ : int
        Number of components used.
    noise_choice_ : NoiseChoice
        With `subspace_dim="noise"`: every number tried and its error.
    members_, coefs_, labels_, objective_, subspace_distances_, n_features_in_, feature_names_in_
        As for `MCKUSaL`.

    Examples
    --------
    >>> from polyspan.baselines import KernelPCADenoiser
    >>> from sklearn.datasets import load_digits
    >>> X = load_digits(n_class=2).data / 60
    >>> KernelPCADenoiser(10, gamma=1.0).fit(X).reconstruct(X).shape
    (360, 64)
    >>> chosen = [KernelPCADenoiser("noise", noise=level, gamma=1.0, random_state=0).fit(X)
    ...           for level in (0.1, 1.0)]
    >>> chosen[0].subspace_dim_ > chosen[1].subspace_dim_
    True
    """

    _parameter_constraints = {  # noqa: RUF012 - scikit-learn reads it from the class
        **KERNEL_CONSTRAINTS,
        "preimage": MCKUSaL._parameter_constraints["preimage"],
        "subspace_dim": [Interval(Integral, 1, None, closed="left"), StrOptions({"noise"})],
        "noise": [Interval(Real, 0, None, closed="left"), "array-like", None],
        "n_splits": [Interval(Integral, 2, None, closed="left")],
        "random_state": ["random_state"],
    }
    subspace_dim_: int
    noise_choice_: NoiseChoice

    def __init__(
        self,
        subspace_dim: int | str = 1,
        *,
        kernel: Any = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        preimage: str = "closed_form",
        noise: Any = None,
        n_splits: int = 3,
        random_state: Any = None,
    ) -> None:
        self.subspace_dim = subspace_dim
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.preimage = preimage
        self.noise = noise
        self.n_splits = n_splits
        self.random_state = random_state

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components, and with `subspace_dim="noise"` also their number.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples; with `kernel="precomputed"` the kernel matrix.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            How often every sample counts, as for `MCKUSaL`; not with `subspace_dim="noise"`.

        Returns
        -------
        KernelPCADenoiser
            The fitted estimator.
        """
        keep_freed_memory()
        self.__dict__.pop("noise_choice_", None)
        data = read(self, X, sample_weight)
        if isinstance(self.subspace_dim, str):
            if data.weights is not None or data.kept is not None:
                raise ValueError(
                    'subspace_dim="noise" takes no sample_weight: give a number of components'
                )
            self.noise_choice_ = self._choose(data.X)
            self.subspace_dim_ = int(self.noise_choice_.best_params["subspace_dim"])
        else:
            self.subspace_dim_ = int(self.subspace_dim)
        options = _one_subspace(self.subspace_dim_, data.n_samples)
        kernel = kernel_of(self)
        G = matrix_of(kernel, data.X)
        _learn(self, data, y, GramProblem.of(G, kernel, data.X, **data.weighting), options)
        return self

    def _choose(self, X: np.ndarray) -> NoiseChoice:
        if self.noise is None:
            raise ValueError(
                'subspace_dim="noise" needs the noise that new samples will have: give noise, the '
                "expected squared norm of the noise of a sample"
            )
        if self.kernel == "precomputed":
            raise ValueError(
                'subspace_dim="noise" needs samples to add noise to, not a precomputed kernel: '
                "give a number of components"
            )
        if len(X) < 2 * self.n_splits:
            raise ValueError(
                f"n_samples={len(X)} is fewer than 2 * n_splits = {2 * self.n_splits}: give a "
                "number of components, or more samples"
            )
        # A fold leaves out at most ⌈n/n_splits⌉ samples; centring costs the others one dimension.
        most = len(X) - -(-len(X) // self.n_splits) - 1
        sizes = np.unique(np.geomspace(1, most, N_SIZES).round().astype(int)).tolist()
        single = clone(self).set_params(subspace_dim=1)
        return choose_by_noise(
            single, X, self.noise, {"subspace_dim": sizes}, n_splits=self.n_splits,
            random_state=self.random_state,
        )  # fmt: skip


class RobustKernelPCA(KernelUnion):
    """Kernel PCA from samples with missing entries (the paper's rKPCA).

    This is `RobustMCKUSaL` with one subspace.

    Parameters
    ----------
    subspace_dim : int, default=1
        Number of components.
    kernel : {"rbf", "poly", "linear"}, default="rbf"
        The kernel function: one of those whose values can be estimated.
    gamma : float or None, default=None
        Positive factor in "rbf", exp(-gamma d²), and in "poly"; None: 1 / n_features.
    degree : float, default=3
        Positive exponent of "poly", (gamma ⟨x, y⟩ + coef0)^degree.
    coef0 : float, default=1
        Constant of "poly".
    delta_min : float, default=1e-6
        Eigenvalues of the estimated kernel matrix that are zero are set to this fraction of the
        largest.
    preimage : {"corrected", "paper"}, default="corrected"
        How pre-images of "poly" and "linear" sum over observed entries, as for `RobustMCKUSaL`.

    Attributes
    ----------
    members_, coefs_, labels_, objective_, subspace_distances_, n_features_in_, feature_names_in_
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
        for name in ("subspace_dim", *KERNEL_CONSTRAINTS, "delta_min", "preimage")
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

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Find the components from the observed entries.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples, with NaN for missing entries.
        y : Ignored
            Not used, present for API consistency by convention.
        sample_weight : array-like of shape (n_samples,), default=None
            How often every sample counts, as for `RobustMCKUSaL`.

        Returns
        -------
        RobustKernelPCA
            The fitted estimator.
        """
        keep_freed_memory()
        data = read(self, X, sample_weight)
        check_columns_observed(np.isnan(data.X))
        options = _one_subspace(self.subspace_dim, data.n_samples)
        problem, options = incomplete_problem(self, data, options)
        _learn(self, data, y, problem, options)
        return self

    _takes_missing = True
