"""Groups of similar patches: each group is denoised by its own Gaussian, around its mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed

#: Levels between the darkest and the brightest pixel. Noise is strong from STRONG of them on.
LEVELS, STRONG = 255.0, 40.0
#: Similar patches are looked for up to so many pixels away, in both directions, by default.
RADIUS = 18
#: Reference rows of a band. Bands are denoised in any thread, and summed in their order.
BAND_ROWS = 16
#: Weight of a pixel is one over its leverage in the group plus this.
LEAST_LEVERAGE = 0.02
#: After a pass so much of what was removed comes back, for the next one to judge.
BACK = 0.05


@dataclass(frozen=True)
class Pass:
    """One pass over all groups."""

    side: int
    """Side of a patch."""
    n_similar: int
    """Patches of a group."""
    kappa: float
    """Noise that is left, as a part of σ²."""
    step: int
    """Pixels from one reference patch to the next."""
    radius: int = RADIUS
    """How far away similar patches are looked for, in pixels."""


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
    settings: Pass,
    n_jobs: int = 1,
    whitening: Whitening | None = None,
) -> np.ndarray:
    """Denoise all groups once; the result does not depend on the number of threads.

    `sigma` is that of patches after `whitening`.
    """
    # Imported here: the twin for other arrays uses this file, and no numba.
    from polyspan.images.group_loops import group_band

    _, height, width = planes.shape
    tops, lefts = (corners(n - settings.side, settings.step) for n in (height, width))
    # A small picture has fewer patches within reach of its corners.
    k = min(settings.n_similar, _least_reach(height, width, settings))
    ridge, radius = k * settings.kappa * sigma**2, settings.radius
    totals, weights = np.zeros_like(planes), np.zeros_like(planes)

    def band(rows: np.ndarray) -> tuple[int, Any, Any]:
        first = max(0, rows[0] - radius)
        last = min(height, rows[-1] + radius + settings.side)
        own = np.zeros((2, len(planes), last - first, width), dtype=np.float32)
        group_band(
            planes, estimate, rows, lefts, settings.side, k, ridge, radius, LEAST_LEVERAGE, first,
            whitening, own[0], own[1],
        )  # fmt: skip
        return first, own[0], own[1]

    rows = [tops[k : k + BAND_ROWS] for k in range(0, len(tops), BAND_ROWS)]
    run = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    for first, total, weight in run(delayed(band)(some) for some in rows):
        totals[:, first : first + total.shape[1]] += total
        weights[:, first : first + total.shape[1]] += weight
    totals /= weights
    return totals


def _least_reach(height: int, width: int, settings: Pass) -> int:
    """Return how many patches are within reach of a corner of the picture."""
    rows, columns = (min(settings.radius, n - settings.side) + 1 for n in (height, width))
    return rows * columns


def corners(last: int, step: int) -> np.ndarray:
    """Return every step-th corner from 0, and the last one."""
    found = np.arange(0, last + 1, step)
    return found if found[-1] == last else np.append(found, last)
