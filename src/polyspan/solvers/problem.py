"""The objective F1, its weights, and what a solver returns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from polyspan.arrays import Array, Rows, machine_epsilon, namespace, transpose
from polyspan.geometry import closeness, orthonormal_columns
from polyspan.solvers.assignment import Sums, assign, weigh
from polyspan.solvers.leave_one_out import Leverage, measure_leverage
from polyspan.solvers.projections import Stacked, energies, project
from polyspan.solvers.updates import exact_update, power_update

#: Called after every iteration with (start, iteration, objective, bases of that start). Returning
#: True stops that start.
Monitor = Callable[[int, int, float, Array], bool]


class Balance:
    """How a step weighs fit against closeness, given λ."""

    lam: float

    @property
    def pull(self) -> float:
        """Weight of the other bases in A_l, scaled so that neither weight exceeds 1."""
        return 0.0 if math.isinf(self.lam) else min(1.0, 2.0 / self.lam)

    @property
    def data(self) -> float:
        """Weight of the scatter S_l in A_l, scaled alike."""
        return min(1.0, self.lam / 2.0)


@dataclass(frozen=True)
class Problem(Balance):
    r"""Complete data and the weight that balances fit against closeness.

    .. math:: F_1 = \sum_{l \ne p} d_u^2(S_l, S_p) + \lambda \sum_i \|y_i - P_{l_i} y_i\|^2

    For λ=∞ (K-subspaces) the first term is left out and λ counts as 1.
    """

    rows: Rows
    norms: Array
    """Squared norms of the centred samples, shape (n_samples,)."""
    total: float
    """Their sum, in double precision."""
    lam: float

    def assign(
        self, bases: Array, *, with_products: bool, leverage: Leverage | None = None
    ) -> tuple[Array, Sums]:
        """Give every sample to its nearest subspace; see `assignment.assign`."""
        return assign(self.rows, bases, with_products=with_products, leverage=leverage)

    def weigh(
        self,
        bases: Array,
        temperature: float,
        *,
        leverage: Leverage | None = None,
        keep_weights: bool = True,
    ) -> tuple[Array | None, Sums]:
        """Share every sample out among the subspaces; see `assignment.weigh`."""
        return weigh(self.rows, bases, temperature, leverage=leverage, keep_weights=keep_weights)

    def leverage(self, bases: Array, weights: Array) -> Leverage:
        """Return what leave-one-out residuals need; see `leave_one_out`."""
        return measure_leverage(self.rows, bases, weights, self.norms)

    def power_step(self, bases: Array, sums: Sums) -> Array:
        """Take one power step for all subspaces of all starts; see `updates.power_update`."""
        return power_update(self, bases, sums.products)

    def exact_step(self, bases: Array, labels: Array) -> Array:
        """Replace every basis of one start by leading eigenvectors; see `updates`."""
        return exact_update(self, bases, labels)

    def through(self, samples: Array, old: Array) -> Array:
        """Return a basis of the span of some samples, completed by columns of `old`."""
        return leading_directions(samples, old)

    def through_mean(self) -> Problem:
        """Return the problem of linear subspaces: all of them through the mean."""
        return self

    has_holes = False
    """Whether samples are filled anew in every step."""

    def completed(self, bases: Array, labels: Array) -> Problem:
        """Return complete data to update from: these, or, with holes, the filled samples."""
        return self

    def own_coefficients(self, bases: Array, labels: Array) -> Array:
        """Return D_lᵀy of every sample with the basis that it is assigned to."""
        xp = namespace(bases)
        stacked = Stacked.of(bases[None, ...], self.rows.offset)
        parts = [
            xp.take_along_axis(
                project(chunk, stacked)[0, ...], labels[which][None, None, :], axis=0
            )[0, ...]
            for which, chunk in self.rows.chunks()
        ]
        return transpose(xp.concat(parts, axis=1))

    def residuals(self, bases: Array) -> Array:
        """Return the squared residual of every sample to its nearest subspace, for one start."""
        xp = namespace(bases)
        stacked = Stacked.of(bases[None, ...], self.rows.offset)
        energy = [
            xp.max(energies(project(chunk, stacked))[0, ...], axis=0)
            for _, chunk in self.rows.chunks()
        ]
        return self.norms - xp.concat(energy, axis=0)

    def worst_samples(self, bases: Array, turn: int, n_turns: int) -> Array:
        """Return samples with the largest residuals, another share of them on every turn."""
        xp = namespace(bases)
        worst = xp.argsort(self.residuals(bases), descending=True)
        chosen = worst[turn::n_turns][: self._share_of_worst(bases)]
        members = xp.take(self.rows.X, chosen, axis=0)
        return members if self.rows.mean is None else members - self.rows.mean

    def _share_of_worst(self, bases: Array) -> int:
        n_subspaces, _, s = bases.shape
        return int(max(s, self.rows.shape[0] // (2 * n_subspaces)))

    def objective(self, bases: Array, energy: Array) -> Array:
        """Return F1 of every start from Σ‖D_lᵀy_i‖², in double precision."""
        xp = namespace(energy)
        # The difference of two sums: where the fit is exact rounding may leave it below 0.
        residual = xp.maximum(self.total - energy, xp.zeros_like(energy))
        if math.isinf(self.lam):
            return residual
        return closeness(bases) + self.lam * residual

    @property
    def rounding(self) -> float:
        """Objective below which the data are fitted to rounding."""
        unit = 4.0 * machine_epsilon(self.rows.X) * self.total
        return unit if math.isinf(self.lam) else unit * self.lam


@dataclass(frozen=True)
class Solution:
    """Where one start ended."""

    bases: Array
    """Shape (n_subspaces, n_features, subspace_dim)."""
    labels: Array
    counts: Array
    """Samples per subspace."""
    objective: float
    """F1 at these labels and bases."""
    criterion: float
    """What to compare starts by: the objective, or the sum of leave-one-out residuals."""
    history: tuple[float, ...]
    """F1 of the start and after every iteration of the hard phase."""
    n_iter: int
    stopped: str
    """Why: "converged", "max_iter" or "callback"."""
    anneal_history: tuple[float, ...] = ()
    """Free energy after every step of the annealed phase."""


def leading_directions(samples: Array, old: Array) -> Array:
    """Return the leading left singular vectors of samples (as rows), as many as `old` has columns.

    Where the samples are too few, columns of `old` fill up.
    """
    xp = namespace(old)
    s = old.shape[1]
    if s == 0:
        return old
    u, _, _ = xp.linalg.svd(transpose(samples), full_matrices=False)
    if u.shape[1] < s:
        u = xp.concat([u, old], axis=1)
    return orthonormal_columns(u[:, :s])
