"""Volumes and stacks: groups of similar blocks over neighbouring slices or frames."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state

from polyspan.base.progress import Share
from polyspan.images.groups import (
    BACK,
    LEAST_LEVERAGE,
    LEVELS,
    RADIUS,
    STRONG,
    corners,
    passes_for,
)
from polyspan.images.volume_pilot import DEEP, DEEP_STRONG, mixture_pilot, slices_tell_of_each_other

#: Reference blocks of a part of the volume, along depth and height. Parts are denoised in any
#: thread, and summed in their order.
PART = (4, 16)

Pilot = Callable[[np.ndarray, float], np.ndarray]


@dataclass(frozen=True)
class VolumePass:
    """One pass over all groups of blocks."""

    thick: int
    """Slices of a block."""
    side: int
    """Side of a block within a slice."""
    n_similar: int
    """Blocks of a group."""
    kappa: float
    """Noise that is left, as a part of σ²."""
    step: tuple[int, int]
    """Slices, and pixels within a slice, from one reference block to the next."""
    reach: int
    """Similar blocks are looked for up to so many slices away,"""
    radius: int
    """and up to so many pixels away within a slice."""


def volume_passes(levels: float) -> tuple[VolumePass, ...]:
    """Return the passes for slices that tell of each other, for a noise in levels of 255."""
    if levels < STRONG:
        return VolumePass(4, 6, 80, 0.8, (3, 4), 3, 9), VolumePass(4, 5, 80, 1.0, (3, 3), 3, 9)
    return VolumePass(4, 8, 100, 0.8, (3, 6), 3, 9), VolumePass(4, 6, 80, 1.0, (3, 4), 3, 9)


def frame_passes(levels: float) -> tuple[VolumePass, ...]:
    """Return the passes for slices with little in common: patches of one slice, and near slices."""
    return tuple(
        VolumePass(1, one.side, one.n_similar, one.kappa, (1, one.step), 1, RADIUS)
        for one in passes_for(levels)
    )


def denoise_volume(
    volume: np.ndarray,
    sigma: float,
    pilot: Pilot,
    *,
    passes: Sequence[VolumePass] | None = None,
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
    passes : sequence of VolumePass, default=None
        None: chosen by the noise and by what slices have in common.
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
    share = share or Share()
    planes = np.ascontiguousarray(volume, dtype=np.float32)
    planes = planes if planes.ndim == 4 else planes[None]
    if sigma == 0:
        return planes.reshape(volume.shape).copy()
    rng = check_random_state(random_state)
    deep = slices_tell_of_each_other(planes[0], sigma, rng, n_jobs)
    levels = LEVELS * sigma * np.sqrt(len(planes)) / max(_range_of_means(planes[0]), sigma)
    if passes is None:
        passes = volume_passes(levels) if deep else frame_passes(levels)
    step = share.of(1 + len(passes))
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
    return denoise_blocks(planes, estimate, sigma, passes, n_jobs, step).reshape(volume.shape)


def denoise_blocks(
    volumes: np.ndarray,
    estimate: np.ndarray,
    sigma: float,
    passes: Sequence[VolumePass],
    n_jobs: int = 1,
    share: Share | None = None,
) -> np.ndarray:
    """Return volumes (n_planes, depth, height, width) denoised by passes over groups of blocks.

    The share is that of one pass.
    """
    estimate = np.ascontiguousarray(estimate, dtype=np.float32)
    for number, one in enumerate(passes):
        estimate = group_volume_pass(volumes, estimate, sigma, one, n_jobs, share)
        if number + 1 < len(passes):
            estimate *= np.float32(1 - BACK)
            estimate += np.float32(BACK) * volumes
    return estimate


def group_volume_pass(
    volumes: np.ndarray,
    estimate: np.ndarray,
    sigma: float,
    one: VolumePass,
    n_jobs: int = 1,
    share: Share | None = None,
) -> np.ndarray:
    """Denoise all groups once; the result does not depend on the number of threads."""
    # Imported here: numba is needed by what it compiles alone.
    from polyspan.images.volume_loops import group_blocks

    _, depth, height, width = volumes.shape
    thick = min(one.thick, depth)
    fronts = corners(depth - thick, one.step[0])
    tops, lefts = (corners(n - one.side, one.step[1]) for n in (height, width))
    # A small volume has fewer blocks within reach of its corners.
    k = min(one.n_similar, _least_reach((depth, height, width), thick, one))
    ridge = k * one.kappa * sigma**2
    totals, weights = np.zeros_like(volumes), np.zeros_like(volumes)

    def part(slices: np.ndarray, rows: np.ndarray) -> tuple[Any, np.ndarray]:
        first, last = max(0, slices[0] - one.reach), min(depth, slices[-1] + one.reach + thick)
        top, end = max(0, rows[0] - one.radius), min(height, rows[-1] + one.radius + one.side)
        sums = np.zeros((2, len(volumes), last - first, end - top, width), dtype=np.float32)
        group_blocks(
            volumes, estimate, slices, rows, lefts, thick, one.side, k, ridge, one.reach,
            one.radius, LEAST_LEVERAGE, (first, top), sums,
        )  # fmt: skip
        return np.s_[:, first:last, top:end], sums

    parts = [
        (fronts[s : s + PART[0]], tops[i : i + PART[1]])
        for s in range(0, len(fronts), PART[0])
        for i in range(0, len(tops), PART[1])
    ]
    tick = (share or Share()).ticks(len(parts))
    run = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    for place, sums in run(delayed(part)(*some) for some in parts):
        totals[place] += sums[0]
        weights[place] += sums[1]
        tick()
    totals /= weights
    return totals


def _range_of_means(volume: np.ndarray) -> float:
    """Return the range of the means of 4×4 pixels, which noise hardly widens."""
    depth, height, width = (n - n % m for n, m in zip(volume.shape, (1, 4, 4), strict=True))
    shape = (depth, height // 4, 4, width // 4, 4)
    means = volume[:, :height, :width].reshape(shape).mean(axis=(2, 4))
    return float(np.ptp(means))


def _least_reach(shape: tuple[int, int, int], thick: int, one: VolumePass) -> int:
    """Return how many blocks are within reach of a corner of the volume."""
    depth, height, width = shape
    slices = min(one.reach, depth - thick) + 1
    rows, columns = (min(one.radius, n - one.side) + 1 for n in (height, width))
    return slices * rows * columns
