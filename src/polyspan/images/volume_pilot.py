"""A first estimate of a volume: a mixture of low-rank Gaussians of its blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
from joblib import Parallel, delayed

from polyspan.base.progress import Share
from polyspan.images.groups import corners
from polyspan.images.presets import no_convergence_warnings
from polyspan.mixture import SubspaceMixture
from polyspan.mixture.prediction import gaussians_of, posterior_means

#: Slices and side of a block, where slices tell of each other, with strong noise, and where not.
DEEP, DEEP_STRONG, FLAT = (5, 5), (5, 7), (1, 7)
#: Slices (for blocks of several) and pixels from one block to the next.
STEP = 2
#: Most blocks that are processed at once: ten megabytes.
BAND_BLOCKS = 4096
#: The model: at most so many subspaces of so many dimensions, learned from at most so many blocks.
N_SUBSPACES, DIM, N_TRAIN = 12, 16, 20000
#: Least number of blocks to learn one subspace from, for each voxel of a block.
LEAST_BLOCKS = 6
#: The model is given this multiple of σ, for the reason given in `own.py`. Blocks have more
#: voxels than patches have pixels, so that it is larger.
MARGIN = 1.08
#: Largest part of a volume that decides whether slices tell of each other.
PROBE = (8, 128, 128)
#: So much noise, as a part of σ, is added to it, so that another copy has independent noise.
ADDED = 0.5


def mixture_pilot(
    volume: np.ndarray,
    sigma: float,
    block: tuple[int, int],
    rng: np.random.RandomState,
    n_jobs: int = 1,
    share: Share | None = None,
) -> np.ndarray:
    """Return a volume (depth, height, width) whose blocks are replaced by their posterior means.

    One mixture is learned from blocks of the whole volume. Where blocks overlap, the mean weighted
    by their certainty is taken. The result does not depend on the number of threads.
    """
    thick, side = min(block[0], len(volume)), block[1]
    windows = np.lib.stride_tricks.sliding_window_view(volume, (thick, side, side))
    places = _sample(windows.shape[:3], N_TRAIN, rng)
    model = _fit(windows[places].reshape(len(places[0]), -1), MARGIN * sigma, rng)
    gaussians = gaussians_of(model)
    fronts = corners(len(windows) - 1, min(STEP, thick))
    tops, lefts = (corners(n - 1, STEP) for n in windows.shape[1:3])
    rows = max(1, BAND_BLOCKS // len(lefts))

    def slab(front: int) -> Any:
        sums = np.zeros((2, thick, *volume.shape[1:]), dtype=np.float32)
        for start in range(0, len(tops), rows):
            some = tops[start : start + rows]
            blocks = windows[front][np.ix_(some, lefts)]
            means, certainty = posterior_means(
                blocks.reshape(len(some) * len(lefts), -1), model.mean_, gaussians, None
            )
            _add(sums, means.reshape(blocks.shape), certainty.reshape(blocks.shape[:2]),
                 some, lefts)  # fmt: skip
        return sums

    total, weight = np.zeros_like(volume), np.zeros_like(volume)
    tick = (share or Share()).ticks(len(fronts))
    run = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
    for front, sums in zip(fronts, run(delayed(slab)(front) for front in fronts), strict=True):
        total[front : front + thick] += sums[0]
        weight[front : front + thick] += sums[1]
        tick()
    total /= weight
    return total


def slices_tell_of_each_other(
    volume: np.ndarray, sigma: float, rng: np.random.RandomState, n_jobs: int = 1
) -> bool:
    """Return whether blocks over several slices are denoised better than patches of one slice.

    The error of both is measured in the middle of the volume, without the truth: noise is added to
    it, and taken, scaled, from a copy of it, so that the noise of both is independent. What is
    estimated from the first is compared with the second.
    """
    if len(volume) == 1:
        return False
    middle = volume[tuple(_middle(n, most) for n, most in zip(volume.shape, PROBE, strict=True))]
    extra = (sigma * rng.standard_normal(middle.shape)).astype(np.float32)
    seen, truth = middle + np.float32(ADDED) * extra, middle - extra / np.float32(ADDED)
    noise = sigma * np.sqrt(1 + ADDED**2)
    flat = mixture_pilot(seen, noise, FLAT, rng, n_jobs)
    deep = mixture_pilot(seen, noise, DEEP, rng, n_jobs)
    return bool(np.mean((deep - truth) ** 2) <= np.mean((flat - truth) ** 2))


def _middle(n: int, most: int) -> slice:
    start = max(0, (n - most) // 2)
    return slice(start, start + min(n, most))


def _sample(shape: tuple[int, ...], n: int, rng: np.random.RandomState) -> tuple[np.ndarray, ...]:
    """Return n different places at random, or all places where there are at most n."""
    size = int(np.prod(shape))
    chosen = np.arange(size) if size <= n else rng.choice(size, n, replace=False)
    return np.unravel_index(chosen, shape)


def _fit(rows: np.ndarray, noise: float, rng: np.random.RandomState) -> SubspaceMixture:
    """Learn the mixture; with little noise it gets more dimensions, as in `own.py`."""
    centred = rows - rows.mean(axis=0)
    variances = np.linalg.eigvalsh((centred.T @ centred).astype(np.float64) / len(rows))
    dim = max(DIM, int((variances > 2.0 * noise**2).sum()))
    model = SubspaceMixture(
        int(np.clip(len(rows) // (LEAST_BLOCKS * rows.shape[1]), 1, N_SUBSPACES)),
        min(dim, rows.shape[1] - 1),
        closeness=30.0,
        noise=noise,
        anneal_steps=8,
        max_iter=8,
        tol=1e-4,
        random_state=rng,
    )
    with no_convergence_warnings():
        model.fit(rows)
    return model


def _add(
    sums: np.ndarray, means: np.ndarray, weight: np.ndarray, tops: np.ndarray, lefts: np.ndarray
) -> None:
    """Add weighted blocks to the sums, one voxel of all blocks at a time."""
    for c, i, j in np.ndindex(means.shape[2:]):
        place = np.ix_(tops + i, lefts + j)
        sums[0, c][place] += weight * means[:, :, c, i, j]
        sums[1, c][place] += weight
