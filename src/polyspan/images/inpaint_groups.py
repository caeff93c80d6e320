"""Groups of similar patches fill missing pixels: each has its own Gaussian, around its mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from polyspan.base.progress import Share
from polyspan.images.groups import BAND_ROWS, LEVELS, corners

#: Weight of an estimate is one over its variance plus this, in squares of the range.
LEAST_VARIANCE = 1e-4


@dataclass(frozen=True)
class Round:
    """One round over all reference patches with a missing pixel."""

    sigma: float
    """Standard deviation of what the Gaussians leave out, in levels of 255."""
    step: int
    """Pixels from one reference patch to the next."""
    n_similar: int = 30
    """Patches of a group."""
    side: int = 8
    """Side of a patch."""
    radius: int = 12
    """How far away similar patches are looked for, in pixels."""


def fill_groups(
    planes: np.ndarray,
    missing: np.ndarray,
    rounds: tuple[Round, ...],
    n_jobs: int | None = None,
    share: Share | None = None,
) -> np.ndarray:
    """Improve the missing pixels of planes by groups of similar patches.

    The patches nearest to a reference patch give a Gaussian N(μ, BᵀB/k + σ²I). Its expectation of
    the missing pixels, given those observed in the reference patch, is averaged over all patches,
    each weighted by one over its variance. The next round begins with the result.

    Parameters
    ----------
    planes : array of shape (n_planes, height, width)
        A first guess stands in the missing pixels.
    missing : array of shape (1, height, width) or (n_planes, height, width)
        One mask: the planes are filled one by one. A mask for each: all of them together, so that
        what one plane has tells about the others.
    share : Share, default=None
        That of one round.

    Returns
    -------
    filled : array of the same shape
        A new one. It does not depend on the number of threads.
    """
    planes = np.ascontiguousarray(planes, dtype=np.float32)
    missing = np.ascontiguousarray(missing)
    scale = value_range(planes, missing)
    for one in rounds:
        if scale > 0:
            planes = _one_round(planes, missing, scale, one, n_jobs, share or Share())
        else:  # every plane is constant, and so is its first guess
            planes = planes.copy()
            (share or Share()).ticks(1)()
    return planes


def value_range(planes: np.ndarray, missing: np.ndarray) -> float:
    """Return the largest range of observed values of a plane, per channel of a picture."""
    holes = np.broadcast_to(missing, planes.shape)
    ranges = [np.ptp(one[~hole]) for one, hole in zip(planes, holes, strict=True) if not hole.all()]
    shared = len(missing) < len(planes)
    return float(max(ranges)) / (len(planes) ** 0.5 if shared else 1.0)


def _one_round(
    planes: np.ndarray,
    missing: np.ndarray,
    scale: float,
    one: Round,
    n_jobs: int | None,
    share: Share,
) -> np.ndarray:
    """Return the planes with new values in their missing pixels."""
    # Imported here: numba is needed by what it compiles alone.
    from polyspan.images.inpaint_loops import fill_band

    n_planes, height, width = planes.shape
    side, reach = min(one.side, height, width), one.radius + 1
    # A small picture has fewer patches within reach of its corners.
    k = min(one.n_similar, min(reach, height - side + 1) * min(reach, width - side + 1))
    joint = n_planes if len(missing) == n_planes else 1
    guide = planes.mean(axis=0, keepdims=True) if joint > 1 else planes[:1].copy()
    noise, floor = (one.sigma / LEVELS * scale) ** 2, LEAST_VARIANCE * scale**2
    lefts = corners(width - side, one.step)

    def band(tops: np.ndarray) -> tuple[int, Any]:
        first = tops[0]
        sums = np.zeros((2, n_planes, tops[-1] + side - first, width), dtype=np.float32)
        fill_band(
            planes, missing, guide, tops, lefts, side, k, joint, one.radius, noise, floor, first,
            sums[0], sums[1],
        )  # fmt: skip
        return first, sums

    tops = corners(height - min(one.side, height), one.step)
    bands = [tops[start : start + BAND_ROWS] for start in range(0, len(tops), BAND_ROWS)]
    # Rows above the next band are complete, and the sums of those below are carried to it: memory
    # for sums of one band.
    ends = [rows[0] for rows in bands[1:]] + [height]
    out, carried = planes.copy(), np.zeros((2, n_planes, 0, width), dtype=np.float32)
    tick = share.ticks(len(bands))
    run = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    for (first, sums), end in zip(run(delayed(band)(rows) for rows in bands), ends, strict=True):
        sums[:, :, : carried.shape[2]] += carried
        total, weight = sums[:, :, : end - first]
        np.divide(total, weight, out=out[:, first:end], where=weight > 0)
        carried = sums[:, :, end - first :]
        tick()
    return out
