"""Fill planes by a mixture of subspaces and by groups, as far as these are to be trusted."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from polyspan.base.progress import Share
from polyspan.images.groups import LEVELS, Pass
from polyspan.images.inpaint_groups import fill_groups
from polyspan.images.interpolation import guess_from_other_channels, interpolate
from polyspan.images.mixtures import PatchModel, Preset
from polyspan.images.patches import block_sums, sample_patches
from polyspan.mixture import SubspaceMixture
from polyspan.mixture.prediction import posterior_means

#: What the groups leave out falls to this, in levels of 255, from one of the others: after smooth
#: interpolation, which has lost more, and after a mixture.
LAST_NOISE, AFTER_SMOOTH, AFTER_MIXTURE = 4.0, 20.0, 12.0
#: Side of the patches of a mixture.
PATCH = 8
#: The mixture; and the largest number of EM iterations on patches with missing pixels.
MIXTURE, ITERATIONS = Preset(PATCH, 2, 10, 20, 5000, closeness=50.0), 4

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


@dataclass(frozen=True)
class Method:
    """Settings of a preset."""

    # Patches of different sizes make different mistakes, and each round mends those of the last:
    # .14 dB better than patches of one size.
    sides: tuple[int, ...] = (10, 8, 10, 6, 10, 6)
    """Sides of the patches, for each round of groups."""
    steps: tuple[int, ...] = (4, 4, 4, 4, 3, 2)
    """Pixels from one reference patch to the next."""
    n_similar: int = 40
    radius: int = 12
    mixture: bool = True
    """Whether the rounds begin with the expectation of a mixture, not with interpolation."""

    def rounds(self, first: float) -> tuple[Pass, ...]:
        """Return the rounds of groups, from a noise in levels of 255 on."""
        levels = np.geomspace(first, LAST_NOISE, len(self.sides))
        kappas = ((levels / LEVELS) ** 2).tolist()
        return tuple(
            Pass(side, self.n_similar, kappa, step, self.radius)
            for side, kappa, step in zip(self.sides, kappas, self.steps, strict=True)
        )


PRESETS = {
    "fast": Method((10, 8, 6), (5, 4, 3), mixture=False),
    "balanced": Method(),
    "best": Method(steps=(3, 3, 3, 2, 2, 2), n_similar=60, radius=18),
}


def fill_planes(
    planes: np.ndarray,
    missing: np.ndarray,
    method: Method,
    given: PatchModel | None,
    rng: np.random.RandomState,
    n_jobs: int | None = None,
    share: Share | None = None,
) -> np.ndarray:
    """Return the planes filled: a mean of smooth interpolation and of groups.

    `missing` is one mask, or one for each plane: planes are filled together then.
    """
    # A model that is given is used by every preset. None fits channels that are filled together:
    # other channels tell more than the pixels around a hole.
    with_mixture = (method.mixture or given is not None) and len(missing) == 1
    rounds = method.rounds(AFTER_MIXTURE if with_mixture else AFTER_SMOOTH)
    step = (share or Share()).of(2 + len(rounds))
    smooth = _smooth(planes, missing)
    models = []
    if with_mixture:
        pairs = zip(smooth, _holed(planes, missing), strict=True)
        models = [given or PatchModel.of(learned_mixture(*pair, rng)) for pair in pairs]
    step.ticks(1)()

    def by_groups(
        part: np.ndarray, holes: np.ndarray, guess: np.ndarray, share: Share | None = None
    ) -> np.ndarray:
        start = guess_from_other_channels(part, holes) if len(holes) > 1 else guess.copy()
        for plane, out, model in zip(_holed(part, holes), start, models, strict=False):
            found = expected_plane(plane, model)
            out[:] = np.where(np.isnan(found) | ~holes[0], out, found)
        return fill_groups(start, holes, rounds, n_jobs, share)

    def both(part: np.ndarray, holes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        guess = _smooth(part, holes)
        return guess, by_groups(part, holes, guess)

    groups = by_groups(planes, missing, smooth, step)
    weights = blend_weights(planes, missing, both, rng)[:, None, None]
    step.ticks(1)()
    # In place, to save memory.
    groups -= smooth
    groups *= weights
    groups += smooth
    np.copyto(groups, planes, where=~missing)
    return groups


def _smooth(planes: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return the planes with smooth interpolation in their missing pixels."""
    holes = np.broadcast_to(missing, planes.shape)
    return np.stack([interpolate(one, hole) for one, hole in zip(planes, holes, strict=True)])


def _holed(planes: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return the planes with NaN in their missing pixels."""
    return np.where(missing, np.float32(np.nan), planes)


def learned_mixture(
    guess: np.ndarray, incomplete: np.ndarray, rng: np.random.RandomState
) -> SubspaceMixture:
    """Learn from a plane that was filled smoothly, then from the same with NaN in its holes."""
    seed, block = int(rng.randint(2**31 - 1)), (MIXTURE.side, MIXTURE.side)
    # Patches at the same places of the interpolated and of the incomplete picture.
    smooth, holed = (
        sample_patches(plane, block, MIXTURE.n_train, np.random.RandomState(seed))
        for plane in (guess, incomplete)
    )
    model = MIXTURE.fitted(smooth, "shared", rng)
    usable = holed[~np.isnan(holed).all(axis=1)]
    # The number of patches must be at least the number of pixels of a patch, and each of these must
    # be observed in one of them.
    if len(usable) >= MIXTURE.side**2 and not np.isnan(usable).all(axis=0).any():
        model.set_params(warm_start=True, max_iter=ITERATIONS)
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            model.fit(usable)
    return model


def expected_plane(plane: np.ndarray, model: PatchModel) -> np.ndarray:
    """Return the expectation of missing pixels; NaN where no incomplete patch is."""

    def filled(patches: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # Complete patches get the weight 0.
        holed = np.isnan(patches).any(axis=1)
        if holed.any():
            incomplete = patches[holed]
            expected, _ = posterior_means(incomplete, model.mean, model.gaussians)
            patches[holed] = np.where(np.isnan(incomplete), expected, incomplete)
        return patches, holed.astype(np.float32)

    total, weight = block_sums(plane, model.side, MIXTURE.step, filled)
    with np.errstate(invalid="ignore"):
        return np.asarray(total / weight)


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
