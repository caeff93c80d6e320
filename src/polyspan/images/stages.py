"""What was learned from photographs: a prior of patches, and stages of one linear map per class.

They come with the package as one file. Everything here runs on arrays of any namespace.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import isqrt, log
from typing import Any

import numpy as np

from polyspan.base.arrays import (
    Array,
    is_numpy,
    moved_to,
    namespace,
    row_slices,
    to_numpy,
    transpose,
    zeros,
)
from polyspan.images.patches import averaged

#: The file, which `tools/learn_pictures.py` makes. Arrays of numbers alone: nothing is executed.
FILE = "learned.npz"
#: Pixels from one patch to the next for the first estimate.
FIRST_STEP = 2
#: Weight of a pixel of the first estimate is one over the directions that hold it plus this.
LEAST_FREEDOM = 0.02
#: Squared errors are larger by this factor in pictures that stages were not learned from. It was
#: measured on the first, third, … of the pictures of BSD68 with odd numbers.
UNSEEN = 1.25
#: Directions with a variance below this part of the noise do not tell classes apart.
LEAST_VARIANCE = 0.15
#: Patches that are compared at once on a processor: more would not stay in its cache. And on other
#: devices, where they take a gigabyte.
AT_ONCE, AT_ONCE_ON_DEVICE = 512, 1 << 16
#: Classes are compared in lots of equal numbers of directions.
LOTS = (4, 8, 12, 16, 24, 32, 48, 64)


@dataclass(frozen=True)
class PatchPrior:
    """Gaussians of patches without their mean, in units where the picture spans 255 levels."""

    weights: np.ndarray
    """(n_classes,), with the sum 1."""
    variances: np.ndarray
    """(n_classes, n_directions), the largest first."""
    directions: np.ndarray
    """(n_classes, n_directions, side²), orthonormal rows."""

    @property
    def side(self) -> int:
        """Side of a patch."""
        return isqrt(self.directions.shape[2])

    def scaled(self, unit: float) -> PatchPrior:
        """Return the prior of a picture in which one level has this value."""
        # In double precision, which holds squares of all units that float32 holds.
        variances = self.variances.astype(np.float64) * unit**2
        return PatchPrior(self.weights, variances, self.directions)


class Classifier:
    """Find the most likely class of patches that have white noise of the variance `noise`."""

    def __init__(self, prior: PatchPrior, noise: float, like: Array) -> None:
        variances = np.where(prior.variances > LEAST_VARIANCE * noise, prior.variances, 0.0)
        counts = np.count_nonzero(variances, axis=1)
        offset = 2.0 * np.log(prior.weights) - np.log1p(variances / noise).sum(axis=1)
        filters = np.sqrt(variances / (noise * (variances + noise)))[:, :, None] * prior.directions
        self._lots: list[tuple[Array, Array, int]] = []
        members, lots = [], np.searchsorted(LOTS, counts)
        for number, most in enumerate(LOTS):
            chosen = np.flatnonzero(lots == number)
            if len(chosen):
                width = min(most, filters.shape[1])
                flat = filters[chosen, :width].reshape(len(chosen) * width, -1)
                lot = moved_to(np.ascontiguousarray(flat, dtype=np.float32), like)
                bias = moved_to(offset[chosen].astype(np.float32)[:, None], like)
                self._lots.append((lot, bias, width))
                members.append(chosen)
        self._order = moved_to(np.concatenate(members), like)

    def __call__(self, patches: Array) -> Array:
        """Return the class of each column of patches without their mean."""
        size = AT_ONCE if is_numpy(patches) else AT_ONCE_ON_DEVICE
        parts = row_slices(patches.shape[1], size)
        return namespace(patches).concat([self._classes(patches[:, part]) for part in parts])

    def _classes(self, patches: Array) -> Array:
        xp = namespace(patches)
        scores = []
        for filters, bias, width in self._lots:
            found = filters @ patches
            found *= found
            summed = xp.sum(xp.reshape(found, (bias.shape[0], width, -1)), axis=1)
            scores.append(summed + bias)
        return xp.take(self._order, xp.argmax(xp.concat(scores), axis=0))


@dataclass(frozen=True)
class Stage:
    """Maps of one learned stage for one level of noise."""

    maps: np.ndarray
    """(n_classes, side², n_channels · side²): from all channels to what is added to the first."""
    errors: np.ndarray
    """(n_classes, side²): mean squared error of each pixel of a patch, in units of σ²."""
    sharpness: float
    """Noise that is left in the first channel, as a part of σ²; with it classes are found."""
    calibration: float = 1.0
    """Mean squared error of the averaged pixels, in units of the mean of `errors` there."""

    def between(self, other: Stage, part: float) -> Stage:
        """Return the stage for a level of noise between the levels of two."""
        return Stage(
            (1 - part) * self.maps + part * other.maps,
            self.errors ** (1 - part) * other.errors**part,
            self.sharpness,
            self.calibration ** (1 - part) * other.calibration**part,
        )


@dataclass(frozen=True)
class Learned:
    """What was learned from pictures beforehand."""

    prior: PatchPrior
    levels: tuple[float, ...]
    """Levels of noise, of 255 between black and white, that stages were learned for."""
    stages: tuple[tuple[Stage, ...], ...]
    """For each level, the stages in their order."""

    def at(self, level: float) -> tuple[Stage, ...]:
        """Return the stages for any level of noise: between two levels, or those of the nearest."""
        level = min(max(level, self.levels[0]), self.levels[-1])
        above = int(np.searchsorted(self.levels, level))
        if self.levels[above] == level:
            return self.stages[above]
        low, high = self.levels[above - 1], self.levels[above]
        part = log(level / low) / log(high / low)
        both = zip(self.stages[above - 1], self.stages[above], strict=True)
        return tuple(one.between(other, part) for one, other in both)

    @classmethod
    def of(cls, arrays: Any) -> Learned:
        """Return what the arrays of the file hold: maps are integers with one scale per row."""
        prior = PatchPrior(
            arrays["weights"], arrays["variances"], arrays["directions"].astype(np.float32)
        )
        n_stages = sum(name.startswith("maps") for name in arrays)
        columns = []
        for number in range(n_stages):
            maps = arrays[f"maps{number}"] * arrays[f"scales{number}"]
            parts = zip(
                maps, arrays[f"errors{number}"], arrays[f"details{number}"].tolist(), strict=True
            )
            columns.append([Stage(m, errors, *details) for m, errors, details in parts])
        levels = tuple(arrays["levels"].tolist())
        return cls(prior, levels, tuple(zip(*columns, strict=True)))


@cache
def learned() -> Learned | None:
    """Return what comes with the package, or None with a warning where the file is missing."""
    source = resources.files("polyspan.images").joinpath(FILE)
    if not source.is_file():
        warnings.warn(
            f"the file {FILE} of polyspan.images is missing: pictures are denoised with what is "
            "learned from them alone, which takes longer; install polyspan again to get it",
            stacklevel=2,
        )
        return None
    with source.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return Learned.of({name: arrays[name] for name in arrays.files})


def first_estimate(plane: Array, sigma: float, prior: PatchPrior, n_jobs: int = 1) -> Array:
    """Return a plane whose patches have been shrunk towards the likeliest Gaussian of the prior."""
    kept = prior.variances / (prior.variances + sigma**2)
    shrink = np.swapaxes(prior.directions, 1, 2) @ (kept[:, :, None] * prior.directions)
    freedom = (prior.directions**2 * kept[:, :, None]).sum(axis=1)
    maps = moved_to(np.asarray(shrink, dtype=np.float32), plane)
    weights = moved_to(np.asarray(1.0 / (freedom + LEAST_FREEDOM), dtype=np.float32), plane)
    classify = Classifier(prior, sigma**2, plane)

    def change(patches: list[Array]) -> tuple[Array, Array]:
        xp = namespace(plane)
        mean = xp.mean(patches[0], axis=0, keepdims=True)
        centred = patches[0] - mean
        labels = classify(centred)
        weight = transpose(xp.take(weights, labels, axis=0))
        return by_class(centred, labels, maps) + mean, weight

    return averaged([plane], change, prior.side, FIRST_STEP, n_jobs)[0]


def apply_stage(
    channels: list[Array],
    sigma: float,
    stage: Stage,
    prior: PatchPrior,
    step: int,
    n_jobs: int = 1,
    *,
    correct: bool = True,
) -> tuple[Array, Array]:
    """Return the first channel, corrected by linear maps of the patches of all channels.

    The second array is the variance of what is left of the noise, as learned for the classes. If
    they are not to `correct` a plane that was denoised otherwise, it alone tells something.
    """
    like = channels[0]
    maps = moved_to(np.asarray(stage.maps, dtype=np.float32), like) if correct else None
    weights = moved_to(np.asarray(1.0 / stage.errors, dtype=np.float32), like)
    classify = Classifier(prior, stage.sharpness * sigma**2, like)

    def change(patches: list[Array]) -> tuple[Array, Array]:
        inputs = stage_inputs(patches)
        labels = classify(inputs[: prior.side**2, :])
        weight = transpose(namespace(like).take(weights, labels, axis=0))
        added = 0.0 if maps is None else by_class(inputs, labels, maps)
        return added + patches[0], weight

    corrected, certainty = averaged(channels, change, prior.side, step, n_jobs)
    return corrected, (UNSEEN * stage.calibration * sigma**2) / certainty


def stage_inputs(patches: list[Array]) -> Array:
    """Return the first patches without their means, and below them how the others differ."""
    xp = namespace(patches[0])
    first = patches[0]
    centred = first - xp.mean(first, axis=0, keepdims=True)
    return xp.concat([centred, *(other - first for other in patches[1:])])


def by_class(inputs: Array, labels: Array, maps: Array) -> Array:
    """Return each column multiplied by the map of its class."""
    xp = namespace(inputs)
    order = xp.argsort(labels, stable=True)
    counts = np.bincount(to_numpy(labels), minlength=maps.shape[0])
    ends = np.cumsum(counts)
    sorted_inputs = xp.take(inputs, order, axis=1)
    out = zeros((maps.shape[1], inputs.shape[1]), inputs)
    for c in np.flatnonzero(counts):
        here = slice(int(ends[c] - counts[c]), int(ends[c]))
        out[:, here] = maps[int(c), ...] @ sorted_inputs[:, here]
    return xp.take(out, xp.argsort(order), axis=1)


def misfit(patches: Array, noise: float, prior: PatchPrior) -> float:
    """Return how far patches with noise are from their classes: about 1 where the prior fits.

    It is the mean squared Mahalanobis distance, divided by the number of directions.
    """
    xp = namespace(patches)
    centred = patches - xp.mean(patches, axis=0, keepdims=True)
    labels = to_numpy(Classifier(prior, noise, patches)(centred))
    rows = to_numpy(centred)
    total = 0.0
    for c in np.unique(labels):
        scaled = prior.directions[c] / np.sqrt(prior.variances[c] + noise)[:, None]
        total += float(((scaled @ rows[:, labels == c]) ** 2).sum())
    return float(total / (len(labels) * prior.directions.shape[1]))
