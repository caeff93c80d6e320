"""The twin of `groups.py` for arrays of any namespace: it also runs on a GPU.

All groups of a strip of reference patches are denoised at once. Where patches overlap, a GPU adds
their pixels in no fixed order. Here integers are added, whose sum is the same in any order: results
on one device are repeatable to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from polyspan.base.arrays import (
    Array,
    device,
    identity,
    item_bytes,
    machine_epsilon,
    moved_to,
    namespace,
    transpose,
    unfilled,
    zeros,
)
from polyspan.images.groups import LEAST_LEVERAGE, Pass, corners, least_reach

#: Bytes that a strip of reference patches may take beside arrays of the size of the picture.
MEMORY = 2 << 30
# The largest pixel is between 1/2 and 1 here, a denoised one at most 2·side + 1 times as large, its
# weight at most 1/LEAST_LEVERAGE. At most 1369 patches are added at one place and side² places at
# one pixel: with sides up to 16 sums are less than 2^30 times so many units, and fit int64.
UNITS = 2.0**33
# Without noise the systems of groups are singular. Their ridge is at least so many machine epsilons
# of the trace: 4 were too few for a ramp without noise, 8 never.
SAFETY = 10.0
# The least ridge, for pictures that are constant: its square root is a float32.
LEAST_RIDGE = 1e-30


def group_pass_arrays(
    planes: Array, estimate: Array, sigma: float, settings: Pass, *, memory: float = MEMORY
) -> Array:
    """Denoise all groups once, as `group_pass` does, on the device of the arrays.

    Parameters
    ----------
    planes, estimate : arrays of shape (n_planes, height, width)
        The noisy planes and the present estimate, of one namespace, device and floating dtype.
    sigma : float
        Standard deviation of the noise, in the units of the planes.
    settings : Pass
        Patches, groups and steps.
    memory : float, default=MEMORY
        About so many bytes are used beside arrays of the size of the picture. A row of reference
        patches is the least that is denoised at once.

    Returns
    -------
    estimate : array of shape (n_planes, height, width)
    """
    _, height, width = planes.shape
    side = settings.side
    tops, lefts = (corners(n - side, settings.step) for n in (height, width))
    k = min(settings.n_similar, least_reach((1, height, width), settings))
    # The power of two above all magnitudes: dividing by it does not round.
    xp = namespace(planes)
    largest = max(float(xp.max(xp.abs(a))) for a in (planes, estimate))
    unit = math.ldexp(1.0, math.frexp(largest)[1])
    ridge = max(k * settings.kappa * (sigma / unit) ** 2, LEAST_RIDGE)
    totals, weights = zeros(planes.shape, planes), zeros(planes.shape, planes)
    # First distances, and squares for a row of displacements; then the numbers of pixels, five
    # arrays of patches, and three of the systems.
    reach, item = 2 * settings.radius + 1, item_bytes(planes)
    matching = item * reach * (len(lefts) * reach + 2 * width * settings.step)
    denoising = len(lefts) * (k * side**2 * (8 + 5 * item) + 3 * k * k * item)
    size = max(1, int(memory / max(matching, denoising)))
    for start in range(0, len(tops), size):
        rows = tops[start : start + size]
        ends = int(rows[0]) - settings.radius, int(rows[-1]) + settings.radius + side
        strip = slice(max(0, ends[0]), min(height, ends[1]))
        z, y = estimate[:, strip, :] / unit, planes[:, strip, :] / unit
        pixels = _similar_patches(z[0, ...], rows - strip.start, lefts, k, settings)
        put_back = _put_back(pixels, z[0, ...])
        for c in range(planes.shape[0]):
            values, weight = _denoised(z[c, ...], y[c, ...], pixels, ridge)
            totals[c, strip, :] += put_back(values)
            weights[c, strip, :] += put_back(weight)
    return unit * (totals / weights)


def _similar_patches(
    z: Array, tops: np.ndarray, lefts: np.ndarray, k: int, settings: Pass
) -> Array:
    """Return the numbers of the pixels of k patches nearest to each reference patch.

    The shape is (n_references, k, side²). Pixels are numbered row by row.
    """
    xp = namespace(z)
    side, radius = settings.side, settings.radius
    width, reach = z.shape[1], 2 * radius + 1
    distances = _distances(z, tops, lefts, settings)
    # The patch itself is always one of its group, so that every pixel is covered.
    distances[:, :, radius, radius] = -1.0
    chosen = _smallest(xp.reshape(distances, (len(tops) * len(lefts), reach**2)), k)
    corner = (tops[:, None] - radius) * width + lefts - radius
    corner = moved_to(corner.reshape(-1, 1), z, xp.int64)
    corner = corner + (chosen // reach) * width + chosen % reach
    inside = moved_to((np.arange(side)[:, None] * width + np.arange(side)).ravel(), z, xp.int64)
    return corner[:, :, None] + inside


def _distances(z: Array, tops: np.ndarray, lefts: np.ndarray, settings: Pass) -> Array:
    """Return squared distances of reference patches to all patches near them.

    The shape is (n_tops, n_lefts, reach, reach). A patch outside the picture is at distance ∞.
    """
    xp = namespace(z)
    height, width = z.shape
    side, radius = settings.side, settings.radius
    reach = 2 * radius + 1
    shape = (height + 2 * radius, width + 2 * radius)
    padded = xp.full(shape, xp.inf, dtype=z.dtype, device=device(z))
    padded[radius : radius + height, radius : radius + width] = z
    first, last = int(tops[0]), int(tops[-1]) + side
    out = unfilled((len(tops), len(lefts), reach, reach), z)
    for down in range(reach):
        squares = _shifted(padded[first + down : last + down, :], width) - z[first:last, None, :]
        squares *= squares
        squares = _sums_from(tops - first, side, squares, axis=0)
        squares = _sums_from(lefts, side, squares, axis=2)
        out[:, :, down, :] = xp.moveaxis(squares, 1, 2)
    return out


def _shifted(a: Array, width: int) -> Array:
    """Return all parts of a matrix that have so many columns: (n_rows, n_parts, width)."""
    if hasattr(a, "unfold"):  # PyTorch: a view of the matrix
        return a.unfold(1, width, 1)
    parts = [a[:, j : j + width] for j in range(a.shape[1] - width + 1)]
    return namespace(a).stack(parts, axis=1)


def _sums_from(starts: np.ndarray, n: int, a: Array, axis: int) -> Array:
    """Return sums of n entries along an axis, from each of the starts on.

    All starts but the last are equally far from each other.
    """
    xp = namespace(a)
    begin, step = int(starts[0]), int(starts[1] - starts[0]) if len(starts) > 2 else 1
    many = len(starts) - 1

    def part(first: int, last: int, step: int) -> Array:
        return a[(slice(None),) * axis + (slice(first, last, step), ...)]

    last = xp.sum(part(int(starts[-1]), int(starts[-1]) + n, 1), axis=axis, keepdims=True)
    if not many:
        return last
    total = part(begin, begin + (many - 1) * step + 1, step) + 0.0
    for i in range(begin + 1, begin + n):
        total += part(i, i + (many - 1) * step + 1, step)
    return xp.concat([total, last], axis=axis)


def _smallest(a: Array, k: int) -> Array:
    """Return the columns of the k smallest entries of each row, in any order."""
    xp = namespace(a)
    if hasattr(xp, "topk"):  # PyTorch
        return xp.topk(a, k, dim=1, largest=False, sorted=False).indices
    return xp.argsort(a, axis=1)[:, :k]


def _denoised(z: Array, y: Array, pixels: Array, ridge: float) -> tuple[Array, Array]:
    """Return the weighted pixels of all denoised groups, in units, and their weights."""
    xp = namespace(z)
    B, Y = (xp.reshape(a, (-1,))[pixels] for a in (z, y))
    mean = xp.mean(B, axis=1, keepdims=True)
    B -= mean
    Y -= mean
    A = B @ transpose(B)
    least = SAFETY * machine_epsilon(A) * xp.linalg.trace(A)[:, None, None]
    A += xp.where(least > ridge, least, ridge) * identity(A.shape[-1], A)
    B = _solve_lower(xp.linalg.cholesky(A), B)
    weight = UNITS / (xp.sum(B * B, axis=1, keepdims=True) + LEAST_LEVERAGE)
    X = (Y @ transpose(B)) @ B
    X += mean
    X *= weight
    return X, weight


def _solve_lower(L: Array, B: Array) -> Array:
    """Return L⁻¹B for lower triangular matrices."""
    xp = namespace(L)
    if hasattr(xp.linalg, "solve_triangular"):  # PyTorch
        return xp.linalg.solve_triangular(L, B, upper=False)
    return xp.linalg.solve(L, B)


def _put_back(pixels: Array, plane: Array) -> Callable[[Array], Array]:
    """Return a function that adds values at pixels, and returns a plane of all sums."""
    xp = namespace(pixels)
    add = _sums_at(xp.reshape(pixels, (-1,)), plane.shape[0] * plane.shape[1])

    def put_back(values: Array) -> Array:
        whole = xp.broadcast_to(xp.astype(values, xp.int64), pixels.shape)
        sums = add(xp.reshape(whole, (-1,)))
        return xp.reshape(xp.astype(sums, plane.dtype) / UNITS, plane.shape)

    return put_back


def _sums_at(places: Array, n: int) -> Callable[[Array], Array]:
    """Return a function that adds integers which have the same place, of n places."""
    xp = namespace(places)
    if hasattr(places, "scatter_add_"):  # PyTorch
        return lambda whole: zeros((n,), whole).scatter_add_(0, places, whole)
    order = xp.argsort(places)
    every = xp.arange(n, dtype=places.dtype, device=device(places))
    ends = xp.searchsorted(xp.take(places, order), every, side="right")

    def sums_at(whole: Array) -> Array:
        # Integers wrap around: differences of their running sums are exact nevertheless.
        running = xp.cumulative_sum(xp.take(whole, order), include_initial=True)
        upto = xp.take(running, ends)
        return xp.concat([upto[:1], upto[1:] - upto[:-1]])

    return sums_at
