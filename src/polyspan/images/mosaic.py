"""A picture that is put together of windows from all over a large one."""

from __future__ import annotations

import math

from polyspan.arrays import Array, namespace


def step_for(shape: tuple[int, ...], side: int, most: int) -> int:
    """Return the step in pixels with which a picture has at most so many windows."""
    height, width = (max(1, n - side + 1) for n in shape[-2:])
    return max(1, math.ceil(math.sqrt(height * width / most)))


def mosaic(channels: Array, side: int, step: int) -> tuple[Array, int]:
    """Return a picture with the same windows, but for some at its last edges, and their step in it.

    Where windows lie apart, what is between them is left out: a large picture becomes small before
    anything is computed with its pixels, or moved from its device.
    """
    height, width = channels.shape[-2:]
    if step <= side or min(height, width) < step:
        return channels, step
    xp = namespace(channels)
    rows, columns = height // step, width // step
    # Views of squares of step × step pixels, and of the corner of each: one copy at the end.
    squares = channels[..., : rows * step, : columns * step]
    squares = xp.reshape(squares, (*channels.shape[:-2], rows, step, columns, step))
    windows = squares[..., :side, :, :side]
    return xp.reshape(windows, (*channels.shape[:-2], rows * side, columns * side)), side
