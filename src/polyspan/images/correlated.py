"""Noise that is correlated from pixel to pixel, as after JPEG, demosaicing or resizing."""

from __future__ import annotations

import numpy as np
from scipy.fft import dct, dctn

from polyspan.base.arrays import Array, namespace, to_numpy
from polyspan.base.progress import Share
from polyspan.images.cascade import passed
from polyspan.images.groups import LEVELS, Pass, Whitening, passes_for
from polyspan.images.mixtures import FAST, MARGIN
from polyspan.images.noise import mosaic, patches_without, saturated, step_for
from polyspan.images.patches import block_sums, sample_patches
from polyspan.mixture.prediction import gaussians_of, posterior_means

WARNING = (
    "the noise of this picture is correlated from pixel to pixel, as after JPEG compression, "
    "demosaicing or resizing: removing it as white noise leaves blotches. Denoise the picture as "
    'it came from the sensor if you can, or use noise="correlated"; for a JPEG, give sigma'
)
# Median of the square of a standard normal variable.
MEDIAN_OF_SQUARE = 0.4549
# Side of the blocks that show the spectrum, and pixels from one to the next.
SIDE, STEP = 16, 4
# Most blocks of a plane that are looked at: they take 80 megabytes.
MOST_BLOCKS = 40000
# Cosines of up to this degree tell how flat a block is.
DEGREE = 3
# Below it the noise is at most so many times stronger than next to it.
MOST_RISE = 4.0
# The spectrum is that of this fraction of the blocks, the flattest ones.
FLAT_FRACTION, LEAST_FLAT = 0.05, 60
# Largest lag of the autocovariance: it reaches across the largest patch.
REACH = 9
# Noise is white if its variance at the highest frequencies is that at lower ones, nearly. Still
# lower ones hold texture.
MIDDLE, HIGH, LEAST_RATIO = (16, 19), (24, 30), 0.55
LEAST_SIDE = 96
# Noise is soft where detail of these degrees is stronger than so many levels in all but the least
# blocks, is nearly equal in a quarter of them, is that much stronger than fine detail, and has many
# frequencies. With these numbers none of 17 clean photographs of BSD68 looks so, nor with white
# noise of 5 to 50 levels; of 34 clean crops of 160×160 pixels one does.
DETAIL, SOFT_BLOCKS, SOFT_QUANTILES = (3, 8), 10000, (0.02, 0.25)
SOFT_LEVEL, EVEN, SOFT_RATIO, BROAD = 6.0, 3.0, 0.1, 0.1
# No direction of a patch has less than this part of the mean variance of the noise.
LEAST_VARIANCE = 1e-3


