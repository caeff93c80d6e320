"""Estimate the noise of a picture."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from scipy.ndimage import convolve, gaussian_filter, sobel, uniform_filter

from polyspan._sklearn import check_parameters
from polyspan.images.planes import Planes

# A second difference in both directions, scaled so that white noise keeps its variance.
_SECOND = np.outer([1, -2, 1], [1, -2, 1]) / 6.0
# The noise is measured in the smoothest part of the picture: this fraction of its pixels.
SMOOTH_FRACTION = 0.3


def estimate_noise(image: Any, channel_axis: int | None = None) -> float:
    """Estimate the standard deviation of white noise in a picture.

    The estimate is the median absolute second difference over the 30 % of the pixels where the
    picture varies least on a coarser scale. This leaves out texture, which looks like noise. The
    two scales have nearly no frequency in common, so that the choice of the pixels does not bias
    the estimate.

    Parameters
    ----------
    image : array-like of shape (height, width), or with channels
    channel_axis : int or None, default=None
        Which axis holds the channels of a colour picture; None: a gray picture.

    Returns
    -------
    sigma : float
        In the units of the picture; integers are divided by the largest value of their type.

    Examples
    --------
    >>> import numpy as np
    >>> from polyspan.images import estimate_noise
    >>> rng = np.random.default_rng(0)
    >>> ramp = np.linspace(0, 1, 200) * np.ones((200, 1))
    >>> round(estimate_noise(ramp + 0.1 * rng.standard_normal(ramp.shape)), 2)
    0.1
    """
    check_parameters(
        "estimate_noise",
        channel_axis=(channel_axis, [Integral, None]),
    )
    picture = Planes.of(image, channel_axis)
    return planes_noise(picture) * picture.scale


def planes_noise(picture: Planes) -> float:
    """Return the standard deviation of the noise of planes, in the units of the planes."""
    return float(np.median([_plane_noise(plane) for plane in picture.planes]))


def _plane_noise(plane: np.ndarray) -> float:
    second = np.abs(convolve(plane, _SECOND, mode="reflect"))
    coarse = gaussian_filter(plane, 2.0)
    slope = uniform_filter(sobel(coarse, 0) ** 2 + sobel(coarse, 1) ** 2, 9)
    smooth = slope <= np.quantile(slope, SMOOTH_FRACTION)
    return float(np.median(second[smooth])) / 0.6745
