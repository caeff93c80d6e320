"""Groups of similar patches: each group is denoised by its own Gaussian, around its mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

from polyspan.base.arrays import Array, zeros
from polyspan.base.progress import Share

#: Levels between the darkest and the brightest pixel. Noise is strong from STRONG of them on.
LEVELS, STRONG = 255.0, 40.0
#: Similar patches are looked for up to so many pixels away, in both directions, by default.
RADIUS = 18
#: Reference rows of a band, and of volumes also slices of a part. They are denoised in any thread,
#: and summed in their order.
BAND_ROWS, PART_SLICES = 16, 4
#: Weight of a pixel is one over its leverage in the group plus this.
LEAST_LEVERAGE = 0.02
#: After a pass so much of what was removed comes back, for the next one to judge.
BACK = 0.05


@dataclass(frozen=True)
class Pass:
    """One pass over all groups of blocks; those of a plane are patches, of one slice."""

    side: int
    """Side of a block within a slice."""
    n_similar: int
    """Blocks of a group."""
    kappa: float
    """Noise that is left, as a part of σ²; where holes are filled, of the squared range."""
    step: int
    """Pixels within a slice from one reference block to the next."""
    radius: int = RADIUS
    """How far away similar blocks are looked for within a slice, in pixels."""
    thick: int = 1
    """Slices of a block."""
    reach: int = 0
    """How many slices away similar blocks are looked for."""
    slices: int = 1
    """Slices from one reference block to the next."""


def passes_for(sigma: float) -> tuple[Pass, ...]:
    """Return the passes for a noise in levels of 255."""
    if sigma < 20:
        return (Pass(6, 34, 0.8, 4), Pass(6, 34, 1.0, 3))
    if sigma < STRONG:
        return (Pass(8, 40, 0.8, 6), Pass(8, 40, 0.8, 6), Pass(6, 34, 1.0, 4))
    return (Pass(10, 60, 0.8, 6), Pass(10, 60, 0.8, 6), Pass(8, 40, 0.8, 4))


class Whitening(NamedTuple):
    """What makes the noise of patches white, for each plane."""

    forth: np.ndarray
    """(n_planes, side², side²): patches, as rows, are multiplied by it."""
    back: np.ndarray
    """Its inverse."""
    spread: np.ndarray
    """(n_planes,): one over the standard deviation of the noise of a pixel."""


def group_pass(
    planes: np.ndarray,
    estimate: np.ndarray,
    sigma: float,
    one: Pass,
    n_jobs: int = 1,
    whitening: Whitening | None = None,
    share: Share | None = None,
) -> np.ndarray:
    """Denoise all groups once; the result does not depend on the number of threads.

    Parameters
    ----------
    planes, estimate : arrays of shape (n_planes, height, width), or with a depth before the height
        float32. Groups are found on the first of the estimates.
    sigma : float
        Standard deviation of the noise, of patches after `whitening`.
    """
    # Imported here: the twin for other arrays uses this file, and no numba.
    from polyspan.images.group_loops import group_blocks

    volumes, estimates = (
        np.ascontiguousarray(a).reshape(len(a), -1, *a.shape[-2:]) for a in (planes, estimate)
    )
    n, depth, height, width = volumes.shape
    thick = min(one.thick, depth)
    fronts = corners(depth - thick, one.slices)
    tops, lefts = (corners(size - one.side, one.step) for size in (height, width))
    # A small picture has fewer patches within reach of its corners.
    k = min(one.n_similar, least_reach((depth, height, width), one))
    ridge = k * one.kappa * sigma**2

    def part(slices: np.ndarray, rows: np.ndarray) -> tuple[Any, Array]:
        first, last = max(0, slices[0] - one.reach), min(depth, slices[-1] + one.reach + thick)
        top, end = max(0, rows[0] - one.radius), min(height, rows[-1] + one.radius + one.side)
        sums = np.zeros((2, n, last - first, end - top, width), dtype=np.float32)
        group_blocks(
            volumes, estimates, slices, rows, lefts, thick, one.side, k, ridge, one.reach,
            one.radius, LEAST_LEVERAGE, (first, top), whitening, sums,
        )  # fmt: skip
        return np.s_[:, first:last, top:end], sums

    parts = [
        (fronts[s : s + PART_SLICES], tops[i : i + BAND_ROWS])
        for s in range(0, len(fronts), PART_SLICES)
        for i in range(0, len(tops), BAND_ROWS)
    ]
    total, weight = weighted_sums(part, parts, volumes.shape, volumes, n_jobs, share)
    total /= weight
    return np.asarray(total).reshape(planes.shape)


def weighted_sums(
    part: Callable[..., tuple[Any, Array]],
    parts: Sequence[tuple[Any, ...]],
    shape: tuple[int, ...],
    like: Array,
    n_jobs: int | None,
    share: Share | None = None,
) -> tuple[Array, Array]:
    """Return sums of weighted values, and of weights, added part by part, in any thread.

    ``part(*arguments)`` returns a place, and a pair of values and weights there. They are added in
    their order, so that the result does not depend on the number of threads.
    """
    total, weight = zeros(shape, like), zeros(shape, like)
    tick = (share or Share()).ticks(len(parts))
    run = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    for place, (values, weights) in run(delayed(part)(*some) for some in parts):
        total[place] += values
        weight[place] += weights
        tick()
    return total, weight


def least_reach(shape: tuple[int, int, int], one: Pass) -> int:
    """Return how many blocks are within reach of a corner of a volume."""
    slices = min(one.reach, shape[0] - min(one.thick, shape[0])) + 1
    rows, columns = (min(one.radius, n - one.side) + 1 for n in shape[1:])
    return slices * rows * columns


def corners(last: int, step: int) -> np.ndarray:
    """Return every step-th corner from 0, and the last one."""
    found = np.arange(0, last + 1, step)
    return found if found[-1] == last else np.append(found, last)