def _power(plane: Array, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the power of blocks of 16×16 pixels without saturated ones, and orders of frequencies.

    Blocks are from all over the plane. The shapes are (n_blocks, 16, 16) and (16, 16).
    """
    side = min(SIDE, *plane.shape)
    small, step = mosaic(plane, side, max(STEP, step_for(plane.shape, side, most)))
    plane = to_numpy(small)
    rows = patches_without(plane, saturated(plane), side, step, LEAST_FLAT)
    blocks = rows.reshape(-1, side, side)
    power = dctn(blocks.astype(np.float32), axes=(1, 2), norm="ortho") ** 2
    return power, np.add.outer(np.arange(side), np.arange(side))


def noise_spectrum(plane: Array) -> np.ndarray:
    """Return the variance of the noise at 16×16 spatial frequencies, from flat blocks."""
    power, order = _power(plane, MOST_BLOCKS)
    rough = power[:, (order > 0) & (order <= DEGREE)].sum(axis=1)
    count = max(min(LEAST_FLAT, len(rough)), int(FLAT_FRACTION * len(rough)))
    flat = power[np.argsort(rough)[:count]].astype(np.float64)
    # Texture of single blocks does not change the median much.
    spectrum = np.median(flat, axis=0) / MEDIAN_OF_SQUARE
    return _continued(spectrum, order)


def _continued(spectrum: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return a spectrum whose low frequencies continue the next ones, as those of a Gaussian do.

    Low frequencies chose the blocks, and hold what the picture does there.
    """
    low, near = order <= DEGREE, (order > DEGREE) & (order <= 2 * DEGREE + 2)
    squares = np.add.outer(*[np.arange(len(spectrum)) ** 2.0] * 2)
    if not spectrum[near].min() > 0:
        return np.where(low, spectrum[near].mean(), spectrum)
    slope, start = np.polyfit(squares[near], np.log(spectrum[near]), 1)
    nearest = float(spectrum[near & (order <= DEGREE + 2)].mean())
    continued = np.exp(start + min(slope, 0.0) * squares)
    return np.where(low, np.clip(continued, nearest, MOST_RISE * nearest), spectrum)


def noise_autocovariance(plane: np.ndarray) -> np.ndarray:
    """Return the covariance of the noise of two pixels, by how far they are apart.

    Entry (i, j) is that of pixels i − 9 rows and j − 9 columns apart.
    """
    spectrum = noise_spectrum(plane)
    side = len(spectrum)
    cosines = dct(np.eye(side), axis=0, norm="ortho")
    lags = np.minimum(np.arange(REACH + 1), side - 1)
    # Mean product of a cosine and itself, shifted: the blocks' covariance, averaged by lags.
    products = [(cosines[:, lag:] * cosines[:, : side - lag]).mean(axis=1) for lag in lags]
    waves = np.stack([products[abs(lag)] for lag in range(-REACH, REACH + 1)]) * side**0.5
    return np.asarray(waves @ spectrum @ waves.T) / side


def is_correlated(plane: Array) -> bool:
    """Return whether the noise of a plane is correlated from pixel to pixel.

    Noise that was blurred, compressed or interpolated is weak at the highest frequencies. Planes
    of less than 96 pixels in a direction have too few blocks to tell.
    """
    if min(plane.shape) < LEAST_SIDE:
        return False
    spectrum = noise_spectrum(plane)
    order = np.add.outer(*[np.arange(len(spectrum))] * 2)
    middle, high = (
        float(np.median(spectrum[(order >= low) & (order <= top)])) for low, top in (MIDDLE, HIGH)
    )
    return high < LEAST_RATIO * middle


def is_soft(plane: Array) -> bool:
    """Return whether a plane has strong noise that is too soft to be seen at high frequencies.

    Where noise was blurred by .8 pixels or more, what is left at the highest frequencies is as weak
    as the rounding of a clean picture. But it is equally strong everywhere, as texture hardly is:
    no block is flat, and a quarter of all have nearly as little detail of some pixels as the
    flattest. A pattern that repeats has few frequencies.
    """
    span = float(namespace(plane).max(plane) - namespace(plane).min(plane))
    if min(plane.shape) < LEAST_SIDE or span == 0:
        return False
    power, order = _power(plane, SOFT_BLOCKS)
    detail = power[:, (order >= DETAIL[0]) & (order <= DETAIL[1])]
    energy = detail.mean(axis=1)
    least, quarter = np.quantile(energy, SOFT_QUANTILES)
    flat = energy <= np.quantile(energy, FLAT_FRACTION)
    each, fine = detail[flat].mean(axis=0), power[flat][:, order >= MIDDLE[0]].mean()
    return bool(
        least > (SOFT_LEVEL / LEVELS * span) ** 2
        and quarter < EVEN * least
        and fine < SOFT_RATIO * each.mean()
        and np.median(each) > BROAD * each.mean()
    )


def noise_like(
    autocovariance: np.ndarray, shape: tuple[int, ...], rng: np.random.RandomState
) -> np.ndarray:
    """Return noise with this autocovariance, by the root of its spectrum."""
    reach = len(autocovariance) // 2
    # Larger, so that opposite edges of the part that is returned are independent.
    height, width = (max(n + reach, 2 * reach + 1) for n in shape)
    around = np.zeros((height, width))
    around[: 2 * reach + 1, : 2 * reach + 1] = autocovariance
    power = np.fft.rfft2(np.roll(around, (-reach, -reach), axis=(0, 1))).real
    white = np.fft.rfft2(rng.standard_normal((height, width)))
    noise = np.fft.irfft2(white * np.sqrt(np.maximum(power, 0.0)), (height, width))
    return np.asarray(noise[: shape[0], : shape[1]], dtype=np.float32)


def whitener(autocovariance: np.ndarray, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrix that makes the noise of patches (as rows) white, and its inverse."""
    middle = len(autocovariance) // 2
    i, j = (part.ravel() for part in np.indices((side, side)))
    rows, columns = (np.subtract.outer(part, part) + middle for part in (i, j))
    # Principal variances and directions of the noise in a patch.
    variances, vectors = np.linalg.eigh(autocovariance[rows, columns])
    roots = np.sqrt(np.maximum(variances, LEAST_VARIANCE * variances.mean()))
    forth, back = (vectors / roots) @ vectors.T, (vectors * roots) @ vectors.T
    return forth.astype(np.float32), back.astype(np.float32)


def denoise_correlated(
    planes: np.ndarray,
    each: np.ndarray,
    levels: float,
    rng: np.random.RandomState,
    n_jobs: int = 1,
    step: Share | None = None,
) -> np.ndarray:
    """Return planes without correlated noise.

    Patches are multiplied by the inverse root of the covariance of their noise before the mixture
    and the groups denoise them, and by the root afterwards. Similar patches are found as ever.

    Parameters
    ----------
    planes : array of shape (n_planes, height, width)
    each : array of shape (n_planes, 19, 19)
        Autocovariances of their noise, in the units of the planes squared.
    levels : float
        Standard deviation of the noise in levels of 255; it says which passes over groups follow.
    step : Share, default=None
        That of each plane, and of each pass.
    """
    step = step or Share()
    planes = np.ascontiguousarray(planes, dtype=np.float32)
    estimate = np.empty_like(planes)
    for out, plane, own in zip(estimate, planes, each, strict=True):
        out[:] = _pilot(plane, own, rng)
        step.ticks(1)()

    def whitening(one: Pass) -> Whitening:
        pairs = [whitener(own, one.side) for own in each]
        forth, back = (np.stack(part) for part in zip(*pairs, strict=True))
        # Leverages are relative to the noise of a pixel.
        variances = each[:, each.shape[1] // 2, each.shape[2] // 2]
        return Whitening(forth, back, (1.0 / np.sqrt(variances)).astype(np.float32))

    found = passed(planes, estimate, 1.0, passes_for(levels), n_jobs, step, whitening)
    return np.asarray(found)


def _pilot(plane: np.ndarray, autocovariance: np.ndarray, rng: np.random.RandomState) -> np.ndarray:
    """Return a plane denoised by a mixture of whitened patches."""
    side = FAST.side
    forth, back = whitener(autocovariance, side)
    model = FAST.fitted(sample_patches(plane, (side, side), FAST.n_train, rng) @ forth, MARGIN, rng)
    gaussians = gaussians_of(model)

    def change(some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        expected, certainty = posterior_means(some @ forth, model.mean_, gaussians, None)
        return expected @ back, certainty.astype(np.float32, copy=False)

    total, weight = block_sums(plane, side, FAST.step, change)
    return np.asarray(total / weight)
