"""Groups of similar patches fill missing pixels: each has its own Gaussian, around its mean."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polyspan.base.progress import Share
from polyspan.images.groups import BAND_ROWS, Pass, corners, least_reach, weighted_sums

#: Weight of an estimate is one over its variance plus this, in squares of the range.
LEAST_VARIANCE = 1e-4


def fill_groups(
    planes: np.ndarray,
    missing: np.ndarray,
    rounds: tuple[Pass, ...],
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
            planes = _one_round(planes, missing, scale, one, n_jobs, share)
        else:  # every plane is constant, and so is its first guess
            planes = planes.copy()
            (share or Share()).ticks(1)()
    return planes


def value_range(planes: np.ndarray, missing: np.ndarray) -> float:
    """Return the largest range of observed values of a plane, per channel of a picture."""
    holes = np.broadcast_to(missing, planes.shape)
    ranges = [np.ptp(one[~hole]) for one, hole in zip(planes, holes, strict=True)]
    shared = len(missing) < len(planes)
    return float(max(ranges)) / (len(planes) ** 0.5 if shared else 1.0)


def _one_round(
    planes: np.ndarray,
    missing: np.ndarray,
    scale: float,
    one: Pass,
    n_jobs: int | None,
    share: Share | None,
) -> np.ndarray:
    """Return the planes with new values in their missing pixels."""
    # Imported here: numba is needed by what it compiles alone.
    from polyspan.images.group_loops import fill_band

    n_planes, height, width = planes.shape
    one = replace(one, side=min(one.side, height, width))
    # A small picture has fewer patches within reach of its corners.
    k = min(one.n_similar, least_reach((1, height, width), one))
    joint = n_planes if len(missing) == n_planes else 1
    guide = planes.mean(axis=0, keepdims=True) if joint > 1 else planes[:1].copy()
    noise, floor = one.kappa * scale**2, LEAST_VARIANCE * scale**2
    tops, lefts = (corners(size - one.side, one.step) for size in (height, width))

    def band(rows: np.ndarray) -> tuple[tuple[slice, slice], np.ndarray]:
        first, end = rows[0], rows[-1] + one.side
        sums = np.zeros((2, n_planes, end - first, width), dtype=np.float32)
        fill_band(
            planes, missing, guide, rows, lefts, one.side, k, joint, one.radius, noise, floor,
            first, sums,
        )  # fmt: skip
        return np.s_[:, first:end], sums

    bands = [(tops[start : start + BAND_ROWS],) for start in range(0, len(tops), BAND_ROWS)]
    total, weight = weighted_sums(band, bands, planes.shape, planes, n_jobs, share)
    return np.asarray(np.divide(total, weight, out=planes.copy(), where=weight > 0))
