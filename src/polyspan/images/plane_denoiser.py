"""Choose how planes with white noise of one strength are denoised, and do it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyspan.base.arrays import Array, moved_to, namespace, transpose
from polyspan.base.inputs import require_numpy
from polyspan.base.progress import Share
from polyspan.images import correlated
from polyspan.images.cascade import ROUNDS, Cascade, n_ticks, value_of_level
from polyspan.images.groups import passes_for
from polyspan.images.own import PRESETS, OwnMixture, sample_patches
from polyspan.images.presets import PatchModel
from polyspan.images.prior import PatchPrior, misfit
from polyspan.images.stages import expected_variance, learned
from polyspan.images.volumes import denoise_volume

#: A picture whose patches are farther from the prior than this is denoised with its own mixture.
#: Photographs are between .95 and 1.15 (one of grass, 1.2 to 1.4, is as good with either);
#: gratings, patterns and random pixels are above 1.35.
MOST_MISFIT = 1.3
#: So is one with less noise than this, in levels of 255. The stages are learned for 7 levels and
#: more: with one level their squared error is up to a tenth above that of the noise, with a third
#: of a level it is several times that. At 2 levels a mixture of its own is as good.
LEAST_LEVEL = 2.0
#: Patches that are looked at to find out whether a picture is unlike photographs.
CHECKED_PATCHES = 4096
#: Noise that is added, in units of that of the picture.
ADDED = 0.3
#: At least this part of the variance of the noise is said to be left.
LEAST_LEFT = 1e-3


@dataclass(frozen=True)
class PlaneDenoiser:
    """Denoise planes; the model is in their units."""

    preset: str
    noise: str
    model: PatchModel | str | None
    return_std: bool
    random_state: Any
    n_jobs: int

    def denoise(self, planes: Array, sigma: float, share: Share) -> tuple[Array, Array | None]:
        """Return denoised planes, and where it is wanted the variance of what is left."""
        units = [value_of_level(planes[c, ...], sigma) for c in range(planes.shape[0])]
        if self.noise == "correlated":
            return self._correlated(planes, sigma, units, share)
        usable = self.model is None and sigma >= LEAST_LEVEL * units[0]
        known = learned() if usable else None
        if known is None or _is_unlike(planes[0, ...], sigma, known.prior.scaled(units[0])):
            return self._own(planes, sigma, units, share)
        tick = share.ticks(n_ticks(self.preset))
        cascade = Cascade(known, ROUNDS[self.preset], self.n_jobs, tick, variance=self.return_std)
        return cascade.denoise(planes, sigma, units)

    def denoise_volume(self, planes: Array, sigma: float, share: Share) -> tuple[Array, None]:
        """Return denoised planes of volumes."""
        require_numpy("denoise_image with stack_axis", image=planes)

        def pilot(slices: np.ndarray, sigma: float) -> np.ndarray:
            return np.asarray(self.denoise(slices, sigma, Share())[0])

        found = denoise_volume(
            planes, sigma, pilot, random_state=self.random_state, n_jobs=self.n_jobs, share=share
        )
        return found, None

    def _correlated(
        self, planes: Array, sigma: float, units: list[float], share: Share
    ) -> tuple[Array, Array | None]:
        require_numpy('denoise_image with noise="correlated"', image=planes)
        spectra = np.stack([correlated.noise_autocovariance(plane) for plane in planes])
        levels = sigma / units[0]
        steps = len(planes) + len(passes_for(levels))
        each = share.of(1 + self.return_std)

        def denoise(noisy: Array, rng: np.random.RandomState) -> Array:
            tick = each.ticks(steps)
            return correlated.denoise_correlated(noisy, spectra, levels, rng, self.n_jobs, tick)

        sigmas = np.sqrt(spectra[:, correlated.REACH, correlated.REACH]).tolist()
        probe = np.random.RandomState(0)
        noise = [correlated.noise_like(one, planes.shape[1:], probe) for one in spectra]
        return self._probed(denoise, planes, np.stack(noise), sigmas, units)

    def _own(
        self, planes: Array, sigma: float, units: list[float], share: Share
    ) -> tuple[Array, Array | None]:
        """Denoise with a mixture that is given, or learned from the picture."""
        given = self.model if isinstance(self.model, PatchModel) else None
        each = share.of(1 + self.return_std)

        def denoise(noisy: Array, rng: np.random.RandomState) -> Array:
            own = OwnMixture(PRESETS[self.preset], given, rng, self.n_jobs)
            tick = each.ticks(own.n_ticks(noisy.shape[0], sigma / units[0]))
            return own.denoise(noisy, sigma, units[0], tick)

        noise = sigma * np.random.RandomState(0).standard_normal(planes.shape)
        return self._probed(denoise, planes, noise, [sigma] * len(units), units)

    def _probed(
        self,
        denoise: Callable[[Array, np.random.RandomState], Array],
        planes: Array,
        noise: np.ndarray,
        sigmas: list[float],
        units: list[float],
    ) -> tuple[Array, Array | None]:
        """Return denoised planes, and variances whose mean is measured with noise like theirs.

        How variances differ from pixel to pixel is that of patches like those of the result.
        """
        rng = check_random_state(self.random_state)
        # The same seed twice: what differs is due to the noise that is added.
        again = deepcopy(rng)
        found = denoise(planes, rng)
        known = learned()
        if not self.return_std or known is None:
            return found, None
        moved = moved_to(noise.astype(np.float32), planes)
        left = noise_left(lambda noisy: denoise(noisy, again), planes, found, moved)
        xp = namespace(planes)
        each = []
        for c, (sigma, unit) in enumerate(zip(sigmas, units, strict=True)):
            stage = known.at(sigma / unit)[ROUNDS[self.preset]]
            prior = known.prior.scaled(unit)
            spread = expected_variance(found[c, ...], sigma, stage, prior, self.n_jobs)
            each.append(spread * (left[c] * sigma**2 / float(xp.mean(spread))))
        return found, xp.stack(each)


def _is_unlike(plane: Array, sigma: float, prior: PatchPrior) -> bool:
    """Tell whether a picture is unlike those that the prior was learned from."""
    patches = sample_patches(plane, prior.side, CHECKED_PATCHES, np.random.RandomState(0))
    return misfit(transpose(patches), sigma**2, prior) > MOST_MISFIT


def noise_left(
    denoise: Callable[[Array], Array], planes: Array, found: Array, noise: Array
) -> list[float]:
    """Return the variance of the error of each plane, as a part of that of its noise.

    For the posterior mean f of a picture with Gaussian noise of the covariance C, the covariance of
    the error is that of the posterior, C times the Jacobian of f. Its trace is the mean of
    bᵀ(f(y + a·b) − f(y))/a over b ~ N(0, C) for small a; the many pixels of one b are enough.

    Parameters
    ----------
    denoise : callable
        The map f; the strength of the noise that it removes is fixed.
    planes, found : arrays of shape (n_planes, height, width)
        The noisy planes, and f of them.
    noise : array of the same shape
        The b: noise with the covariance of that of the planes.
    """
    xp = namespace(planes)
    response = (denoise(planes + ADDED * noise) - found) / ADDED
    parts = xp.sum(noise * response, axis=(1, 2)) / xp.sum(noise * noise, axis=(1, 2))
    return [max(float(parts[c]), LEAST_LEFT) for c in range(planes.shape[0])]
