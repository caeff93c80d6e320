"""Denoising: every patch is shrunk towards subspaces learned from the picture itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyspan._sklearn import Interval, check_parameters
from polyspan.images.groups import denoise_groups, halve, passes_for, with_coarse_scale
from polyspan.images.noise import planes_noise
from polyspan.images.planes import Canvas, Planes
from polyspan.images.presets import (
    SMALLEST_PICTURE,
    Preset,
    check_picture_size,
    check_settings,
    no_convergence_warnings,
    patch_side,
)
from polyspan.mixture import SubspaceMixture
from polyspan.mixture.prediction import gaussians_of, posterior_means
from polyspan.progress import progress_bar

_FAST = Preset(7, 2, 12, 32, 20000, 30.0, anneal_steps=8, max_iter=8)
PRESETS = {
    "fast": _FAST,
    "balanced": replace(_FAST, groups=True),
    "best": Preset(8, 1, 20, 48, 65536, 30.0, anneal_steps=15, max_iter=15, groups=True),
}
# The model is given this multiple of sigma: the largest eigenvalue of the covariance of pure noise,
# estimated from a finite number of patches, exceeds σ².
MARGIN = 1.04
#: Noise is strong from so many levels on, of 255 between the darkest and the brightest pixel.
LEVELS, STRONG = 255, 40


def denoise_image(
    image: Any,
    sigma: float | None = None,
    preset: str = "balanced",
    channel_axis: int | None = None,
    *,
    model: SubspaceMixture | None = None,
    random_state: Any = 0,
    progress: bool = False,
) -> np.ndarray:
    """Remove white noise from a picture.

    The picture is cut into overlapping patches. A mixture of low-rank Gaussians
    (`SubspaceMixture`) with a known noise is learned from them, and each patch is replaced by its
    posterior mean. Where patches overlap, their weighted mean is taken: patches with fewer degrees
    of freedom get more weight.

    Parameters
    ----------
    image : array-like of shape (height, width), or with channels
        16×16 pixels or more. Integers are divided by the largest value of their type, as in
        scikit-image; floats are not changed. Leave an alpha channel out.
    sigma : float, default=None
        Standard deviation of the noise, in the units of the result; None: the result of
        `estimate_noise`.
    preset : {"fast", "best"}, default="fast"
        "fast": 7×7 patches at every second pixel, 12 subspaces learned from at most 20000 patches.
        "best": 8×8 patches at every pixel, 20 subspaces learned from at most 65536 patches; it
        takes ten times as long.
    channel_axis : int or None, default=None
        Which axis holds the channels of a colour picture; None: a gray picture. The noise must be
        equally strong in all channels. Brightness and differences of channels are denoised
        separately.
    model : SubspaceMixture, default=None
        A mixture fitted to patches of one plane without noise, as `extract_patches` returns them.
        None: learned from the picture.
    random_state : int, RandomState instance or None, default=0
        Seed of the choice of patches to learn from, and of the starts.
    progress : bool, default=False
        Whether to show a progress bar; needs the package rich.

    Returns
    -------
    denoised : ndarray of the same shape
        float32 where the picture is float16 or float32, else float64.

    Notes
    -----
    Memory beyond the picture: a few float32 copies of it.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.images import denoise_image
    >>> rng = np.random.default_rng(0)
    >>> clean = (np.indices((48, 48)).sum(axis=0) % 16 < 8) * 1.0
    >>> noisy = clean + 0.3 * rng.standard_normal(clean.shape)
    >>> denoised = denoise_image(noisy, sigma=0.3)
    >>> bool(np.abs(denoised - clean).mean() < 0.5 * np.abs(noisy - clean).mean())
    True
    """
    check_parameters(
        "denoise_image",
        sigma=(sigma, [Interval(Real, 0, None, closed="left"), None]),
    )
    check_settings("denoise_image", PRESETS, preset, channel_axis, model, random_state, progress)
    settings = PRESETS[preset]
    side = settings.side if model is None else patch_side(model)
    picture = Planes.of(image, channel_axis)
    check_picture_size(picture.planes.shape[1:], side, learned=model is None)
    sigma = planes_noise(picture) if sigma is None else sigma / picture.scale
    if sigma == 0:
        return picture.to_image(picture.planes)
    rng = check_random_state(random_state)
    n_bands = Canvas(picture.planes[0], side, settings.step).n_bands
    with progress_bar(progress, len(picture.planes) * (n_bands + 1), "denoise") as tick:
        pilot = _pilot(picture.planes, sigma, settings, model, rng, tick)
    if settings.groups:
        pilot = _by_groups(picture.planes, pilot, sigma, settings, model, rng)
    return picture.to_image(pilot)


def _pilot(
    planes: np.ndarray,
    sigma: float,
    settings: Preset,
    model: SubspaceMixture | None,
    rng: np.random.RandomState,
    tick: Callable[[], None] = lambda: None,
) -> np.ndarray:
    """Return the planes denoised by the mixture."""
    side = settings.side if model is None else patch_side(model)
    canvases = (Canvas(plane, side, settings.step) for plane in planes)
    return np.stack([_denoise(canvas, sigma, settings, model, rng, tick) for canvas in canvases])


def _by_groups(
    planes: np.ndarray,
    pilot: np.ndarray,
    sigma: float,
    settings: Preset,
    model: SubspaceMixture | None,
    rng: np.random.RandomState,
) -> np.ndarray:
    """Denoise groups of similar patches, with strong noise from a coarse scale on."""
    levels = LEVELS * sigma * np.sqrt(len(planes)) / max(float(np.ptp(pilot[0])), sigma)
    small = halve(planes)
    if levels >= STRONG and min(small.shape[1:]) >= 2 * SMALLEST_PICTURE:
        coarse = _pilot(small, sigma / 2, settings, model, rng)
        coarse = denoise_groups(small, coarse, sigma / 2, passes_for(levels / 2))
        pilot = with_coarse_scale(pilot, coarse)
    return denoise_groups(planes, pilot, sigma, passes_for(levels))


def _denoise(
    canvas: Canvas,
    sigma: float,
    settings: Preset,
    model: SubspaceMixture | None,
    rng: np.random.RandomState,
    tick: Callable[[], None],
) -> np.ndarray:
    noise: float | None = sigma
    if model is None:
        patches, noise = canvas.sample(settings.n_train, rng), None
        dim = max(settings.subspace_dim, _directions_above(patches, sigma))
        model = replace(settings, subspace_dim=dim).model(len(patches), MARGIN * sigma, rng)
        with no_convergence_warnings():
            model.fit(patches)
    tick()
    gaussians = gaussians_of(model)
    for top, patches in canvas.bands():
        expected, certainty = posterior_means(patches, model.mean_, gaussians, noise)
        canvas.add(top, expected, certainty.astype(np.float32, copy=False))
        tick()
    return canvas.mean()


def _directions_above(patches: np.ndarray, sigma: float) -> int:
    """Return the number of principal directions of all patches with a variance above 2σ².

    With little noise these are nearly all, and a subspace of fewer dimensions would remove detail.
    """
    centred = patches - patches.mean(axis=0)
    variances = np.linalg.eigvalsh((centred.T @ centred).astype(np.float64) / len(patches))
    return int((variances > 2.0 * sigma**2).sum())
