"""Denoising: every patch shrunk towards subspaces that were learned from the picture itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyspan._sklearn import Interval, check_parameters
from polyspan.images.noise import noise_of
from polyspan.images.planes import Canvas, Planes
from polyspan.images.presets import (
    Preset,
    check_settings,
    check_side,
    no_convergence_warnings,
    side_of,
)
from polyspan.mixture import SubspaceMixture
from polyspan.mixture.prediction import gaussians_of, posterior_means
from polyspan.progress import progress_bar

PRESETS = {
    "fast": Preset(7, 2, 12, 32, 20000, 30.0, anneal_steps=8, max_iter=8),
    "best": Preset(8, 1, 20, 48, 65536, 30.0, anneal_steps=15, max_iter=15),
}
# The largest eigenvalue of pure noise, seen in a finite number of patches, exceeds σ²: what is
# taken for noise is a little more than the noise.
MARGIN = 1.04


def denoise_image(
    image: Any,
    sigma: float | None = None,
    preset: str = "fast",
    channel_axis: int | None = None,
    *,
    model: SubspaceMixture | None = None,
    random_state: Any = 0,
    progress: bool = False,
) -> np.ndarray:
    """Remove white noise from a picture.

    Overlapping patches are given to a mixture of low-rank Gaussians (`SubspaceMixture`) that was
    learned from them, with the noise known; each becomes its posterior mean; where patches
    overlap, their mean is taken, weighted by how few directions each was left.

    Parameters
    ----------
    image : array-like of shape (height, width), or with channels
        16×16 pixels or more. Integers count as fractions of the largest of their type, as in
        scikit-image; floats are taken as they are. Leave an alpha channel out.
    sigma : float, default=None
        Standard deviation of the noise, in the units of the result. None: `estimate_noise`.
    preset : {"fast", "best"}, default="fast"
        "fast": 7×7 patches, 12 subspaces learned from 20000 of them, every second pixel; "best":
        8×8, 20 subspaces from all (up to 65536), every pixel: ten times the time.
    channel_axis : int or None, default=None
        Which axis holds the channels of a colour picture. Noise must be alike in all channels;
        brightness and differences of channels are denoised one after the other.
    model : SubspaceMixture, default=None
        Learned from patches without noise, of one plane, as `extract_patches` returns them. None:
        learned from the picture.
    random_state : int, RandomState instance or None, default=0
        Draws the patches to learn from, and the starts.
    progress : bool, default=False
        Show a bar; needs rich.

    Returns
    -------
    denoised : ndarray of the same shape
        float32 for float16 and float32, else float64.

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
    check_settings("denoise_image", preset, channel_axis, model, random_state, progress)
    settings = PRESETS[preset]
    side = settings.side if model is None else side_of(model)
    picture = Planes.of(image, channel_axis)
    check_side(picture.planes.shape[1:], side, learned=model is None)
    sigma = noise_of(picture) if sigma is None else sigma / picture.scale
    if sigma == 0:
        return picture.put_back(picture.planes)
    rng = check_random_state(random_state)
    n_bands = Canvas(picture.planes[0], side, settings.step).n_bands
    with progress_bar(progress, len(picture.planes) * (n_bands + 1), "denoise") as tick:
        for plane in picture.planes:
            canvas = Canvas(plane, side, settings.step)
            plane[:] = _denoise(canvas, sigma, settings, model, rng, tick)
    return picture.put_back(picture.planes)


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
    """Return how many directions of all patches carry more picture than noise.

    Where noise is slight that is nearly all, and a subspace of fewer would take detail away.
    """
    about = patches - patches.mean(axis=0)
    variances = np.linalg.eigvalsh((about.T @ about).astype(np.float64) / len(patches))
    return int((variances > 2.0 * sigma**2).sum())
