"""One call of `denoise_image`, after its parameters have been checked."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from polyspan.base.arrays import Array, namespace, to_numpy, zeros
from polyspan.base.progress import Share
from polyspan.images import correlated, smoothed
from polyspan.images.groups import LEVELS
from polyspan.images.levels import NoiseLevel
from polyspan.images.noise import channels_noise, planes_noise, sampled
from polyspan.images.own import PRESETS
from polyspan.images.plane_denoiser import LEAST_LEVEL, PlaneDenoiser
from polyspan.images.planes import (
    as_channels,
    as_fractions,
    as_image,
    check_image,
    result_type,
    without_offset,
)
from polyspan.images.presets import PatchModel, check_picture_size, patch_side
from polyspan.images.smoothed import are_halved, are_smoothed
from polyspan.images.split import MOST_COLOURS, Split
from polyspan.images.stages import FILE, learned
from polyspan.mixture import SubspaceMixture

#: Estimates of the noise of colours that differ by more than this factor are taken as they are.
UNEQUAL = 1.3
#: Noise, in units of the largest magnitude of a picture, that float32 does not show; and noise in
#: which no picture is seen, so that more of it would change nothing.
LEAST_NOISE, MOST_NOISE = 1e-8, 1e8


def _largest(channels: Array) -> float:
    xp = namespace(channels)
    return float(xp.max(xp.abs(channels)))


def _is_correlated(channels: Array, sigmas: np.ndarray) -> bool:
    """Tell whether the noise of a channel is correlated from pixel to pixel."""
    xp = namespace(channels)
    for c, sigma in enumerate(sigmas):
        plane = channels[c, ...]
        # Slight noise is often the rounding of a picture that has none.
        seen = sigma > LEAST_LEVEL / LEVELS * float(xp.max(plane) - xp.min(plane))
        if (seen and correlated.is_correlated(plane)) or correlated.is_soft(plane):
            return True
    return False


@dataclass(frozen=True)
class Job:
    """Everything but the picture and the level of its noise."""

    preset: str
    noise: str
    model: SubspaceMixture | str | None
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
        # A model of the user knows patches with the offset.
        keep = isinstance(self.model, SubspaceMixture)
        moved, offset = (given, 0.0) if keep else without_offset(given)
        channels, _, scale = as_channels(moved, channel_axis, stack_axis=stack_axis)
        dtype = result_type(given)
        side = patch_side(self.model) if isinstance(self.model, SubspaceMixture) else 8
        # Groups, and the stage that knows errors, have patches of their own.
        large = not isinstance(self.model, SubspaceMixture) or PRESETS[self.preset].groups
        check_picture_size(channels.shape[-2:], side, learned=large or self.return_std)
        level = self._level(sigma, channels, channel_axis, stack_axis, scale)
        self._check_units(level, channels)
        still = level.noiseless
        if level.sigma <= LEAST_NOISE * _largest(channels):
            found, still = channels, namespace(channels).ones_like(channels, dtype=bool)
            variance = zeros(channels.shape, channels) if self.return_std else None
        else:
            found, variance, level = _with_map(self._denoiser(scale), channels, level, share)
            found = level.uneven(found, channels)
        result = as_image(found, channel_axis, dtype, scale, stack_axis=stack_axis)
        if offset:
            result += offset
        if still is not None:
            # Pixels without noise are those given, to the last digit.
            xp = namespace(channels)
            whole = xp.astype(xp.broadcast_to(still, channels.shape), xp.float32)
            kept = as_image(whole, channel_axis, xp.float32, 1.0, stack_axis=stack_axis) > 0
            result = xp.where(kept, as_fractions(given, dtype), result)
        if variance is None:
            return result
        std = level.uneven(namespace(variance).sqrt(variance), zeros(channels.shape, channels))
        return result, as_image(std, channel_axis, dtype, scale, stack_axis=stack_axis)

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
        n, *_, width = channels.shape
        # Slices of a volume side by side.
        flat = namespace(channels).reshape(channels, (n, -1, width))
        small, step = sampled(flat)
        small = to_numpy(small)
        each = channels_noise(small, step)
        warned = self.noise == "gaussian" and _is_correlated(flat, each)
        if warned:
            warnings.warn(correlated.WARNING, stacklevel=5)
        if n > MOST_COLOURS:
            return NoiseLevel.of(scale * each, channels, 0, scale)
        planes = planes_noise(small, step)
        smooth = are_smoothed(small, planes, each)
        if smooth and are_halved(flat):
            return NoiseLevel(float(planes[0]))
        if each.max() > UNEQUAL * each.min():
            return NoiseLevel.of(scale * each, channels, 0, scale)
        if smooth and self.noise == "gaussian" and not warned:
            warnings.warn(smoothed.WARNING, stacklevel=5)
        # One level for all is more exact: texture is weak in differences of colours.
        return NoiseLevel(float(np.median(planes)))

    def _check_units(self, level: NoiseLevel, channels: Array) -> None:
        """Refuse a mixture of the user for planes that have other units than the picture."""
        if not isinstance(self.model, SubspaceMixture):
            return
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

    def _denoiser(self, scale: float) -> PlaneDenoiser:
        model = self.model
        given = PatchModel.of(model, scale) if isinstance(model, SubspaceMixture) else model
        return PlaneDenoiser(
            self.preset, self.noise, given, self.return_std, self.random_state, self.n_jobs
        )


def _with_map(
    denoiser: PlaneDenoiser, channels: Array, level: NoiseLevel, share: Share
) -> tuple[Array, Array | None, NoiseLevel]:
    """Return even channels, their variances and their noise; two steps for a rough map."""
    if level.exact is None or channels.ndim > 3 or learned() is None:
        return *_denoised(denoiser, channels, level, share), level
    half = share.of(2)
    found, variance = _denoised(replace(denoiser, return_std=True), channels, level, half)
    assert variance is not None
    assert level.relative is not None
    variance = variance * level.relative**2
    channels, level = level.pulled(channels, level.uneven(found), variance)
    return *_denoised(denoiser, channels, level, half), level


def _denoised(
    denoiser: PlaneDenoiser, channels: Array, level: NoiseLevel, share: Share
) -> tuple[Array, Array | None]:
    """Return denoised channels with even noise, and their variances."""
    sigma = min(level.sigma, MOST_NOISE * (_largest(channels) or math.inf))
    split = Split.of(level.even(channels), sigma, own_basis=level.relative is not None)
    denoise = denoiser.denoise if channels.ndim == 3 else denoiser.denoise_volume
    if split.alike:
        planes, variance = denoise(split.planes, sigma, share)
    else:
        xp = namespace(channels)
        n = split.basis.shape[0]
        found = [denoise(split.planes[c : c + 1, ...], sigma, share.of(n)) for c in range(n)]
        planes = xp.concat([one for one, _ in found])
        variance = None if found[0][1] is None else xp.concat([one for _, one in found])
    return split.channels(planes), None if variance is None else split.variances(variance)
