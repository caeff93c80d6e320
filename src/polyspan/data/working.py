"""Working coordinates: data that are centred, scaled if squares would overflow, and reduced.

Where there are fewer samples than features, the data are reduced to the span of the samples.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from polyspan.base.arrays import (
    Array,
    float64_sum,
    machine_epsilon,
    namespace,
    power_of_two_scale,
    zeros,
)
from polyspan.geometry.bases import orthonormal_columns

# If the squared norm of the mean is more than this many times the variance, subtracting the mean
# after a product would lose more than two digits: then the chunks are centred before it.
HEAVY_MEAN = 100.0


@dataclass(frozen=True)
class Working:
    """Maps between working coordinates and the coordinates of the data."""

    mean: Array
    """Mean in the units of the data; zero without centring."""
    scale: float
    """The working data are the data times this power of two."""
    span: Array | None = None
    """Orthonormal basis of the working coordinates, (n_features, n_working), or None."""
    n_points: int = 0
    """Number of last columns of a frame that are points, not directions: 1 if affine, else 0."""

    def to_data(self, frames: Array) -> Array:
        """Map bases (or frames) from working coordinates to those of the data."""
        frames = frames if self.span is None else self.span @ frames
        return frames if self.scale == 1.0 else self._scaled(frames, 1.0 / self.scale)

    def to_working(self, frames: Array) -> Array:
        """Map bases (or frames) inside the span to working coordinates."""
        frames = frames if self.span is None else self.span.mT @ frames
        return frames if self.scale == 1.0 else self._scaled(frames, self.scale)

    def _scaled(self, frames: Array, factor: float) -> Array:
        """Multiply the points of affine subspaces by a factor; bases have no scale."""
        if not self.n_points:
            return frames
        bases, points = frames[..., :-1], frames[..., -1:]
        return namespace(frames).concat([bases, points * factor], axis=-1)

    def residual_unit(self, lam: float) -> float:
        """Return the number u such that an objective divided by u² is in the units of the data.

        It is 1 for finite λ: λ compensates the scale there.
        """
        return self.scale if math.isinf(lam) else 1.0


def working_lam(lam: float, scale: float) -> float:
    """Return λ for data times `scale`, kept finite and above 0 if λ is."""
    if math.isinf(lam):
        return lam
    # λ‖r‖² must not change: the working residuals are scale² times those of the data.
    return min(max((lam / scale) / scale, 1e-300), 1e300)


def scale_and_mean(
    X: Array, slices: list[slice], *, center: bool, weights: Array | None = None
) -> tuple[float, Array]:
    """Return the working scale and the (weighted) mean times that scale; zero without centring."""
    xp = namespace(X)
    largest = max(float(xp.max(xp.abs(X[which, :]))) for which in slices)
    scale = power_of_two_scale(largest, machine_epsilon(X))
    mean = zeros((X.shape[1],), X)
    if center:
        scaled = (X[which, :] if scale == 1.0 else X[which, :] * scale for which in slices)
        if weights is not None:
            own = (weights[which, None] for which in slices)
            scaled = (part * w for part, w in zip(scaled, own, strict=True))
        totals = [float64_sum(part, axis=0) for part in scaled]
        count = X.shape[0] if weights is None else float(float64_sum(weights))
        mean = xp.astype(sum(totals[1:], totals[0]) / count, X.dtype)
    return scale, mean


def span_of(samples: Array, start: Array | None) -> Array | None:
    """Return a basis of the span of the samples (and of a given start), or None.

    None means that the span may have as many dimensions as the data have features. F1 is the same
    in the span: all subspaces that the iteration reaches lie in it.

    Parameters
    ----------
    samples : array of shape (..., n_samples, n_features)
    start : array of shape (..., n_subspaces, n_features, n_columns) or None
    """
    columns = [samples.mT]
    if start is not None:
        columns += [start[..., p, :, :] for p in range(start.shape[-3])]
    if sum(part.shape[-1] for part in columns) >= samples.shape[-1]:
        return None
    return orthonormal_columns(namespace(samples).concat(columns, axis=-1))
