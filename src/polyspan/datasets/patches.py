"""Images as samples: cut into patches, and put together again.

Written by hand, on NumPy's sliding windows, because `sklearn.feature_extraction.image` can only put
patches together again that are one pixel apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from polyspan.base.inputs import plain_numbers, require_numpy
from polyspan.datasets.files import whole_numbers

#: Rows and columns, or one number for both.
Size = int | Sequence[int]


def extract_patches(
    image: Any, patch_shape: Size, *, step: Size | None = None, cover: bool = False
) -> np.ndarray:
    """Cut an image into patches, one row each.

    Parameters
    ----------
    image : array-like of shape (height, width) or (height, width, n_channels)
        Pixels of a gray image, or of one with channels.
    patch_shape : int or (int, int)
        Rows and columns of a patch; one number for squares.
    step : int or (int, int), default=None
        Rows and columns from one patch to the next. None: as `patch_shape`, so that patches do
        not overlap.
    cover : bool, default=False
        What happens to pixels at the lower and right edges that no whole step reaches. False: they
        are left out. True: one more row or column of patches ends at the edge and overlaps others.

    Returns
    -------
    ndarray of shape (n_patches, n_pixels) or (n_patches, n_pixels * n_channels)
        The patches, row by row of the image, as a copy of the same type. One patch is
        `patches[i].reshape(patch_shape)`; for a colour image the channels are a further last axis.

    See Also
    --------
    assemble_patches : put the patches together again.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.datasets import extract_patches
    >>> image = np.arange(12).reshape(3, 4)
    >>> extract_patches(image, (1, 2))[:2].tolist()
    [[0, 1], [2, 3]]
    >>> extract_patches(image, 2, step=1).shape
    (6, 4)
    """
    require_numpy("extract_patches", image=image)
    pixels = np.asarray(plain_numbers(image, "image"))
    shape = _image_shape("image", pixels.shape)
    height, width = patch = _size("patch_shape", patch_shape)
    top, left = _corners(shape, patch, step, cover)
    windows = np.lib.stride_tricks.sliding_window_view(pixels, (height, width), axis=(0, 1))
    chosen = windows[np.ix_(top, left)]
    if len(shape) == 3:
        chosen = np.moveaxis(chosen, 2, -1)
    return np.asarray(chosen.reshape(len(top) * len(left), -1))


def assemble_patches(
    patches: Any,
    image_shape: Sequence[int],
    patch_shape: Size,
    *,
    step: Size | None = None,
    cover: bool = False,
) -> np.ndarray:
    """Put the patches of `extract_patches` together again; average them where they overlap.

    Parameters
    ----------
    patches : array-like of shape (n_patches, n_values)
        Patches in the order of `extract_patches`.
    image_shape : (height, width) or (height, width, n_channels)
        Shape of the image that they were taken from.
    patch_shape : int or (int, int)
        Rows and columns of a patch, as given to `extract_patches`.
    step : int or (int, int), default=None
        Rows and columns from one patch to the next, as given to `extract_patches`.
    cover : bool, default=False
        Whether further patches end at the edges, as given to `extract_patches`.

    Returns
    -------
    ndarray of shape `image_shape`
        The image, in floating-point values. Pixels that no patch covers are NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.datasets import assemble_patches, extract_patches
    >>> image = np.arange(20.0).reshape(4, 5)
    >>> patches = extract_patches(image, 2, step=1)
    >>> np.array_equal(assemble_patches(patches, (4, 5), 2, step=1), image)
    True
    """
    shape = _image_shape("image_shape", image_shape)
    height, width = patch = _size("patch_shape", patch_shape)
    top, left = _corners(shape, patch, step, cover)
    require_numpy("assemble_patches", patches=patches)
    values = np.asarray(patches)
    values = values.astype(np.result_type(values.dtype, np.float32), copy=False)
    expected = (len(top) * len(left), int(np.prod((height, width, *shape[2:]))))
    if values.shape != expected:
        raise ValueError(
            f"patches of shape {values.shape} do not make up an image: {expected} is needed for "
            f"image_shape={shape}, patch_shape={patch}, step={step} and cover={cover}"
        )
    grid = values.reshape(len(top), len(left), height, width, *shape[2:])
    total = np.zeros(shape, dtype=values.dtype)
    count = np.zeros(shape[:2] + (1,) * len(shape[2:]), dtype=values.dtype)
    # Add one pixel of all patches at a time. No two patches have the same corner, so no pixel of
    # the image occurs twice, and the loop runs over the pixels of a patch, not over the patches.
    for i in range(height):
        for j in range(width):
            place = np.ix_(top + i, left + j)
            total[place] += grid[:, :, i, j]
            count[place] += 1
    with np.errstate(invalid="ignore"):  # 0/0 is the NaN of a pixel that no patch covers
        return np.asarray(total / count)


def _corners(
    shape: tuple[int, ...], patch: tuple[int, int], step: Size | None, cover: bool
) -> tuple[np.ndarray, np.ndarray]:
    if patch[0] > shape[0] or patch[1] > shape[1]:
        raise ValueError(
            f"patch_shape={patch} does not fit into an image of {shape[0]} rows and {shape[1]} "
            "columns: take smaller patches"
        )
    steps = patch if step is None else _size("step", step)
    top = _starts(shape[0] - patch[0], steps[0], cover)
    return top, _starts(shape[1] - patch[1], steps[1], cover)


def _starts(last: int, stride: int, cover: bool) -> np.ndarray:
    starts = np.arange(0, last + 1, stride)
    return np.append(starts, last) if cover and starts[-1] != last else starts


def _image_shape(name: str, given: Sequence[int]) -> tuple[int, ...]:
    shape = whole_numbers(given)
    if len(shape) not in (2, 3) or min(shape) < 1:
        raise ValueError(
            f"{name} must be (height, width) or (height, width, channels) with at least one pixel, "
            f"found shape {given}"
        )
    return shape


def _size(name: str, given: Size) -> tuple[int, int]:
    size = whole_numbers(given)
    if len(size) not in (1, 2) or min(size) < 1:
        raise ValueError(f"{name}={given!r} must be one or two whole numbers, each ≥ 1")
    return size[0], size[-1]
