"""Presets such as "fast" and "best", and the mixtures of patches that they define."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from polyspan.base.arrays import to_numpy
from polyspan.mixture import SubspaceMixture
from polyspan.mixture._solve.gaussians import Gaussians
from polyspan.mixture.prediction import gaussians_of

# Smallest number of rows and of columns of a picture from which a model is learned.
SMALLEST_PICTURE = 16


@dataclass(frozen=True)
class Preset:
    """Settings of the patches and of the model."""

    side: int
    """Side of a patch, in pixels."""
    step: int
    """Pixels from one patch to the next."""
    n_subspaces: int
    subspace_dim: int
    n_train: int
    """Largest number of patches to learn from."""
    closeness: float
    anneal_steps: int
    max_iter: int
    groups: bool = False
    """Whether groups of similar patches are denoised after the model (denoising)."""
    max_iter_holes: int = 0
    """Largest number of EM iterations on patches with missing pixels (inpainting)."""

    def model(self, n_patches: int, noise: Any, random_state: Any) -> SubspaceMixture:
        """Return an unfitted model for this many patches; small pictures get fewer subspaces."""
        return SubspaceMixture(
            int(np.clip(n_patches // 300, 1, self.n_subspaces)),
            min(self.subspace_dim, self.side**2 - 1),
            closeness=self.closeness,
            noise=noise,
            anneal_steps=self.anneal_steps,
            max_iter=self.max_iter,
            tol=1e-4,
            random_state=random_state,
        )


@dataclass(frozen=True)
class PatchModel:
    """What is needed of a mixture, as NumPy arrays."""

    side: int
    """Side of its square patches."""
    mean: np.ndarray
    """(side²,): means of the Gaussians are relative to it."""
    gaussians: Gaussians

    @classmethod
    def of(cls, model: SubspaceMixture, unit: float = 1.0) -> PatchModel:
        """Return the mixture of patches that were divided by `unit`.

        Very large and very small pictures are worked on in other units than they are given in, and
        a model of the user is in those of the picture.
        """
        side = patch_side(model)
        found = gaussians_of(model)
        # Divided twice: the square of a unit may leave the range of numbers.
        return cls(
            side,
            to_numpy(model.mean_) / unit,
            Gaussians(
                to_numpy(found.log_weights),
                to_numpy(found.means) / unit,
                to_numpy(found.bases),
                to_numpy(found.variances) / unit / unit,
                to_numpy(found.noise) / unit / unit,
            ),
        )


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads that `n_jobs` asks for; None: one."""
    if n_jobs == 0:
        raise ValueError("n_jobs=0: need a number of threads, -1 for all of them, or None for one")
    return int(effective_n_jobs(1 if n_jobs is None else n_jobs))


def check_picture_size(shape: tuple[int, ...], side: int, *, learned: bool) -> None:
    """Raise an error where a picture is smaller than a patch, or too small to learn from."""
    least = max(side, SMALLEST_PICTURE) if learned else side
    if min(shape) < least:
        raise ValueError(
            f"the image has {shape[0]} rows and {shape[1]} columns: patches of {side}×{side} "
            f"pixels need at least {least} of both"
        )


def patch_side(model: SubspaceMixture) -> int:
    """Return the side of the square patches that a given model was fitted to."""
    check_is_fitted(model)
    side: int = round(model.n_features_in_**0.5)
    if side * side != model.n_features_in_:
        raise ValueError(
            f"the model was fitted to {model.n_features_in_} features, which is no square patch "
            "of one plane"
        )
    return side


def no_convergence_warnings() -> AbstractContextManager[Any]:
    """Return a context without convergence warnings: presets stop EM early on purpose."""
    return warnings.catch_warnings(action="ignore", category=ConvergenceWarning)
