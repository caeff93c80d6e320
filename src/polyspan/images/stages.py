"""Stages that were learned beforehand: one linear map per class of patches.

Everything here runs on arrays of any namespace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from polyspan.arrays import Array, is_numpy, moved_to, namespace, to_numpy, transpose, zeros
from polyspan.images.grid import Grid
from polyspan.images.prior import Classifier, PatchPrior

#: Patches that are treated at once on a processor, and on other devices.
PATCHES_AT_ONCE, PATCHES_ON_DEVICE = 4096, 1 << 20
#: Pixels from one patch to the next for the first estimate.
FIRST_STEP = 2
#: Weight of a pixel of the first estimate is one over the directions that hold it plus this.
LEAST_FREEDOM = 0.02
#: Squared errors are larger by this factor in pictures that stages were not learned from. It was
#: measured on the first, third, … of the pictures of BSD68 with odd numbers.
UNSEEN = 1.25

#: Changes patches, (side², n) per channel: returns new patches and their weights.
Change = Callable[[list[Array]], tuple[Array, Array]]


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
) -> tuple[Array, Array]:
    """Return the first channel, corrected by linear maps of the patches of all channels.

    The second array is the variance of what is left of the noise, as learned for the classes.
    """
    like = channels[0]
    maps = moved_to(np.asarray(stage.maps, dtype=np.float32), like)
    weights = moved_to(np.asarray(1.0 / stage.errors, dtype=np.float32), like)
    classify = Classifier(prior, stage.sharpness * sigma**2, like)

    def change(patches: list[Array]) -> tuple[Array, Array]:
        inputs = stage_inputs(patches)
        labels = classify(inputs[: prior.side**2, :])
        weight = transpose(namespace(like).take(weights, labels, axis=0))
        return by_class(inputs, labels, maps) + patches[0], weight

    corrected, certainty = averaged(channels, change, prior.side, step, n_jobs)
    return corrected, (UNSEEN * stage.calibration * sigma**2) / certainty


def expected_variance(
    plane: Array, sigma: float, stage: Stage, prior: PatchPrior, n_jobs: int = 1
) -> Array:
    """Return what a stage would say about the noise left in a plane that was denoised otherwise."""
    weights = moved_to(np.asarray(1.0 / stage.errors, dtype=np.float32), plane)
    classify = Classifier(prior, stage.sharpness * sigma**2, plane)

    def change(patches: list[Array]) -> tuple[Array, Array]:
        labels = classify(stage_inputs(patches))
        return patches[0], transpose(namespace(plane).take(weights, labels, axis=0))

    certainty = averaged([plane], change, prior.side, FIRST_STEP, n_jobs)[1]
    return (UNSEEN * stage.calibration * sigma**2) / certainty


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


def averaged(
    channels: list[Array], change: Change, side: int, step: int, n_jobs: int = 1
) -> tuple[Array, Array]:
    """Change the patches of all channels; return their weighted mean, and the mean weight.

    Bands of rows are summed in their order: the result does not depend on the number of threads.
    """
    plane = channels[0]
    height, width = plane.shape
    grid = Grid(height, width, side, step)
    n_rows, n_columns = grid.shape
    size = max(1, (PATCHES_AT_ONCE if is_numpy(plane) else PATCHES_ON_DEVICE) // n_columns)

    def band(first: int) -> tuple[slice, Array, Array]:
        rows = slice(first, min(first + size, n_rows))
        here = slice(0, rows.stop - rows.start)
        # Mirrored pixels are added to some rows at a time, to save memory.
        changed, weight = change([grid.patches(grid.padded(one, rows), here) for one in channels])
        total, weights = grid.sums(rows, plane), grid.sums(rows, plane)
        grid.add(total, changed * weight, rows)
        grid.add(weights, weight, rows)
        return rows, total, weights

    total, weights = zeros(grid.reach, plane), zeros(grid.reach, plane)
    run = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    found: Any = run(delayed(band)(first) for first in range(0, n_rows, size))
    for rows, values, certainty in found:
        here = slice(rows.start * step, rows.start * step + values.shape[0])
        total[here, :] += values
        weights[here, :] += certainty
    total /= weights
    for count in grid.coverage(plane):
        weights /= count
    return total[:height, :width], weights[:height, :width]
