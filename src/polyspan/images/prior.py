"""What patches of pictures look like: a mixture of Gaussians that was learned beforehand."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from polyspan.base.arrays import Array, is_numpy, moved_to, namespace, row_slices, to_numpy

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
        return math.isqrt(self.directions.shape[2])

    def scaled(self, unit: float) -> PatchPrior:
        """Return the prior of a picture in which one level has this value."""
        # In double precision, which holds squares of all units that float32 holds.
        variances = self.variances.astype(np.float64) * unit**2
        return PatchPrior(self.weights, variances, self.directions)

    def __len__(self) -> int:
        return len(self.weights)


class Classifier:
    """Find the most likely class of patches that have white noise of the variance `noise`."""

    def __init__(self, prior: PatchPrior, noise: float, like: Array) -> None:
        variances = np.where(prior.variances > LEAST_VARIANCE * noise, prior.variances, 0.0)
        counts = np.count_nonzero(variances, axis=1)
        offset = 2.0 * np.log(prior.weights) - np.log1p(variances / noise).sum(axis=1)
        filters = np.sqrt(variances / (noise * (variances + noise)))[:, :, None] * prior.directions
        self._lots: list[tuple[Array, Array, int]] = []
        members, least = [], -1
        for most in LOTS:
            chosen = np.flatnonzero((counts > least) & (counts <= most))
            least = most
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
