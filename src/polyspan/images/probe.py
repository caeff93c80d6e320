"""How much noise a denoiser leaves, measured by adding a little of it."""

from __future__ import annotations

from collections.abc import Callable

from polyspan.arrays import Array, namespace

#: Noise that is added, in units of that of the picture.
ADDED = 0.3
#: At least this part of the variance of the noise is said to be left.
LEAST_LEFT = 1e-3


def noise_left(
    denoise: Callable[[Array], Array], planes: Array, found: Array, noise: Array
) -> list[float]:
    """Return the variance of the error of each plane, as a part of that of its noise.

    For the posterior mean f of a picture with Gaussian noise of the covariance C, the covariance of
    the error is that of the posterior, C times the Jacobian of f. Its trace is the mean of
    bᵀ(f(y + a·b) − f(y))/a over b ~ N(0, C) for small a; the many pixels of one b are enough.

    Parameters
    ----------
    denoise : callable
        The map f; the strength of the noise that it removes is fixed.
    planes, found : arrays of shape (n_planes, height, width)
        The noisy planes, and f of them.
    noise : array of the same shape
        The b: noise with the covariance of that of the planes.
    """
    xp = namespace(planes)
    response = (denoise(planes + ADDED * noise) - found) / ADDED
    parts = xp.sum(noise * response, axis=(1, 2)) / xp.sum(noise * noise, axis=(1, 2))
    return [max(float(parts[c]), LEAST_LEFT) for c in range(planes.shape[0])]
