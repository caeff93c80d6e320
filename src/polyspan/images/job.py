"""One call of `denoise_image`, after its parameters have been checked."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyspan.arrays import Array, as_array, moved_to, namespace, to_numpy, transpose, zeros
from polyspan.images import correlated
from polyspan.images.cascade import LEVELS, ROUNDS, Cascade, n_ticks, value_of_level
from polyspan.images.learned import FILE, learned
from polyspan.images.levels import NoiseLevel
from polyspan.images.noise import channels_noise, noise_of_channels
from polyspan.images.own import PRESETS, OwnMixture, sample_patches
from polyspan.images.planes import (
    as_channels,
    as_fractions,
    as_image,
    brightness_basis,
    mixed,
    mixed_in_place,
    without_offset,
)
from polyspan.images.presets import check_picture_size, patch_side
from polyspan.images.prior import PatchPrior, misfit
from polyspan.images.scales import halve
from polyspan.images.spectral import MOST_COLOURS, spectral_basis
from polyspan.images.stages import expected_variance
from polyspan.images.volumes import denoise_volume
from polyspan.inputs import require_numpy
from polyspan.mixture import SubspaceMixture
from polyspan.progress import progress_bar

#: A picture whose patches are farther from the prior than this is denoised with its own mixture.
#: Photographs are between .95 and 1.15 (one of grass, 1.2 to 1.4, is as good with either);
#: gratings, patterns and random pixels are above 1.35.
MOST_MISFIT = 1.3
#: So is one with less noise than this, in levels of 255. The stages are learned for 7 levels and
#: more: with one level their squared error is up to a tenth above that of the noise, with a third
#: of a level it is several times that. At 2 levels a mixture of its own is as good.
LEAST_LEVEL = 2.0
#: Estimates of the noise of colours that differ by more than this factor are taken as they are.
UNEQUAL = 1.3
#: Patches that are looked at to find out whether a picture is unlike photographs.
CHECKED_PATCHES = 4096
#: Noise, in units of the largest magnitude of a picture, that float32 does not show; and noise in
#: which no picture is seen, so that more of it would change nothing.
LEAST_NOISE, MOST_NOISE = 1e-8, 1e8


@dataclass(frozen=True)
class Split:
    """Planes with white noise of a picture, and how to get its channels back."""

    planes: Array
    basis: Array
    """(n_planes, n_channels): orthonormal rows."""
    mean: Array | None = None
    """(n_channels,): what is added to channels that are made of planes."""
    alike: bool = True
    """Whether similar patches of the first plane are similar in the others."""

    @classmethod
    def of(cls, channels: Array, sigma: float, *, own_basis: bool = False) -> Split:
        """Split a gray or colour picture, or one with many channels.

        With `own_basis` colours are not split into brightness and differences, but by what they
        have in common in this picture. Channels are overwritten by planes.
        """
        n = channels.shape[0]
        if n <= MOST_COLOURS:
            basis = moved_to(_principal(channels) if own_basis else brightness_basis(n), channels)
            return cls(channels if n == 1 else mixed_in_place(basis, channels), basis)
        cube = to_numpy(channels)
        found = spectral_basis(cube.reshape(n, cube.shape[1], -1), sigma)
        basis = moved_to(found.basis.astype(np.float32), channels)
        mean = moved_to(found.mean.astype(np.float32), channels)
        offset = namespace(channels).reshape(basis @ mean, (-1, *[1] * (channels.ndim - 1)))
        return cls(mixed(basis, channels) - offset, basis, mean, alike=False)

    def channels(self, planes: Array) -> Array:
        """Return the channels of planes, which are overwritten."""
        if self.basis.shape[1] == 1:
            return planes
        square = self.basis.shape[0] == self.basis.shape[1]
        out = (mixed_in_place if square else mixed)(transpose(self.basis), planes)
        if self.mean is not None:
            out += namespace(out).reshape(self.mean, (-1, *[1] * (out.ndim - 1)))
        return out

    def variances(self, planes: Array) -> Array:
        """Return the variances of channels, from those of planes with independent errors."""
        return mixed(transpose(self.basis) ** 2, planes)


def _principal(channels: Array) -> np.ndarray:
    """Return principal directions of the colours of means of 2×2 pixels, the strongest first."""
    xp = namespace(channels)
    flat = xp.reshape(channels, (channels.shape[0], -1, channels.shape[-1]))
    coarse = to_numpy(halve(flat)).reshape(channels.shape[0], -1).astype(np.float64)
    directions = np.linalg.eigh(np.atleast_2d(np.cov(coarse)))[1].T[::-1]
    # A picture and its negative directions are one: most of a direction is positive.
    return np.asarray(directions * np.where(directions.sum(axis=1) < 0, -1, 1)[:, None], np.float32)


def _largest(channels: Array) -> float:
    xp = namespace(channels)
    return float(xp.max(xp.abs(channels)))


def _is_unlike(plane: Array, sigma: float, prior: PatchPrior) -> bool:
    """Tell whether a picture is unlike those that the prior was learned from."""
    patches = sample_patches(plane, prior.side, CHECKED_PATCHES, np.random.RandomState(0))
    return misfit(transpose(patches), sigma**2, prior) > MOST_MISFIT


@dataclass(frozen=True)
class Job:
    """Everything but the picture and the level of its noise."""

    preset: str
    noise: str
    model: SubspaceMixture | str | None
    return_std: bool
    random_state: Any
    n_jobs: int
    progress: bool

    def denoise(
        self, image: Any, sigma: Any, channel_axis: int | None, stack_axis: int | None
    ) -> Any:
        """Return a denoised picture, with `return_std` also the expected error of each pixel."""
        given, offset = image, 0.0
        if not isinstance(self.model, SubspaceMixture):
            image, offset = without_offset(image)
        channels, dtype, scale = as_channels(image, channel_axis, stack_axis=stack_axis)
        side = patch_side(self.model) if isinstance(self.model, SubspaceMixture) else 8
        # Groups, and the stage that knows errors, have patches of their own.
        large = not isinstance(self.model, SubspaceMixture) or PRESETS[self.preset].groups
        check_picture_size(channels.shape[-2:], side, learned=large or self.return_std)
        level = self._level(sigma, channels, channel_axis, stack_axis, scale)
        still = level.noiseless
        if level.sigma <= LEAST_NOISE * _largest(channels):
            found, still = channels, namespace(channels).ones_like(channels, dtype=bool)
            variance = zeros(channels.shape, channels) if self.return_std else None
        else:
            found, variance, level = self._with_map(channels, level)
            found = level.uneven(found, channels)
        result = as_image(found, channel_axis, dtype, scale, stack_axis=stack_axis)
        if offset:
            result += offset
        if still is not None:
            # Pixels without noise are those given, to the last digit.
            xp = namespace(channels)
            whole = xp.astype(xp.broadcast_to(still, channels.shape), xp.float32)
            kept = as_image(whole, channel_axis, xp.float32, 1.0, stack_axis=stack_axis) > 0
            result = xp.where(kept, as_fractions(as_array(given), dtype), result)
        if variance is None:
            return result
        std = level.uneven(namespace(variance).sqrt(variance), zeros(channels.shape, channels))
        return result, as_image(std, channel_axis, dtype, scale, stack_axis=stack_axis)

    def _with_map(
        self, channels: Array, level: NoiseLevel
    ) -> tuple[Array, Array | None, NoiseLevel]:
        """Return even channels, their variances and their noise; two steps for a rough map."""
        if level.exact is None or channels.ndim > 3 or learned() is None:
            return *self._channels(channels, level), level
        found, variance = replace(self, return_std=True)._channels(channels, level)
        assert variance is not None
        assert level.relative is not None
        variance = variance * level.relative**2
        channels, level = level.pulled(channels, level.uneven(found), variance)
        return *self._channels(channels, level), level

    def _level(
        self,
        sigma: Any,
        channels: Array,
        channel_axis: int | None,
        stack_axis: int | None,
        scale: float,
    ) -> NoiseLevel:
        if sigma is not None:
            return NoiseLevel.of(sigma, channels, channel_axis, scale, stack_axis)
        flat = to_numpy(channels)
        # Slices of a volume side by side.
        flat = flat.reshape(len(flat), -1, flat.shape[-1])
        each = channels_noise(flat)
        # Slight noise is often the rounding of a picture that has none.
        seen = each > LEAST_LEVEL / LEVELS * np.ptp(flat, axis=(1, 2))
        if self.noise == "gaussian" and any(map(correlated.is_correlated, flat[seen])):
            warnings.warn(correlated.WARNING, stacklevel=5)
        if len(flat) > MOST_COLOURS or each.max() > UNEQUAL * each.min():
            return NoiseLevel.of(scale * each, channels, 0, scale)
        # One level for all is more exact: texture is weak in differences of colours.
        return NoiseLevel(noise_of_channels(flat))

    def _channels(self, channels: Array, level: NoiseLevel) -> tuple[Array, Array | None]:
        """Return denoised channels with even noise, and their variances."""
        sigma = min(level.sigma, MOST_NOISE * (_largest(channels) or math.inf))
        split = Split.of(level.even(channels), sigma, own_basis=level.relative is not None)
        denoise = self._denoise_planes if channels.ndim == 3 else self._denoise_volume
        if split.alike:
            planes, variance = denoise(split.planes, sigma)
        else:
            xp = namespace(channels)
            found = [
                denoise(split.planes[c : c + 1, ...], sigma) for c in range(split.basis.shape[0])
            ]
            planes = xp.concat([one for one, _ in found])
            variance = xp.concat([one for _, one in found]) if self.return_std else None
        return split.channels(planes), None if variance is None else split.variances(variance)

    def _denoise_planes(self, planes: Array, sigma: float) -> tuple[Array, Array | None]:
        units = [value_of_level(planes[c, ...], sigma) for c in range(planes.shape[0])]
        unit = units[0]
        if self.noise == "correlated":
            require_numpy('denoise_image with noise="correlated"', image=planes)
            spectra = np.stack([correlated.noise_autocovariance(plane) for plane in planes])
            rng = check_random_state(self.random_state)
            found = correlated.denoise_correlated(planes, spectra, sigma / unit, rng, self.n_jobs)
            return found, self._variance(found, sigma, units)
        usable = self.model is None and sigma >= LEAST_LEVEL * unit
        known = learned() if usable else None
        if known is not None and not _is_unlike(planes[0, ...], sigma, known.prior.scaled(unit)):
            with progress_bar(self.progress, n_ticks(self.preset), "denoise") as tick:
                rounds = ROUNDS[self.preset]
                cascade = Cascade(known, rounds, self.n_jobs, tick, variance=self.return_std)
                return cascade.denoise(planes, sigma, units)
        rng = check_random_state(self.random_state)
        given = self.model if isinstance(self.model, SubspaceMixture) else None
        own = OwnMixture(PRESETS[self.preset], given, rng, self.n_jobs)
        steps = own.n_ticks(planes.shape[0], sigma / unit)
        with progress_bar(self.progress, steps, "denoise") as tick:
            found = own.denoise(planes, sigma, unit, tick)
        return found, self._variance(found, sigma, units)

    def _denoise_volume(self, planes: Array, sigma: float) -> tuple[Array, Array | None]:
        require_numpy("denoise_image with stack_axis", image=planes)

        def pilot(slices: np.ndarray, sigma: float) -> np.ndarray:
            return np.asarray(self._denoise_planes(slices, sigma)[0])

        found = denoise_volume(
            planes, sigma, pilot, random_state=self.random_state, n_jobs=self.n_jobs
        )
        return found, None

    def _variance(self, planes: Array, sigma: float, units: list[float]) -> Array | None:
        """Return the variance that patches like those of the result have, where it is wanted."""
        if not self.return_std:
            return None
        known = learned()
        if known is None:
            raise ValueError(
                f"return_std=True needs the file {FILE} of polyspan.images, which is missing: "
                "install polyspan again, or leave return_std out"
            )
        each = []
        for c, unit in enumerate(units):
            stage = known.at(sigma / unit)[ROUNDS[self.preset]]
            prior = known.prior.scaled(unit)
            each.append(expected_variance(planes[c, ...], sigma, stage, prior, self.n_jobs))
        return namespace(planes).stack(each)
