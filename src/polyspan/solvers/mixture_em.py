"""The EM loop, and its tempered form that finds a start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from polyspan.arrays import machine_epsilon
from polyspan.solvers.mixture import Gaussians, Pull

# Falls of the likelihood by so many units of rounding are taken for rounding.
ROUNDING = 100.0

#: Called after every iteration with (iteration, value, Gaussians); returning True stops.
Watch = Callable[[int, float, Gaussians], bool]


class Samples(Protocol):
    """What the loop asks of data; see `mixture_complete` and `mixture_masked`."""

    @property
    def n_entries(self) -> int:
        """Number of observed entries."""

    def expect(self, gaussians: Gaussians, beta: float = 1.0) -> tuple[float, Any]:
        """Return the log-likelihood and the sums for an update."""

    def maximise(self, gaussians: Gaussians, sums: Any, pull: Pull) -> Gaussians:
        """Return Gaussians with a higher penalised likelihood."""


@dataclass(frozen=True)
class MixtureSolution:
    """Where EM ended."""

    gaussians: Gaussians
    value: float
    """The penalised log-likelihood."""
    history: tuple[float, ...]
    """At the start and after every iteration; never falls."""
    n_iter: int
    stopped: str
    """Why: "converged", "max_iter" or "callback"."""


def learn_mixture(
    samples: Samples,
    start: Gaussians,
    pull: Pull,
    *,
    max_iter: int,
    tol: float,
    watch: Watch | None = None,
) -> MixtureSolution:
    """Run EM until an iteration gains no more than `tol` per observed entry.

    Parameters
    ----------
    samples : CompleteSamples or MaskedSamples
    start : Gaussians
    pull : Pull
        Towards the pooled covariance; of weight 0 for maximum likelihood.
    """
    gaussians, stopped = start, "max_iter"
    value, sums = samples.expect(gaussians)
    history = [value - pull.penalty(gaussians)]
    enough = tol * samples.n_entries
    for iteration in range(max_iter):
        proposed = samples.maximise(gaussians, sums, pull)
        value, sums = samples.expect(proposed)
        value -= pull.penalty(proposed)
        gain = value - history[-1]
        # More than rounding no step should fall; were one to, it is not taken.
        if gain < -ROUNDING * machine_epsilon(proposed.noise) * abs(value):
            value = history[-1]
        else:
            gaussians = proposed
        history.append(value)
        if watch is not None and watch(iteration, history[-1], gaussians):
            stopped = "callback"
            break
        if gain <= enough:
            stopped = "converged"
            break
    return MixtureSolution(gaussians, history[-1], tuple(history), len(history) - 1, stopped)


def temper_mixture(
    samples: Samples, start: Gaussians, pull: Pull, betas: Sequence[float]
) -> Gaussians:
    """Take one step at each inverse temperature β: shares ∝ (π_l N(x; μ_l, C_l))^β.

    Small β let every sample belong to several components; as β rises to 1 they part.
    """
    gaussians = start
    for beta in betas:
        _, sums = samples.expect(gaussians, beta)
        gaussians = samples.maximise(gaussians, sums, pull)
    return gaussians
