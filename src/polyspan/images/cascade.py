"""Denoise planes step by step: a first estimate, then groups of similar patches and stages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from polyspan.base.arrays import Array, is_numpy, namespace, unfilled
from polyspan.base.progress import Share
from polyspan.images import group_arrays
from polyspan.images.groups import BACK, LEVELS, STRONG, Pass, Whitening, group_pass
from polyspan.images.planes import halve, with_coarse_scale
from polyspan.images.stages import Learned, PatchPrior, Stage, apply_stage, first_estimate

#: Smallest side of a picture whose half is denoised first.
LEAST_TO_HALVE = 64
#: Extremes of means of 4×4 pixels are so many σ apart in a constant picture, about.
NOISE_RANGE = 1.5
#: Number of rounds of each preset.
ROUNDS = {"fast": 0, "balanced": 1, "best": 2}


def rounds_for(level: float) -> tuple[tuple[tuple[Pass, ...], int], ...]:
    """Return all rounds for a noise in levels of 255.

    Each has passes over groups of similar patches, and then a learned stage: the second number is
    that of pixels from one of its patches to the next.
    """
    if level < STRONG:
        first = (Pass(8, 40, 0.8, 6), Pass(6, 34, 0.8, 4))
    else:
        first = (Pass(8, 60, 0.6, 6), Pass(8, 60, 0.6, 4))
    return (first, 3), ((Pass(8, 40, 0.5, 4),), 2)


def value_of_level(plane: Array, sigma: float) -> float:
    """Return what one level of 255 between the darkest and the brightest part is worth."""
    xp = namespace(plane)
    coarse = halve(halve(plane[None, ...]))
    span = float(xp.max(coarse) - xp.min(coarse)) - NOISE_RANGE * sigma
    return max(span, 2.0 * sigma) / LEVELS


@dataclass(frozen=True)
class Cascade:
    """Denoise planes with what was learned beforehand."""

    learned: Learned
    n_rounds: int
    """Rounds of group passes after the first stage."""
    n_jobs: int = 1
    """Threads; the result does not depend on it."""
    step: Share = field(default_factory=Share)
    """The share of each of the `n_ticks` steps of the work."""
    variance: bool = True
    """Whether variances are wanted."""

    def denoise(
        self, planes: Array, sigma: float, units: list[float]
    ) -> tuple[Array, Array | None]:
        """Return denoised planes, and the variance of what is left of the noise.

        Parameters
        ----------
        planes : array of shape (n_planes, height, width)
            With white noise. Similar patches are found on the first of them.
        sigma : float
            Standard deviation of the noise.
        units : list of float
            The value of one level in each plane; see `value_of_level`.
        """
        levels = [sigma / unit for unit in units]
        priors = [self.learned.prior.scaled(unit) for unit in units]
        stages = [self.learned.at(level) for level in levels]
        # Results are written to arrays of all planes at once, to save memory.
        estimate = unfilled(planes.shape, planes)
        for c, prior in enumerate(priors):
            estimate[c, ...] = first_estimate(planes[c, ...], sigma, prior, self.n_jobs)
        estimate = self._with_coarse_scale(estimate, planes, sigma, units)
        self.step.ticks(1)()
        estimate, variance = self._stage([estimate, planes], sigma, stages, priors, 0, 2)
        for number, (passes, step) in enumerate(rounds_for(levels[0])[: self.n_rounds]):
            grouped = passed(planes, estimate, sigma, passes, self.n_jobs, self.step)
            channels = [grouped, planes, estimate]
            estimate, variance = self._stage(channels, sigma, stages, priors, number + 1, step)
        return estimate, variance

    def _with_coarse_scale(
        self, estimate: Array, planes: Array, sigma: float, units: list[float]
    ) -> Array:
        """Return an estimate whose coarse scale, where noise is strong, is found on its own."""
        strong = [c for c, unit in enumerate(units) if sigma / unit >= STRONG]
        if not strong or min(planes.shape[1:]) < LEAST_TO_HALVE:
            return estimate
        quiet = Cascade(self.learned, min(self.n_rounds, 1), self.n_jobs, variance=False)
        coarse, _ = quiet.denoise(halve(planes), sigma / 2, units)
        better = with_coarse_scale(estimate, coarse)
        for c in strong:
            estimate[c, ...] = better[c, ...]
        return estimate

    def _stage(
        self,
        channels: list[Array],
        sigma: float,
        stages: list[tuple[Stage, ...]],
        priors: list[PatchPrior],
        number: int,
        step: int,
    ) -> tuple[Array, Array | None]:
        """Return all planes after the learned stage with this number, and their variances."""
        like = channels[0]
        out = unfilled(like.shape, like)
        variances = unfilled(like.shape, like) if self.variance else None
        for c, prior in enumerate(priors):
            own = [channel[c, ...] for channel in channels]
            found, left = apply_stage(own, sigma, stages[c][number], prior, step, self.n_jobs)
            out[c, ...] = found
            if variances is not None:
                variances[c, ...] = left
        self.step.ticks(1)()
        return out, variances


def n_ticks(preset: str) -> int:
    """Return the number of steps of a cascade."""
    return 2 + sum(len(passes) + 1 for passes, _ in rounds_for(0.0)[: ROUNDS[preset]])


def passed(
    planes: Array,
    estimate: Array,
    sigma: float,
    passes: Sequence[Pass],
    n_jobs: int = 1,
    step: Share | None = None,
    whitening: Callable[[Pass], Whitening] | None = None,
) -> Array:
    """Return planes, or volumes, after passes over groups of similar patches.

    `step` is the share of one pass. Arrays of NumPy are denoised by compiled loops, others on their
    device; `whitening` is for NumPy alone.
    """
    for number, one in enumerate(passes):
        for c in range(planes.shape[0] if number else 0):
            # In place, one plane at a time, to save memory: this array is ours.
            estimate[c, ...] += BACK * (planes[c, ...] - estimate[c, ...])
        if is_numpy(planes):
            white = None if whitening is None else whitening(one)
            estimate = group_pass(planes, estimate, sigma, one, n_jobs, white, step)
        else:
            estimate = group_arrays.group_pass_arrays(planes, estimate, sigma, one)
            (step or Share()).ticks(1)()
    return estimate
