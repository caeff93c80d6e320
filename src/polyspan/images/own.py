"""Denoise planes with a mixture of subspaces: one that is given, or learned from the picture."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyspan.base.arrays import Array, moved_to, namespace, to_numpy, transpose
from polyspan.images.cascade import LEAST_TO_HALVE, Tick, passed
from polyspan.images.groups import STRONG, passes_for
from polyspan.images.patches import averaged
from polyspan.images.planes import brightness_of, halve, with_coarse_scale
from polyspan.images.presets import (
    PatchModel,
    Preset,
    check_picture_size,
    no_convergence_warnings,
)
from polyspan.mixture import SubspaceMixture
from polyspan.mixture._solve.gaussians import Gaussians
from polyspan.mixture.prediction import posterior_means

_FAST = Preset(7, 2, 12, 32, 20000, 30.0, anneal_steps=8, max_iter=8)
PRESETS = {
    "fast": _FAST,
    "balanced": replace(_FAST, groups=True),
    "best": Preset(8, 1, 20, 48, 65536, 30.0, anneal_steps=15, max_iter=15, groups=True),
}
# The model is given this multiple of sigma: the largest eigenvalue of the covariance of pure noise,
# estimated from a finite number of patches, exceeds σ².
MARGIN = 1.04
# Part of the largest variance that a mixture of patches without noise has in all directions.
CLEAN = 1e-6


@dataclass(frozen=True)
class OwnMixture:
    """Denoise with one mixture per plane."""

    settings: Preset
    model: PatchModel | None
    """A fitted model, in the units of the planes; None: learned from every plane."""
    rng: np.random.RandomState
    n_jobs: int

    def denoise(self, planes: Array, sigma: float, unit: float, tick: Tick = lambda: None) -> Array:
        """Return denoised planes; the value of one level of 255 is `unit`."""
        estimate = self._pilot(planes, sigma, tick)
        if not self.settings.groups:
            return estimate
        level = sigma / unit
        if level >= STRONG and min(planes.shape[1:]) >= LEAST_TO_HALVE:
            small = halve(planes)
            coarse = self._pilot(small, sigma / 2)
            coarse = passed(small, coarse, sigma / 2, passes_for(level / 2), self.n_jobs)
            estimate = with_coarse_scale(estimate, coarse)
        return passed(planes, estimate, sigma, passes_for(level), self.n_jobs, tick)

    def n_ticks(self, n_planes: int, level: float) -> int:
        """Return how often `tick` is called."""
        return n_planes + (len(passes_for(level)) if self.settings.groups else 0)

    def _pilot(self, planes: Array, sigma: float, tick: Tick = lambda: None) -> Array:
        found = []
        for c in range(planes.shape[0]):
            found.append(self._denoise(planes[c, ...], sigma))
            tick()
        return namespace(planes).stack(found)

    def _denoise(self, plane: Array, sigma: float) -> Array:
        model, noise = self.model, sigma if self.model is not None else None
        if model is None:
            model = PatchModel.of(self.learn(plane, sigma))
        gaussians = _moved(model.gaussians, plane)
        mean = moved_to(model.mean, plane, plane.dtype)

        def change(patches: list[Array]) -> tuple[Array, Array]:
            expected, certainty = posterior_means(transpose(patches[0]), mean, gaussians, noise)
            return transpose(expected), certainty[None, :]

        return averaged([plane], change, model.side, self.settings.step, self.n_jobs)[0]

    def learn(self, plane: Array, sigma: float) -> SubspaceMixture:
        """Return a mixture fitted to patches of a plane with noise."""
        patches = sample_patches(plane, self.settings.side, self.settings.n_train, self.rng)
        dim = max(self.settings.subspace_dim, _directions_above(patches, sigma))
        settings = replace(self.settings, subspace_dim=dim)
        model = settings.model(patches.shape[0], MARGIN * sigma, self.rng)
        with no_convergence_warnings():
            # On the CPU: scikit-learn takes tensors only where its switch for them is on.
            model.fit(to_numpy(patches))
        return model


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


def sample_patches(plane: Array, side: int, n: int, rng: np.random.RandomState) -> Array:
    """Return n patches at random places as rows, or all patches where there are at most n."""
    xp = namespace(plane)
    height, width = plane.shape
    rows, columns = height - side + 1, width - side + 1
    chosen = np.arange(rows * columns)
    if len(chosen) > n:
        chosen = rng.choice(len(chosen), n, replace=False)
    corners = chosen // columns * width + chosen % columns
    inside = (np.arange(side)[:, None] * width + np.arange(side)).ravel()
    pixels = moved_to((corners[:, None] + inside).ravel(), plane, xp.int64)
    return xp.reshape(xp.take(xp.reshape(plane, (-1,)), pixels), (len(chosen), side**2))


def _directions_above(patches: Array, sigma: float) -> int:
    """Return the number of principal directions of all patches with a variance above 2σ².

    With little noise these are nearly all, and a subspace of fewer dimensions would remove detail.
    """
    xp = namespace(patches)
    centred = patches - xp.mean(patches, axis=0)
    covariance = to_numpy(transpose(centred) @ centred).astype(np.float64) / patches.shape[0]
    return int((np.linalg.eigvalsh(covariance) > 2.0 * sigma**2).sum())


def _moved(gaussians: Gaussians, like: Array) -> Gaussians:
    """Return Gaussians in the namespace of a plane, with its precision."""
    return Gaussians(
        **{
            field.name: moved_to(getattr(gaussians, field.name), like, like.dtype)
            for field in fields(gaussians)
        }
    )
