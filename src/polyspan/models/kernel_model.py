"""Fitting a union of subspaces in the feature space of a kernel, whatever its parameters."""

from __future__ import annotations

from typing import Any, Self

from sklearn.utils import check_random_state

from polyspan._sklearn import fit_context
from polyspan.arrays import Array, keep_freed_memory, namespace
from polyspan.kernels import Kernel
from polyspan.models.kernel_blocks import fit_low_rank_blocks
from polyspan.models.kernel_learner import KernelLearner
from polyspan.models.kernel_low_rank import fit_low_rank
from polyspan.models.kernel_starts import check_definite, check_kernel_matrix
from polyspan.models.kernel_unions import LowRankUnion, Position, centred_by
from polyspan.models.validation import count_missing, validated
from polyspan.sources import row_source


class KernelModel(KernelLearner):
    """What `MCKUSaL` does, for classes that fix some of its parameters."""

    kernel: Any
    gamma: float | None
    degree: float
    coef0: float
    kernel_params: dict[str, Any] | None
    low_rank: int | None
    random_state: Any

    @fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the subspaces.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            With `kernel="precomputed"` the kernel matrix, (n_samples, n_samples). `MCKUSaL` fits
            an array of PyTorch or CuPy on its own device, under scikit-learn's
            `array_api_dispatch`; for `init="spectral"` the distances go to the CPU, and labels
            come back.
        y : ignored

        Returns
        -------
        self : object
        """
        keep_freed_memory()
        source = row_source(X)
        if source is not None:
            fit_low_rank_blocks(self, source, y)
            return self
        X = self._validate(X, reset=True)
        self._check_sizes(X.shape[0])
        rng = check_random_state(self.random_state)
        plan = self._plan(X.shape[0])
        if self.low_rank is not None:
            fit_low_rank(self, X, y, plan, rng)
            return self
        kernel = self._kernel()
        G = check_kernel_matrix(X if kernel is None else kernel(X), self.kernel)
        if self._may_be_indefinite():
            check_definite(G)
        xp = namespace(G)
        known = {}
        if kernel is None:
            known["samples"] = xp.asarray(xp.linalg.diagonal(G), copy=True)
        self._learn(X, y, G, plan, rng, **known)
        return self

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Array:
        """Fit, and return the distance of every training sample to every subspace.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        distances : ndarray of shape (n_samples, n_subspaces)
        """
        self.fit(X, y, **fit_params)
        if row_source(X) is not None:
            return self.transform(X)
        X = self._validate(X, reset=False, method="transform")
        union = self._union
        if isinstance(union, LowRankUnion) or (union.kernel is not None and union.gram is None):
            return self._distances(X)
        # Only here is κ(z, z) of precomputed, or mended, values known: it is the diagonal.
        centred = centred_by(union.centerer, X if union.gram is None else union.gram)
        return Position(
            union.subspaces.energies(centred), namespace(centred).linalg.diagonal(centred)
        ).distances()

    def _may_be_indefinite(self) -> bool:
        """Tell whether the kernel is one whose matrices need not be positive semidefinite."""
        if callable(self.kernel) or self.kernel == "precomputed":
            return True
        return bool(self.kernel == "poly" and (self.coef0 < 0 or self.degree % 1))

    def _kernel(self) -> Kernel | None:
        if isinstance(self.kernel, str) and self.kernel == "precomputed":
            return None
        return Kernel(self.kernel, self.gamma, self.degree, self.coef0, self.kernel_params)

    def _validate(self, X: Any, *, reset: bool, method: str = "fit") -> Array:
        X = validated(
            self, X, reset=reset, method=method, fitted="subspace_distances_", double=True
        )
        missing = count_missing(X)
        if missing:
            help_ = (
                "a precomputed kernel must be complete."
                if self._kernel() is None
                else "use polyspan.RobustMCKUSaL, which estimates kernel values from the observed "
                "entries, or impute them first."
            )
            raise ValueError(
                f"Input X contains NaN: {missing} of {X.shape[0] * X.shape[1]} entries are "
                f"missing. {type(self).__name__} needs complete data; {help_}"
            )
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, str) and self.kernel == "precomputed"
        return tags
