"""Pictures of half the size, and back, for arrays of any namespace."""

from __future__ import annotations

from polyspan.arrays import Array, namespace


def with_coarse_scale(pilot: Array, coarse: Array) -> Array:
    """Return a pilot whose coarse scale is that of an estimate of half the size."""
    return pilot + enlarge(coarse - halve(pilot), pilot.shape[1:])


def halve(planes: Array) -> Array:
    """Return means of 2×2 pixels; an odd last row or column is repeated."""
    xp = namespace(planes)
    for axis in (1, 2):
        planes = xp.moveaxis(planes, axis, 0)
        if planes.shape[0] % 2:
            planes = xp.concat([planes, planes[-1:, ...]], axis=0)
        planes = xp.moveaxis((planes[::2, ...] + planes[1::2, ...]) / 2, 0, axis)
    return planes


def enlarge(planes: Array, shape: tuple[int, int]) -> Array:
    """Return planes of twice the size, bilinear between the centres of their pixels."""
    xp = namespace(planes)
    for axis, n in zip((1, 2), shape, strict=True):
        planes = xp.moveaxis(planes, axis, 0)
        before = xp.concat([planes[:1, ...], planes[:-1, ...]], axis=0)
        after = xp.concat([planes[1:, ...], planes[-1:, ...]], axis=0)
        both = xp.stack([0.75 * planes + 0.25 * before, 0.75 * planes + 0.25 * after], axis=1)
        both = xp.reshape(both, (2 * planes.shape[0], *planes.shape[1:]))
        planes = xp.moveaxis(both[:n, ...], 0, axis)
    return planes
