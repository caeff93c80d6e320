"""How far to trust groups over smooth interpolation: observed pixels are hidden, and filled."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

#: Pixels are hidden in a few windows of this side, so that the time does not grow with the picture.
WINDOW, N_WINDOWS = 128, 4
#: Most of the observed pixels of a window that are hidden.
MOST_HIDDEN = 0.25
#: The weight begins at 1, as if that had been seen on so many pixels.
CAUTION = 50.0
#: How far the mask is moved to hide pixels, in rows and columns.
MOVES = ((11, 7), (7, 11), (10, 10), (5, 9), (9, 3), (4, 4))

#: Takes planes and missing pixels; returns smooth interpolation and what groups make of it.
Fill = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def blend_weights(
    planes: np.ndarray, missing: np.ndarray, fill: Fill, rng: np.random.RandomState
) -> np.ndarray:
    """Return the weight of the groups for each plane; 1 less it is that of the interpolation.

    Observed pixels are hidden by a mask of the same kind, both methods fill them, and the weight is
    the one with the smallest squared error there.
    """
    # Products of the error of the interpolation with the difference of both, and its squares.
    products, squares = np.zeros((2, len(planes)))
    count = 0
    for window in _windows(missing, rng):
        part, holes = planes[window], missing[window]
        hidden = hide(holes, rng)
        if not hidden.any() or (holes | hidden).all(axis=(1, 2)).any():
            continue
        smooth, groups = fill(part, holes | hidden)
        seen = np.broadcast_to(hidden, part.shape)
        difference = np.where(seen, groups - smooth, 0).astype(np.float64)
        products += (difference * (part - smooth)).sum(axis=(1, 2))
        squares += (difference**2).sum(axis=(1, 2))
        count += int(hidden.sum()) // len(hidden)
    prior = squares * CAUTION / max(count, 1)
    weights = np.ones(len(planes))
    np.divide(products + prior, squares + prior, out=weights, where=squares > 0)
    return np.clip(weights, 0, 1).astype(np.float32)


def hide(missing: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Return observed pixels to hide: where a moved copy of the mask is."""
    moved = [np.roll(missing, move, axis=(1, 2)) & ~missing for move in MOVES]
    # Holes that are moved onto others show least of how such holes are filled.
    best = max(moved, key=np.count_nonzero)
    most = MOST_HIDDEN * (~missing).sum()
    share = most / max(float(best.sum()), 1.0)
    return np.asarray(best & (rng.uniform(size=missing.shape) < share))


def _windows(missing: np.ndarray, rng: np.random.RandomState) -> Iterator[tuple[slice, ...]]:
    """Yield windows around missing pixels: the whole of a small picture."""
    shape = missing.shape[1:]
    if max(shape) <= 1.5 * WINDOW:
        yield np.s_[:, :, :]
        return
    places = np.flatnonzero(missing.any(axis=0))
    for place in rng.choice(places, N_WINDOWS):
        corner = (
            int(np.clip(at - WINDOW // 2, 0, max(n - WINDOW, 0)))
            for at, n in zip(np.unravel_index(place, shape), shape, strict=True)
        )
        yield (slice(None), *(slice(start, start + WINDOW) for start in corner))
