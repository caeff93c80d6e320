"""Algorithm 1 for many problems of one shape at once, as batched products.

What `solvers.micusal` does for the starts of one problem is done here for all starts of all
problems: bases have the shape (n_problems, n_starts, n_subspaces, n_features, subspace_dim). Every
iteration fetches one number per run, the objective; nothing loops over problems.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from polyspan.arrays import (
    Array,
    float64_sum,
    is_host,
    item_bytes,
    machine_epsilon,
    moved_to,
    namespace,
    one_hot,
    to_numpy,
    transpose,
    zeros,
)
from polyspan.geometry import closeness_of_gram, side_by_side
from polyspan.solvers.annealing import POOLED_STEPS
from polyspan.solvers.assignment import softmax
from polyspan.solvers.member_sums import gathered_sums
from polyspan.solvers.micusal import Rules
from polyspan.solvers.problem import Balance
from polyspan.solvers.projections import energies
from polyspan.solvers.updates import power_update

# On a CPU a product of a problem and a run of this many terms is worth gathering the members for;
# smaller ones are over before Python has named them.
GATHERED_FROM = 1_000_000
# Moving data costs about one iteration: it pays once this share of the slots has nothing to do.
IDLE_SHARE = 0.25
# From this share on every run that is left gets the data of its problem for itself. Then none
# waits for the slowest start of its problem, but products are thinner.
IDLE_SHARE_APART = 0.5


@dataclass(frozen=True)
class Batch(Balance):
    """Complete data of many problems, and the weight λ that they share."""

    X: Array
    """Centred samples: (n_problems, n_samples, n_features)."""
    total: Array
    """Sums of their squares, in double precision: (n_problems,)."""
    lam: float

    @classmethod
    def of(cls, X: Array, lam: float) -> Batch:
        """Measure centred samples."""
        norms = namespace(X).sum(X * X, axis=2)
        return cls(X, float64_sum(norms, axis=1), lam)

    def take(self, problems: np.ndarray) -> Batch:
        """Return some of the problems, each as often as it is named."""
        which, xp = moved_to(problems, self.X), namespace(self.X)
        return Batch(xp.take(self.X, which, axis=0), xp.take(self.total, which), self.lam)

    def project(self, bases: Array) -> tuple[Array, Array]:
        """Return D_lᵀy, (P, n, R, L, s), and its squared norms, (P, n, R, L)."""
        xp = namespace(bases)
        (P, R, L, m, s), n = bases.shape, self.X.shape[1]
        wide = xp.reshape(xp.permute_dims(bases, (0, 3, 1, 2, 4)), (P, m, R * L * s))
        projections = xp.reshape(self.X @ wide, (P * n, R, L, s))
        energy = energies(projections)
        return xp.reshape(projections, (P, n, R, L, s)), xp.reshape(energy, (P, n, R, L))

    def wide(self, bases: Array) -> tuple[Array, Array] | None:
        """Return W and WᵀW of every run, which objective and step share; None without a pull."""
        if not self.pull:
            return None
        beside = side_by_side(namespace(bases).reshape(bases, (-1, *bases.shape[2:])))
        return beside, transpose(beside) @ beside

    def hard_step(
        self, bases: Array, projections: Array, labels: Array, wide: tuple[Array, Array] | None
    ) -> Array:
        """Take a power step with the members of every subspace; projections are overwritten."""
        P, _, L, m, s = bases.shape
        if not is_host(bases) or m * labels.shape[1] * L * s < GATHERED_FROM:
            return self.soft_step(bases, projections, one_hot(labels, L, bases.dtype), wide)
        products = zeros(bases.shape, bases)
        for p in range(P):
            own = (self.X[p, ...], projections[p, ...], labels[p, ...])
            products[p, ...] = gathered_sums(*own, L)[1]
        return self._step(bases, products, wide)

    def soft_step(
        self,
        bases: Array,
        projections: Array,
        weights: Array,
        wide: tuple[Array, Array] | None = None,
    ) -> Array:
        """Take a power step with weights (P, n, R, L); projections are overwritten."""
        xp = namespace(bases)
        P, R, L, m, s = bases.shape
        projections *= weights[..., None]
        products = transpose(self.X) @ xp.reshape(projections, (P, -1, R * L * s))
        products = xp.permute_dims(xp.reshape(products, (P, m, R, L, s)), (0, 2, 3, 1, 4))
        return self._step(bases, products, wide)

    def _step(
        self, bases: Array, products: Array, wide: tuple[Array, Array] | None = None
    ) -> Array:
        xp = namespace(bases)
        P, R, L, m, s = bases.shape
        flat = (P * R, L, m, s)
        stepped = power_update(self, xp.reshape(bases, flat), xp.reshape(products, flat), wide)
        return xp.reshape(stepped, bases.shape)

    def objective(self, bases: Array, energy: Array, wide: tuple[Array, Array] | None) -> Array:
        """Return F1 of every run from Σ‖D_lᵀy_i‖², (P, R)."""
        xp = namespace(energy)
        residual = xp.maximum(self.total[:, None] - energy, xp.zeros_like(energy))
        if wide is None:
            return residual
        near = closeness_of_gram(wide[1], bases.shape[2])
        return xp.reshape(near, energy.shape) + self.lam * residual

    def rounding(self) -> np.ndarray:
        """Return the objective of every problem below which its data are fitted to rounding."""
        weight = 1.0 if math.isinf(self.lam) else self.lam
        return 4.0 * machine_epsilon(self.X) * weight * to_numpy(self.total)


@dataclass(frozen=True)
class Runs:
    """Where all runs ended; NumPy arrays but for the bases."""

    bases: Array
    """(n_problems, n_starts, n_subspaces, n_features, subspace_dim)."""
    objective: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray
    counts: np.ndarray
    """Samples per subspace: (n_problems, n_starts, n_subspaces)."""


def nearest(batch: Batch, bases: Array) -> tuple[Array, Array, Array]:
    """Return labels (P, n, R), their energy (P, R) and the projections that led to them."""
    xp = namespace(bases)
    projections, energy = batch.project(bases)
    won = float64_sum(xp.max(energy, axis=3), axis=1)
    return xp.argmax(energy, axis=3), won, projections


def pool(batch: Batch, start: Array) -> tuple[Array, Array, Array]:
    """Find one pooled subspace per problem; see `annealing.pooled_residual`.

    Parameters
    ----------
    start : array of shape (n_problems, n_features, subspace_dim)

    Returns
    -------
    bases : array of the same shape
    residual : float64 array of shape (n_problems,)
        Sum of squared residuals.
    ritz : array of shape (n_problems, subspace_dim)
    """
    xp = namespace(start)
    single = Batch(batch.X, batch.total, math.inf)
    bases = start[:, None, None, ...]
    for _ in range(POOLED_STEPS):
        projections, _ = single.project(bases)
        bases = single.soft_step(bases, projections, xp.ones_like(projections[..., 0]))
    projections, energy = single.project(bases)
    own = projections[:, :, 0, 0, :]
    ritz = xp.linalg.eigvalsh(transpose(own) @ own)
    residual = batch.total - float64_sum(energy, axis=(1, 2, 3))
    return bases[:, 0, 0, ...], xp.maximum(residual, xp.zeros_like(residual)), ritz


def cool(batch: Batch, bases: Array, units: Array, schedule: Sequence[float]) -> Array:
    """Lower the temperature once, one power step at each; see `annealing.anneal`.

    `units`, of shape (n_problems,), is the temperature that the schedule is a multiple of.
    """
    xp = namespace(bases)
    units = xp.astype(units, bases.dtype, copy=False)[:, None, None, None]
    for temperature in schedule:
        projections, energy = batch.project(bases)
        weights, _ = softmax(energy / (temperature * units))
        bases = batch.soft_step(bases, projections, weights)
    return bases


def learn(batch: Batch, bases: Array, rules: Rules, most_bytes: int) -> Runs:
    """Run Algorithm 1 from every start of every problem; runs that are over leave the products.

    Parameters
    ----------
    bases : array of shape (n_problems, n_starts, n_subspaces, n_features, subspace_dim)
    most_bytes : int
        Most that the data of runs on their own may take.
    """
    ledger, rounding = _Ledger(bases), batch.rounding()
    slots = _Slots(batch, bases, np.arange(bases.shape[0] * bases.shape[1]))
    previous = np.full(slots.runs.shape, np.inf)
    for iteration in range(rules.max_iter + 1):
        here = slots.batch
        labels, energy, projections = nearest(here, slots.bases)
        wide = here.wide(slots.bases)
        values = to_numpy(here.objective(slots.bases, energy, wide))
        own = rounding[np.maximum(slots.runs, 0) // bases.shape[1]]
        smallest = np.maximum(rules.tol * np.abs(values), own)
        settled = (previous - values <= smallest) & (iteration > 0)
        over = slots.busy & (settled | (iteration == rules.max_iter))
        if over.any():
            ledger.close(slots, over, labels, values, settled, iteration)
            slots.runs[over] = -1
        if not slots.busy.any():
            break
        slots.bases = here.hard_step(slots.bases, projections, labels, wide)
        previous = slots.compact(values, most_bytes)
    return ledger.runs()


class _Slots:
    """The runs that are under way, in a grid of problems and places beside each other."""

    def __init__(self, batch: Batch, bases: Array, runs: np.ndarray) -> None:
        self.batch, self.bases = batch, bases
        self.runs = runs.reshape(bases.shape[:2])
        """Number of the run in every place; -1 where it is over."""

    @property
    def busy(self) -> np.ndarray:
        return np.asarray(self.runs >= 0)

    def compact(self, values: np.ndarray, most_bytes: int) -> np.ndarray:
        """Give up idle places where that pays; return the values of those that are left."""
        xp = namespace(self.bases)
        busy = self.busy
        places = busy.shape[1]
        data = int(busy.sum()) * math.prod(self.batch.X.shape[1:]) * item_bytes(self.batch.X)
        apart = places > 1 and data <= most_bytes and busy.mean() <= 1.0 - IDLE_SHARE_APART
        if apart:
            problems, _ = np.nonzero(busy)
            flat = xp.reshape(self.bases, (-1, 1, *self.bases.shape[2:]))
            self.bases = xp.take(flat, moved_to(np.flatnonzero(busy), flat), axis=0)
            self.runs, values = self.runs[busy][:, None], values[busy][:, None]
        elif busy.any(axis=1).mean() <= 1.0 - IDLE_SHARE:
            problems = np.flatnonzero(busy.any(axis=1))
            self.bases = xp.take(self.bases, moved_to(problems, self.bases), axis=0)
            self.runs, values = self.runs[problems], values[problems]
        else:
            return values
        self.batch = self.batch.take(problems)
        return values


@dataclass
class _Ledger:
    """What is known about the runs that are over."""

    like: Array
    parts: list[Array] = field(default_factory=list)
    order: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shape = tuple(self.like.shape[:2])
        n = self.shape[0] * self.shape[1]
        self.objective = np.empty(n)
        self.n_iter = np.empty(n, dtype=np.int64)
        self.converged = np.empty(n, dtype=bool)
        self.counts = np.empty((n, self.like.shape[2]), dtype=np.int64)

    def close(
        self,
        slots: _Slots,
        over: np.ndarray,
        labels: Array,
        values: np.ndarray,
        settled: np.ndarray,
        iteration: int,
    ) -> None:
        """Take down runs where they stand."""
        xp = namespace(labels)
        runs, which = slots.runs[over], moved_to(np.flatnonzero(over), labels)
        self.objective[runs], self.converged[runs] = values[over], settled[over]
        self.n_iter[runs] = iteration
        n, n_subspaces = labels.shape[1], self.like.shape[2]
        own = xp.take(xp.reshape(xp.permute_dims(labels, (0, 2, 1)), (-1, n)), which, axis=0)
        self.counts[runs] = to_numpy(xp.sum(one_hot(own, n_subspaces, xp.int64), axis=1))
        flat = xp.reshape(slots.bases, (-1, *slots.bases.shape[2:]))
        self.parts.append(xp.take(flat, which, axis=0))
        self.order.append(runs)

    def runs(self) -> Runs:
        """Return all runs in their order."""
        xp = namespace(self.like)
        back = np.argsort(np.concatenate(self.order))
        bases = xp.concat(self.parts, axis=0)
        bases = xp.take(bases, moved_to(back, bases), axis=0)
        return Runs(
            xp.reshape(bases, self.like.shape),
            self.objective.reshape(self.shape),
            self.n_iter.reshape(self.shape),
            self.converged.reshape(self.shape),
            self.counts.reshape(*self.shape, -1),
        )
