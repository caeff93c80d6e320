"""One call of `denoise_image`, after its parameters have been checked."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyspan.base.arrays import Array, moved_to, namespace, transpose, zeros
from polyspan.base.inputs import require_numpy
from polyspan.base.progress import Share
from polyspan.images import correlated
from polyspan.images.cascade import ROUNDS, Cascade, n_ticks, value_of_level
from polyspan.images.groups import passes_for
from polyspan.images.levels import LEAST_LEVEL, NoiseLevel, estimated_level
from polyspan.images.mixtures import (
    PRESETS,
    OwnMixture,
    PatchModel,
    check_picture_size,
    patch_side,
)
from polyspan.images.patches import sample_patches
from polyspan.images.planes import (
    as_channels,
    as_fractions,
    as_image,
    check_image,
    result_type,
    without_offset,
)
from polyspan.images.split import MOST_COLOURS, Split
from polyspan.images.stages import FILE, FIRST_STEP, PatchPrior, apply_stage, learned, misfit
from polyspan.images.volumes import denoise_volume
from polyspan.mixture import SubspaceMixture

#: Noise, in units of the largest magnitude of a picture, that float32 does not show; and noise in
#: which no picture is seen, so that more of it would change nothing.
LEAST_NOISE, MOST_NOISE = 1e-8, 1e8
#: A picture whose patches are farther from the prior than this is denoised with its own mixture.
#: Photographs are between .95 and 1.15 (one of grass, 1.2 to 1.4, is as good with either);
#: gratings, patterns and random pixels are above 1.35.
MOST_MISFIT = 1.3
#: Patches that are looked at to find out whether a picture is unlike photographs.
CHECKED_PATCHES = 4096
#: Noise that is added, in units of that of the picture.
ADDED = 0.3
#: At least this part of the variance of the noise is said to be left.
LEAST_LEFT = 1e-3


@dataclass(frozen=True)
class Job:
    """Everything but the picture and the level of its noise."""

    preset: str
    noise: str
    model: SubspaceMixture | PatchModel | str | None
    """A mixture in the units of the picture, or a model in those of its channels."""
    return_std: bool
    random_state: Any
    n_jobs: int

    def denoise(
        self,
        image: Any,
        sigma: Any,
        channel_axis: int | None,
        stack_axis: int | None,
        share: Share,
    ) -> Any:
        """Return a denoised picture, with `return_std` also the expected error of each pixel."""
        if self.return_std and learned() is None:
            raise ValueError(
                f"return_std=True needs the file {FILE} of polyspan.images, which is missing: "
                "install polyspan again, or leave return_std out"
            )
        given = check_image(image, channel_axis, stack_axis)
        mixture = self.model if isinstance(self.model, SubspaceMixture) else None
        # A model of the user knows patches with the offset.
        moved, offset = without_offset(given) if mixture is None else (given, 0.0)
        channels, _, scale = as_channels(moved, channel_axis, stack_axis=stack_axis)
        dtype = result_type(given)
        side = 8 if mixture is None else patch_side(mixture)
        # Groups, and the stage that knows errors, have patches of their own.
        large = mixture is None or PRESETS[self.preset].groups
        check_picture_size(channels.shape[-2:], side, learned=large or self.return_std)
        if sigma is None:
            level = estimated_level(channels, scale, warn=self.noise == "gaussian")
        else:
            level = NoiseLevel.of(sigma, channels, channel_axis, scale, stack_axis)
        job = self
        if mixture is not None:
            _check_units(level, channels)
            job = replace(self, model=PatchModel.of(mixture, scale))
        if level.sigma <= LEAST_NOISE * _largest(channels):
            same = as_fractions(given, dtype)
            return (same, zeros(same.shape, same)) if self.return_std else same
        found, variance, level = job._with_map(channels, level, share)
        result = as_image(level.uneven(found), channel_axis, dtype, scale, stack_axis)
        if offset:
            result += offset
        xp = namespace(channels)
        kept = None
        if level.noiseless is not None:
            whole = xp.astype(xp.broadcast_to(level.noiseless, channels.shape), xp.float32)
            kept = as_image(whole, channel_axis, xp.float32, 1.0, stack_axis) > 0
            # To the last digit.
            result = xp.where(kept, as_fractions(given, dtype), result)
        if variance is None:
            return result
        std = as_image(level.uneven(xp.sqrt(variance)), channel_axis, dtype, scale, stack_axis)
        return result, std if kept is None else xp.where(kept, xp.zeros_like(std), std)

    def _with_map(
        self, channels: Array, level: NoiseLevel, share: Share
    ) -> tuple[Array, Array | None, NoiseLevel]:
        """Return even channels, their variances and their noise; two steps for a rough map."""
        if level.exact is None or channels.ndim > 3 or learned() is None:
            return *self._even(channels, level, share), level
        half = share.of(2)
        found, variance = replace(self, return_std=True)._even(channels, level, half)
        assert variance is not None
        assert level.relative is not None
        variance = variance * level.relative**2
        channels, level = level.pulled(channels, level.uneven(found), variance)
        return *self._even(channels, level, half), level

    def _even(self, channels: Array, level: NoiseLevel, share: Share) -> tuple[Array, Array | None]:
        """Return denoised channels with even noise, and their variances."""
        sigma = min(level.sigma, MOST_NOISE * (_largest(channels) or math.inf))
        split = Split.of(level.even(channels), sigma, own_basis=level.relative is not None)
        denoise = self._planes if channels.ndim == 3 else self._volume
        if split.alike:
            planes, variance = denoise(split.planes, sigma, share)
        else:
            xp = namespace(channels)
            n = split.basis.shape[0]
            found = [denoise(split.planes[c : c + 1, ...], sigma, share.of(n)) for c in range(n)]
            planes = xp.concat([one for one, _ in found])
            variance = None if found[0][1] is None else xp.concat([one for _, one in found])
        return split.channels(planes), None if variance is None else split.variances(variance)

    def _planes(self, planes: Array, sigma: float, share: Share) -> tuple[Array, Array | None]:
        """Return denoised planes, and where it is wanted the variance of what is left."""
        units = [value_of_level(planes[c, ...], sigma) for c in range(planes.shape[0])]
        if self.noise == "correlated":
            return self._correlated(planes, sigma, units, share)
        usable = self.model is None and sigma >= LEAST_LEVEL * units[0]
        known = learned() if usable else None
        if known is None or _is_unlike(planes[0, ...], sigma, known.prior.scaled(units[0])):
            return self._own(planes, sigma, units, share)
        step = share.of(n_ticks(self.preset))
        cascade = Cascade(known, ROUNDS[self.preset], self.n_jobs, step, self.return_std)
        return cascade.denoise(planes, sigma, units)

    def _volume(self, planes: Array, sigma: float, share: Share) -> tuple[Array, None]:
        """Return denoised planes of volumes."""
        require_numpy("denoise_image with stack_axis", image=planes)

        def pilot(slices: np.ndarray, sigma: float) -> np.ndarray:
            return np.asarray(self._planes(slices, sigma, Share())[0])

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
        step = share.of(1 + self.return_std).of(len(planes) + len(passes_for(levels)))

        def denoise(noisy: Array, rng: np.random.RandomState) -> Array:
            return correlated.denoise_correlated(noisy, spectra, levels, rng, self.n_jobs, step)

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
            step = each.of(own.n_steps(noisy.shape[0], sigma / units[0]))
            return own.denoise(noisy, sigma, units[0], step)

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
            _, spread = apply_stage(
                [found[c, ...]], sigma, stage, prior, FIRST_STEP, self.n_jobs, correct=False
            )
            each.append(spread * (left[c] * sigma**2 / float(xp.mean(spread))))
        return found, xp.stack(each)


def _largest(channels: Array) -> float:
    xp = namespace(channels)
    return float(xp.max(xp.abs(channels)))


def _check_units(level: NoiseLevel, channels: Array) -> None:
    """Refuse a mixture of the user for planes that have other units than the picture."""
    if channels.shape[0] > MOST_COLOURS:
        raise ValueError(
            f"model= a mixture with {channels.shape[0]} channels: it knows patches of one "
            "plane, and what is denoised is mixtures of all channels; denoise the channels one "
            "by one, or leave model out"
        )
    if level.relative is not None:
        raise ValueError(
            "model= a mixture, and noise that is not equally strong everywhere: the picture "
            "would be divided by its noise, and the mixture knows patches in the units of the "
            "picture; give one number as sigma, denoise channels one by one, or leave model out"
        )


def _is_unlike(plane: Array, sigma: float, prior: PatchPrior) -> bool:
    """Tell whether a picture is unlike those that the prior was learned from."""
    patches = sample_patches(plane, (prior.side,) * 2, CHECKED_PATCHES, np.random.RandomState(0))
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
