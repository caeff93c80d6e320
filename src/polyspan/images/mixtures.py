"""Mixtures of patches: what the presets say of them, given ones, and ones of the picture itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from polyspan.base.arrays import Array, moved_to, namespace, to_numpy, transpose
from polyspan.base.progress import Share
from polyspan.images.cascade import LEAST_TO_HALVE, passed
from polyspan.images.groups import STRONG, passes_for
from polyspan.images.patches import averaged, sample_patches
from polyspan.images.planes import brightness_of, halve, with_coarse_scale
from polyspan.mixture import SubspaceMixture
from polyspan.mixture._solve.gaussians import Gaussians
from polyspan.mixture.prediction import gaussians_of, posterior_means

#: Smallest number of rows and of columns of a picture from which a model is learned.
SMALLEST_PICTURE = 16
#: A model is given this multiple of sigma: the largest eigenvalue of the covariance of pure noise,
#: estimated from a finite number of patches, exceeds σ².
MARGIN = 1.04
#: Part of the largest variance that a mixture of patches without noise has in all directions.
CLEAN = 1e-6


@dataclass(frozen=True)
class Preset:
    """Settings of the patches and of the model."""

    side: int
    """Side of a patch, in pixels."""
    step: int
    """Pixels from one patch to the next."""
    n_subspaces: int
    """At most, as small pictures have fewer patches."""
    subspace_dim: int
    n_train: int
    """Largest number of patches to learn from."""
    closeness: float = 30.0
    anneal_steps: int = 8
    max_iter: int = 8
    groups: bool = False
    """Whether groups of similar patches are denoised after the model (denoising)."""
    patches_each: int = 300
    """Patches that a subspace is learned from, at least."""

    def fitted(
        self, patches: np.ndarray, noise: Any, rng: Any, sigma: float | None = None
    ) -> SubspaceMixture:
        """Return a model of patches, as rows; EM stops early on purpose.

        With little noise, `sigma`, nearly all principal directions have a variance above 2σ², and
        a subspace of fewer dimensions would remove detail: it has so many then.
        """
        n, m = patches.shape
        dim = self.subspace_dim
        if sigma is not None:
            centred = patches - patches.mean(axis=0)
            variances = np.linalg.eigvalsh((centred.T @ centred).astype(np.float64) / n)
            dim = max(dim, int((variances > 2.0 * sigma**2).sum()))
        model = SubspaceMixture(
            int(np.clip(n // self.patches_each, 1, self.n_subspaces)),
            min(dim, m - 1),
            closeness=self.closeness,
            noise=noise,
            init="anneal",
            anneal_steps=self.anneal_steps,
            max_iter=self.max_iter,
            tol=1e-4,
            random_state=rng,
        )
        # Smooth patches differ by less than a grey level: rounding is no floor of their noise.
        model._noise_floor = False
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            model.fit(patches)
        del model._noise_floor
        return model


FAST = Preset(7, 2, 12, 32, 20000)
PRESETS = {
    "fast": FAST,
    "balanced": replace(FAST, groups=True),
    "best": Preset(8, 1, 20, 48, 65536, anneal_steps=15, max_iter=15, groups=True),
}


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
        found = _mapped(gaussians_of(model), to_numpy)
        # Divided twice: the square of a unit may leave the range of numbers.
        gaussians = replace(
            found,
            means=found.means / unit,
            variances=found.variances / unit / unit,
            noise=found.noise / unit / unit,
        )
        return cls(patch_side(model), to_numpy(model.mean_) / unit, gaussians)


def _mapped(gaussians: Gaussians, change: Callable[[Array], Array]) -> Gaussians:
    """Return Gaussians all of whose arrays have been changed."""
    return Gaussians(*(change(getattr(gaussians, one.name)) for one in fields(Gaussians)))


@dataclass(frozen=True)
class OwnMixture:
    """Denoise with one mixture per plane."""

    settings: Preset
    model: PatchModel | None
    """A fitted model, in the units of the planes; None: learned from every plane."""
    rng: np.random.RandomState
    n_jobs: int

    def denoise(self, planes: Array, sigma: float, unit: float, step: Share | None = None) -> Array:
        """Return denoised planes; the value of one level of 255 is `unit`.

        `step` is the share of each of `n_steps`.
        """
        step = step or Share()
        estimate = self._pilot(planes, sigma, step)
        if not self.settings.groups:
            return estimate
        level = sigma / unit
        if level >= STRONG and min(planes.shape[1:]) >= LEAST_TO_HALVE:
            small = halve(planes)
            coarse = self._pilot(small, sigma / 2, Share())
            coarse = passed(small, coarse, sigma / 2, passes_for(level / 2), self.n_jobs)
            estimate = with_coarse_scale(estimate, coarse)
        return passed(planes, estimate, sigma, passes_for(level), self.n_jobs, step)

    def n_steps(self, n_planes: int, level: float) -> int:
        """Return the number of steps."""
        return n_planes + (len(passes_for(level)) if self.settings.groups else 0)

    def _pilot(self, planes: Array, sigma: float, step: Share) -> Array:
        found = []
        for c in range(planes.shape[0]):
            found.append(self._denoise(planes[c, ...], sigma))
            step.ticks(1)()
        return namespace(planes).stack(found)

    def _denoise(self, plane: Array, sigma: float) -> Array:
        model = self.model or PatchModel.of(self.learn(plane, sigma))
        noise = None if self.model is None else sigma
        gaussians = _mapped(model.gaussians, lambda array: moved_to(array, plane, plane.dtype))
        mean = moved_to(model.mean, plane, plane.dtype)

        def change(patches: list[Array]) -> tuple[Array, Array]:
            expected, certainty = posterior_means(transpose(patches[0]), mean, gaussians, noise)
            return transpose(expected), certainty[None, :]

        return averaged([plane], change, model.side, self.settings.step, self.n_jobs)[0]

    def learn(self, plane: Array, sigma: float) -> SubspaceMixture:
        """Return a mixture fitted to patches of a plane with noise."""
        block = (self.settings.side,) * 2
        # On the CPU: scikit-learn takes tensors only where its switch for them is on.
        patches = to_numpy(sample_patches(plane, block, self.settings.n_train, self.rng))
        return self.settings.fitted(patches, MARGIN * sigma, self.rng, sigma)


def learn_mixture(
    image: Any,
    sigma: float,
    preset: str = "balanced",
    channel_axis: int | None = None,
    random_state: Any = 0,
) -> SubspaceMixture:
    """Learn a mixture from the brightness of a picture, which `denoise_image` takes as `model`.

    It is one of patches without noise, in the units of the picture, so that it serves for other
    pictures with more noise or less.
    """
    plane = brightness_of(image, channel_axis)
    check_picture_size(plane.shape, PRESETS[preset].side, learned=True)
    rng = check_random_state(random_state)
    model = OwnMixture(PRESETS[preset], None, rng, 1).learn(plane, sigma)
    # What is known to be noise is no part of the picture: of it only rounding is left.
    least = CLEAN * (model.variances_.max() + float(model.noise_variances_.max()))
    model.noise_variances_ = np.full_like(model.noise_variances_, least)
    return model


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
