"""Volumes and stacks: groups of similar blocks over neighbouring slices or frames.

The first estimate is that of a mixture of low-rank Gaussians of blocks, where slices tell of each
other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from polyspan.base.progress import Share
from polyspan.images.cascade import passed
from polyspan.images.groups import LEVELS, STRONG, Pass, corners, passes_for, weighted_sums
from polyspan.images.mixtures import Preset
from polyspan.images.patches import block_sums, sample_patches
from polyspan.images.planes import halve
from polyspan.mixture.prediction import gaussians_of, posterior_means

#: Slices and side of a block, where slices tell of each other, with strong noise, and where not.
DEEP, DEEP_STRONG, FLAT = (5, 5), (5, 7), (1, 7)
#: Slices (for blocks of several) and pixels from one block to the next.
STEP = 2
#: Blocks that a subspace is learned from at least, for each voxel of a block.
LEAST_BLOCKS = 6
#: The model is given this multiple of σ, for the reason given in `mixtures.py`. Blocks have more
#: voxels than patches have pixels, so that it is larger.
MARGIN = 1.08
#: Largest part of a volume that decides whether slices tell of each other.
PROBE = (8, 128, 128)
#: So much noise, as a part of σ, is added to it, so that another copy has independent noise.
ADDED = 0.5

Pilot = Callable[[np.ndarray, float], np.ndarray]


def volume_passes(levels: float) -> tuple[Pass, ...]:
    """Return the passes for slices that tell of each other, for a noise in levels of 255."""
    large = Pass(8, 100, 0.8, 6, radius=9, thick=4, reach=3, slices=3)
    middle = replace(large, side=6, n_similar=80, step=4)
    if levels >= STRONG:
        return large, replace(middle, kappa=1.0)
    return middle, replace(middle, side=5, kappa=1.0, step=3)


def frame_passes(levels: float) -> tuple[Pass, ...]:
    """Return the passes for slices with little in common: patches of one slice, and near slices."""
    return tuple(replace(one, reach=1) for one in passes_for(levels))


def denoise_volume(
    volume: np.ndarray,
    sigma: float,
    pilot: Pilot,
    *,
    random_state: Any = 0,
    n_jobs: int = 1,
    share: Share | None = None,
) -> np.ndarray:
    """Remove white noise from a volume, or from a stack of frames.

    It is first found out whether neighbouring slices tell of each other. If so, a mixture of blocks
    over several slices makes the first estimate, else ``pilot``, slice by slice. Passes over groups
    of similar blocks, or patches, follow; they are looked for in the slices near their own.

    Parameters
    ----------
    volume : array of shape (depth, height, width) or (n_planes, depth, height, width)
        float32. Planes share the groups, which are found on the first.
    sigma : float
        Standard deviation of the noise, equal in all planes, in the units of the volume.
    pilot : callable
        ``pilot(planes, sigma)`` returns denoised planes of one slice, (n_planes, height, width).
    random_state : int, RandomState instance or None, default=0
        Seed of the choice of blocks to learn from.
    n_jobs : int, default=1
        Number of threads. The result does not depend on it.
    share : Share, default=None
        The part of a progress bar that is for this volume.

    Returns
    -------
    denoised : array of the same shape, float32

    Notes
    -----
    Memory beyond the volume: at most four float32 copies of it, and for each thread some slices
    and some tens of megabytes.
    """
    planes = np.ascontiguousarray(volume, dtype=np.float32)
    planes = planes if planes.ndim == 4 else planes[None]
    if sigma == 0:
        return planes.reshape(volume.shape).copy()
    rng = check_random_state(random_state)
    deep = slices_tell_of_each_other(planes[0], sigma, rng, n_jobs)
    # Noise hardly widens the range of means of 4×4 pixels.
    span = float(np.ptp(halve(halve(planes[0]))))
    levels = LEVELS * sigma * np.sqrt(len(planes)) / max(span, sigma)
    passes = volume_passes(levels) if deep else frame_passes(levels)
    step = (share or Share()).of(1 + len(passes))
    estimate = np.empty_like(planes)
    if deep:
        block = DEEP if levels < STRONG else DEEP_STRONG
        each = step.of(len(planes))
        for out, one in zip(estimate, planes, strict=True):
            out[:] = mixture_pilot(one, sigma, block, rng, n_jobs, each)
    else:
        tick = step.ticks(planes.shape[1])
        for s in range(planes.shape[1]):
            estimate[:, s] = pilot(planes[:, s], sigma)
            tick()
    found = passed(planes, estimate, sigma, passes, n_jobs, step)
    return np.asarray(found.reshape(volume.shape))


def mixture_pilot(
    volume: np.ndarray,
    sigma: float,
    block: tuple[int, int],
    rng: np.random.RandomState,
    n_jobs: int = 1,
    share: Share | None = None,
) -> np.ndarray:
    """Return a volume (depth, height, width) whose blocks are replaced by their posterior means.

    One mixture is learned from blocks of the whole volume. Where blocks overlap, the mean weighted
    by their certainty is taken. The result does not depend on the number of threads.
    """
    thick, side = min(block[0], len(volume)), block[1]
    shape = (thick, side, side)
    settings = Preset(side, STEP, 12, 16, 20000, patches_each=LEAST_BLOCKS * thick * side**2)
    rows, noise = sample_patches(volume, shape, settings.n_train, rng), MARGIN * sigma
    model = settings.fitted(rows, noise, rng, noise)
    expected = partial(posterior_means, mean=model.mean_, gaussians=gaussians_of(model))
    fronts = corners(len(volume) - thick, min(STEP, thick))

    def slab(front: int) -> tuple[slice, tuple[np.ndarray, np.ndarray]]:
        here = slice(front, front + thick)
        return here, block_sums(volume[here], side, STEP, expected)

    total, weight = weighted_sums(
        slab, [(front,) for front in fronts], volume.shape, volume, n_jobs, share
    )
    total /= weight
    return np.asarray(total)


def slices_tell_of_each_other(
    volume: np.ndarray, sigma: float, rng: np.random.RandomState, n_jobs: int = 1
) -> bool:
    """Return whether blocks over several slices are denoised better than patches of one slice.

    The error of both is measured in the middle of the volume, without the truth: noise is added to
    it, and taken, scaled, from a copy of it, so that the noise of both is independent. What is
    estimated from the first is compared with the second.
    """
    if len(volume) == 1:
        return False
    starts = [max(0, (n - most) // 2) for n, most in zip(volume.shape, PROBE, strict=True)]
    middle = volume[tuple(slice(a, a + most) for a, most in zip(starts, PROBE, strict=True))]
    extra = (sigma * rng.standard_normal(middle.shape)).astype(np.float32)
    seen, truth = middle + np.float32(ADDED) * extra, middle - extra / np.float32(ADDED)
    noise = sigma * np.sqrt(1 + ADDED**2)
    flat = mixture_pilot(seen, noise, FLAT, rng, n_jobs)
    deep = mixture_pilot(seen, noise, DEEP, rng, n_jobs)
    return bool(np.mean((deep - truth) ** 2) <= np.mean((flat - truth) ** 2))
