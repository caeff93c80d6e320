"""How strong the noise of a picture is."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from scipy.ndimage import convolve, gaussian_filter, sobel, uniform_filter

from polyspan._sklearn import check_parameters
from polyspan.images.planes import Planes

# A second difference in both directions: white noise of unit variance stays of unit variance.
_SECOND = np.outer([1, -2, 1], [1, -2, 1]) / 6.0
# Fraction of the picture, the smoothest, that is measured.
SMOOTH_FRACTION = 0.3


def estimate_noise(image: Any, channel_axis: int | None = None) -> float:
    """Estimate the standard deviation of white noise in a picture.

    The median absolute second difference over those 30 % of the picture that vary least on a
    coarser scale. The two scales have next to no frequency in common, so that choosing by one does
    not bias the other, while texture that would pass for noise is left out.

    Parameters
    ----------
    image : array-like of shape (height, width), or with channels
    channel_axis : int or None, default=None

    Returns
    -------
    sigma : float
        In units of the picture, integers counting as fractions of the largest of their type.

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
    return noise_of(picture) * picture.scale


def noise_of(picture: Planes) -> float:
    """Return the noise of planes, in their own units."""
    return float(np.median([_of_plane(plane) for plane in picture.planes]))


def _of_plane(plane: np.ndarray) -> float:
    second = np.abs(convolve(plane, _SECOND, mode="reflect"))
    coarse = gaussian_filter(plane, 2.0)
    slope = uniform_filter(sobel(coarse, 0) ** 2 + sobel(coarse, 1) ** 2, 9)
    smooth = slope <= np.quantile(slope, SMOOTH_FRACTION)
    return float(np.median(second[smooth])) / 0.6745
