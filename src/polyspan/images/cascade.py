"""Denoise planes step by step: a first estimate, then groups of similar patches and stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from polyspan.base.arrays import Array, is_numpy, namespace, unfilled
from polyspan.images import group_arrays
from polyspan.images.groups import BACK, LEVELS, STRONG, Pass, group_pass
from polyspan.images.planes import halve, with_coarse_scale
from polyspan.images.prior import PatchPrior
from polyspan.images.stages import Learned, Stage, apply_stage, first_estimate

#: Smallest side of a picture whose half is denoised first.
LEAST_TO_HALVE = 64
#: Extremes of means of 4×4 pixels are so many σ apart in a constant picture, about.
NOISE_RANGE = 1.5
#: Number of rounds of each preset.
ROUNDS = {"fast": 0, "balanced": 1, "best": 2}

Tick = Callable[[], None]


@dataclass(frozen=True)
class Round:
    """Passes over groups of similar patches, and then a learned stage."""

    passes: tuple[Pass, ...]
    step: int
    """Pixels from one patch of the stage to the next."""


def rounds_for(level: float) -> tuple[Round, ...]:
    """Return all rounds for a noise in levels of 255."""
    if level < STRONG:
        first = (Pass(8, 40, 0.8, 6), Pass(6, 34, 0.8, 4))
    else:
        first = (Pass(8, 60, 0.6, 6), Pass(8, 60, 0.6, 4))
    return Round(first, 3), Round((Pass(8, 40, 0.5, 4),), 2)


def value_of_level(plane: Array, sigma: float) -> float:
    """Return what one level of 255 between the darkest and the brightest part is worth."""
    xp = namespace(plane)
    coarse = halve(halve(plane[None, ...]))
    span = float(xp.max(coarse) - xp.min(coarse)) - NOISE_RANGE * sigma
    return max(span, 2.0 * sigma) / LEVELS


class Cascade:
    """Denoise planes with what was learned beforehand.

    Parameters
    ----------
    learned : Learned
    n_rounds : int
        Rounds of group passes after the first stage.
    n_jobs : int
        Threads; the result does not depend on it.
    tick : callable
        Called after each step of the work; there are `n_ticks` of them.
    variance : bool
        Whether variances are wanted.
    """

    def __init__(
        self,
        learned: Learned,
        n_rounds: int,
        n_jobs: int = 1,
        tick: Tick | None = None,
        *,
        variance: bool = True,
    ) -> None:
        self._learned = learned
        self._n_rounds = n_rounds
        self._n_jobs = n_jobs
        self._tick = tick or _no_tick
        self._variance = variance

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
        priors = [self._learned.prior.scaled(unit) for unit in units]
        stages = [self._learned.at(level) for level in levels]
        # Results are written to arrays of all planes at once, to save memory.
        estimate = unfilled(planes.shape, planes)
        for c, prior in enumerate(priors):
            estimate[c, ...] = first_estimate(planes[c, ...], sigma, prior, self._n_jobs)
        estimate = self._with_coarse_scale(estimate, planes, sigma, units)
        self._tick()
        estimate, variance = self._stage([estimate, planes], sigma, stages, priors, 0, 2)
        for number, one in enumerate(rounds_for(levels[0])[: self._n_rounds]):
            grouped = passed(planes, estimate, sigma, one.passes, self._n_jobs, self._tick)
            channels = [grouped, planes, estimate]
            estimate, variance = self._stage(channels, sigma, stages, priors, number + 1, one.step)
        return estimate, variance

    def _with_coarse_scale(
        self, estimate: Array, planes: Array, sigma: float, units: list[float]
    ) -> Array:
        """Return an estimate whose coarse scale, where noise is strong, is found on its own."""
        strong = [c for c, unit in enumerate(units) if sigma / unit >= STRONG]
        if not strong or min(planes.shape[1:]) < LEAST_TO_HALVE:
            return estimate
        quiet = Cascade(self._learned, min(self._n_rounds, 1), self._n_jobs, variance=False)
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
        variances = unfilled(like.shape, like) if self._variance else None
        for c, prior in enumerate(priors):
            own = [channel[c, ...] for channel in channels]
            found, left = apply_stage(own, sigma, stages[c][number], prior, step, self._n_jobs)
            out[c, ...] = found
            if variances is not None:
                variances[c, ...] = left
        self._tick()
        return out, variances


def n_ticks(preset: str) -> int:
    """Return how often a cascade calls `tick`."""
    return 2 + sum(len(one.passes) + 1 for one in rounds_for(0.0)[: ROUNDS[preset]])


def passed(
    planes: Array,
    estimate: Array,
    sigma: float,
    passes: tuple[Pass, ...],
    n_jobs: int = 1,
    tick: Tick | None = None,
) -> Array:
    """Return an estimate after passes over groups of similar patches."""
    for number, one in enumerate(passes):
        for c in range(planes.shape[0] if number else 0):
            # In place, one plane at a time, to save memory: this array is ours.
            estimate[c, ...] += BACK * (planes[c, ...] - estimate[c, ...])
        estimate = any_group_pass(planes, estimate, sigma, one, n_jobs)
        if tick is not None:
            tick()
    return estimate


def any_group_pass(
    planes: Array, estimate: Array, sigma: float, settings: Pass, n_jobs: int
) -> Array:
    """Denoise all groups once: by compiled loops, or on the device of the arrays."""
    if is_numpy(planes):
        return group_pass(planes, estimate, sigma, settings, n_jobs)
    return group_arrays.group_pass_arrays(planes, estimate, sigma, settings)


def _no_tick() -> None:
    return None
