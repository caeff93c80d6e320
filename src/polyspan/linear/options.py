"""The plan of a fit, checked: sizes, starts, schedule, and what a solver needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from polyspan.base.checks import check_subspace_dim, warn_user
from polyspan.base.private_sklearn import Interval, StrOptions
from polyspan.geometry.bases import Dims
from polyspan.linear._solve.alternation import Rules
from polyspan.linear._solve.annealing import levels
from polyspan.linear.linear_union import LinearUnion
from polyspan.linear.reading import Data

# Most starts, temperatures, sweeps and iterations. More are a mistake, or a forged file whose first
# `partial_fit` would have no end.
MOST_STARTS, MOST_TEMPERATURES, MOST_SWEEPS, MOST_ITERATIONS = 1000, 10_000, 1000, 1_000_000

#: Most features of rows that are not all in memory: exact updates send a dense scatter matrix of
#: every subspace, and the sweeps of Algorithm 3 go from sample to sample.
MOST_FEATURES = {"power": math.inf, "exact": 1024, "grouse": 0}

# Starts of k-flats++ by default, and how many seeded starts are run to the end.
N_SEEDED, FINALISTS = 8, 2

#: What scikit-learn checks of the parameters that the linear models share.
CONSTRAINTS: dict[str, list[Any]] = {
    "n_subspaces": [Interval(Integral, 1, None, closed="left")],
    "subspace_dim": [Interval(Integral, 0, None, closed="left"), "array-like"],
    "lam": [StrOptions({"auto"}), Interval(Real, 0, None, closed="right")],
    "init": [StrOptions({"auto", "anneal", "random"}), "array-like"],
    "n_init": [StrOptions({"auto"}), Interval(Integral, 1, MOST_STARTS, closed="both")],
    "center": ["boolean"],
    "anneal_steps": [Interval(Integral, 1, MOST_TEMPERATURES, closed="both")],
    "anneal_range": [tuple, list],
    "trim": [Interval(Real, 0, 1, closed="left")],
    "max_iter": [Interval(Integral, 1, MOST_ITERATIONS, closed="both")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
}


@dataclass(frozen=True)
class Plan:
    """Sizes, starts, schedule and rules of a fit."""

    n_subspaces: int
    subspace_dim: int
    """The largest, where dimensions differ."""
    affine: bool
    center: bool
    n_starts: int
    """Starts that are annealed, drawn at random or given."""
    annealed: bool
    anneal_steps: int
    anneal_range: tuple[float, float]
    rules: Rules
    n_jobs: int | None
    n_columns: int
    """Columns of the frames of one start."""
    max_steps: int
    """Most iterations that one start can take."""
    dims: Dims = None
    """Dimension of every subspace, where they differ."""
    n_seeded: int = 0
    """Starts of k-flats++ beside the annealed one."""
    more_seeds: bool = False
    """Whether other starts, and more of k-flats++, may follow."""

    @property
    def n_directions(self) -> int:
        """Directions (and points) of all subspaces together."""
        n = int(self.n_subspaces)  # products of integers of NumPy may overflow
        return (n * self.subspace_dim if self.dims is None else sum(self.dims)) + n * self.affine

    @property
    def n_runs(self) -> int:
        """Runs that callbacks see: of each start, of the best seeded ones, about the final mean."""
        seeded = FINALISTS if self.n_seeded else 0
        return self.n_starts + seeded + bool(self.rules.trim and self.center)


def sized_plan(model: LinearUnion) -> Plan:
    """Return the plan of a model whose sizes are given by the user."""
    solver = "power" if model.solver == "mm" else model.solver
    loo, trim = model.residual == "loo", float(model.trim)
    rules = Rules(solver, model.max_iter, float(model.tol), loo, trim)
    return plan_of(model, rules, model.n_subspaces, model.subspace_dim, affine=model.affine)


def dims_of(n_subspaces: int, subspace_dim: Any) -> tuple[int, Dims]:
    """Return the largest dimension, and those of all subspaces where they differ, else None.

    `subspace_dim` is an int, or a sequence with one for every subspace.
    """
    if isinstance(subspace_dim, Integral):
        return int(subspace_dim), None
    given = np.asarray(subspace_dim)
    if given.ndim != 1 or given.dtype.kind not in "iu" or (given < 0).any():
        raise ValueError(
            f"subspace_dim={subspace_dim} must be an int, or a sequence of ints that are 0 or more"
        )
    if len(given) != n_subspaces:
        raise ValueError(
            f"subspace_dim={subspace_dim} has {len(given)} dimensions for n_subspaces="
            f"{n_subspaces}: give one for each subspace"
        )
    dims = tuple(given.tolist())
    return max(dims), None if len(set(dims)) == 1 else dims


def plan_of(
    model: LinearUnion, rules: Rules, n_subspaces: int, subspace_dim: Any, *, affine: bool
) -> Plan:
    """Return the plan that follows from the parameters of a model."""
    init, n_init = model.init, model.n_init
    largest, dims = dims_of(n_subspaces, subspace_dim)
    given = not isinstance(init, str)
    seeded = 0
    if not given and init == "auto" and n_subspaces > 1 and seeds_suit(rules):
        seeded, n_init = (N_SEEDED if n_init == "auto" else int(n_init)), 1
    annealed = not given and init in ("auto", "anneal")
    if given and n_init not in ("auto", 1):
        warn_user(f"an init array is one start: n_init={n_init} is not used", RuntimeWarning)
    if given or n_init == "auto":
        # Points of affine subspaces stay near where they start, whatever the temperature.
        n_init = 1 if given or (annealed and not affine) else 8
        if annealed and dims is not None:
            # Fewer end with dimensions at the wrong clusters where clusters are of unequal size.
            n_init = max(n_init, 4)
    hottest, coldest = model.anneal_range if len(model.anneal_range) == 2 else (None, None)
    if not (isinstance(hottest, Real) and isinstance(coldest, Real)):
        raise ValueError(f"anneal_range={model.anneal_range} must hold two numbers")
    hottest, coldest = float(hottest), float(coldest)
    if not 0 < coldest <= hottest < np.inf:
        raise ValueError(
            f"anneal_range={model.anneal_range} must be (first, last) temperature with "
            "0 < last <= first"
        )
    n_annealed = model.anneal_steps * (len(levels(dims)) if dims else 1) if annealed else 0
    # Each refilling of empty subspaces evaluates its new start once more.
    return Plan(
        n_subspaces,
        largest,
        affine=affine,
        center=model.center or affine,
        n_starts=int(n_init),
        annealed=annealed,
        anneal_steps=model.anneal_steps,
        anneal_range=(hottest, coldest),
        rules=rules,
        n_jobs=model.n_jobs,
        n_columns=n_subspaces * (largest + affine),
        max_steps=n_annealed + rules.max_iter + 1 + n_subspaces,
        dims=dims,
        n_seeded=seeded,
        more_seeds=model.n_init == "auto",
    )


def seeds_suit(rules: Rules) -> bool:
    """Tell whether a fit can compare starts by their objective, as `init="auto"` does.

    Other residuals and solvers have annealed starts alone.
    """
    return not (rules.leave_one_out or rules.trim or rules.solver == "grouse")


def check_plan(plan: Plan, data: Data) -> None:
    """Raise an error where sizes do not fit the data, or a solver lacks what it needs."""
    s, n, trim = plan.subspace_dim, data.n_learned, plan.rules.trim
    check_subspace_dim(s, data.n_features, plan.dims)
    if min(plan.dims or (s,)) == 0 and not plan.affine:
        given = f"the 0 in subspace_dim={plan.dims}" if plan.dims else "subspace_dim=0"
        raise ValueError(f"{given} is a point, which needs affine=True: use subspace_dim=1 or more")
    if n_kept(n, trim) < plan.n_directions:
        size = "(subspace_dim + 1)" if plan.affine else "subspace_dim"
        count = f"n_subspaces * {size} = {plan.n_subspaces} * {s + plan.affine}"
        if plan.dims is not None:
            count = f"the sum of {size} over subspaces of dimensions {plan.dims}"
        lower = "n_subspaces, subspace_dim or trim" if trim else "n_subspaces or subspace_dim"
        raise ValueError(
            f"{in_words(n, trim)} is fewer than {count} = {plan.n_directions}: every sample could "
            f"have a direction of its own; lower {lower}, or give more samples"
            f"{'' if data.weights is None else ' with a weight above 0'}"
        )
    where = None if data.source is None else "dask" if data.source.lazy else "file"
    weighted = data.weights is not None
    check_needs(plan.rules, plan.affine, where, data.n_features, plan.dims, weighted=weighted)


def n_kept(n: int, trim: float) -> float:
    """Return how many of n samples take part; a whole number but for rounding is that number."""
    kept = (1.0 - trim) * n
    return round(kept) if abs(kept - round(kept)) < 1e-9 * n else kept


def in_words(n: int, trim: float) -> str:
    """Return the number of samples that take part, for messages."""
    if not trim:
        return f"n_samples={n}"
    return f"n_samples={n} without the fraction trim={trim}, that is {n_kept(n, trim):.4g},"


def check_needs(
    rules: Rules, affine: bool, where: str | None, n_features: int, dims: Dims = None, *,
    weighted: bool = False,
) -> None:  # fmt: skip
    """Raise the one error for options that cannot work together.

    `where` tells where the rows are: None for an array in memory, or "file", "dask", "stream".
    """
    solver, trim, loo = f"solver={rules.solver!r}", f"trim={rules.trim}", rules.leave_one_out
    grouse, stream = rules.solver == "grouse", where == "stream"
    kinds = {"file": "a file that is read in slices", "dask": "a dask array", "stream": "batches"}
    kind, most = kinds.get(where or "", ""), MOST_FEATURES[rules.solver]
    memory = f"all samples in memory, not {kind}"
    few = f"all samples in memory, or at most {most} features (X has {n_features}) in {kind}"
    faults = (
        (where and (grouse or (stream and rules.solver != "power")), solver, memory),
        (where and n_features > most, solver, few),
        (stream and loo, "residual='loo'", memory),
        (rules.trim and where, trim, memory),
        (rules.trim and loo, trim, "residual='plain'"),
        (grouse and affine, solver, "affine=False"),
        (grouse and loo, solver, "residual='plain'"),
        (grouse and rules.trim, solver, "trim=0.0"),
        (grouse and weighted, solver, "sample_weight=None"),
        (grouse and dims, solver, f"one subspace_dim for all subspaces, found {dims}"),
    )
    for wrong, what, needed in faults:
        if wrong:
            raise ValueError(f"{what} needs {needed}: leave it at its default, or change the other")


def most_features(rules: Rules) -> float:
    """Return the most features of rows in blocks; trimming compares all residuals: 0."""
    return 0 if rules.trim else MOST_FEATURES[rules.solver]
