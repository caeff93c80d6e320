"""The plan of a fit, checked: sizes, starts, schedule, and what a solver needs."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Protocol

import numpy as np

from polyspan._sklearn import Interval, StrOptions
from polyspan.arrays import Array, moved_to, namespace, to_numpy
from polyspan.checks import check_subspace_dim, warn_user
from polyspan.geometry import is_orthonormal, orthonormalise
from polyspan.inputs import require_dispatch
from polyspan.union._solve.alternation import NEEDS, Rules
from polyspan.union._solve.shape import join
from polyspan.union.reading import Data

#: What scikit-learn checks of the parameters that the linear models share.
CONSTRAINTS: dict[str, list[Any]] = {
    "n_subspaces": [Interval(Integral, 1, None, closed="left")],
    "subspace_dim": [Interval(Integral, 0, None, closed="left")],
    "lam": [Interval(Real, 0, None, closed="right")],
    "init": [StrOptions({"anneal", "random"}), "array-like"],
    "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
    "center": ["boolean"],
    "anneal_steps": [Interval(Integral, 1, None, closed="left")],
    "anneal_range": [tuple, list],
    "max_iter": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "random_state": ["random_state"],
    "n_jobs": [Integral, None],
}


@dataclass(frozen=True)
class Plan:
    """Sizes, starts, schedule and rules of a fit."""

    n_subspaces: int
    subspace_dim: int
    affine: bool
    center: bool
    n_starts: int
    annealed: bool
    anneal_steps: int
    anneal_range: tuple[float, float]
    rules: Rules
    n_jobs: int | None
    n_columns: int
    """Columns of the frames of one start."""
    max_steps: int
    """Most iterations that one start can take."""


class Parameters(Protocol):
    """Parameters that all linear models have."""

    init: Any
    n_init: int | str
    center: bool
    anneal_steps: int
    anneal_range: tuple[float, float]
    n_jobs: int | None


class SizedParameters(Parameters, Protocol):
    """Parameters of linear models whose sizes are given by the user."""

    n_subspaces: int
    subspace_dim: int
    affine: bool
    solver: str
    residual: str
    max_iter: int
    tol: float


def sized_plan(model: SizedParameters) -> Plan:
    """Return the plan of a model whose sizes are given by the user."""
    solver = "power" if model.solver == "mm" else model.solver
    rules = Rules(solver, model.max_iter, float(model.tol), model.residual == "loo")
    return plan_of(model, rules, model.n_subspaces, model.subspace_dim, affine=model.affine)


def plan_of(
    model: Parameters, rules: Rules, n_subspaces: int, subspace_dim: int, *, affine: bool
) -> Plan:
    """Return the plan that follows from the parameters of a model."""
    init, n_init = model.init, model.n_init
    given, annealed = not isinstance(init, str), isinstance(init, str) and init == "anneal"
    if given and n_init not in ("auto", 1):
        warn_user(f"an init array is one start: n_init={n_init} is not used", RuntimeWarning)
    if given or n_init == "auto":
        # Points of affine subspaces stay near where they start, whatever the temperature.
        n_init = 1 if given or (annealed and not affine) else 8
    hottest, coldest = model.anneal_range if len(model.anneal_range) == 2 else (None, None)
    if not (isinstance(hottest, Real) and isinstance(coldest, Real)):
        raise ValueError(f"anneal_range={model.anneal_range} must hold two numbers")
    hottest, coldest = float(hottest), float(coldest)
    if not 0 < coldest <= hottest < np.inf:
        raise ValueError(
            f"anneal_range={model.anneal_range} must be (first, last) temperature with "
            "0 < last <= first"
        )
    return Plan(
        n_subspaces,
        subspace_dim,
        affine=affine,
        center=model.center or affine,
        n_starts=int(n_init),
        annealed=annealed,
        anneal_steps=model.anneal_steps,
        anneal_range=(hottest, coldest),
        rules=rules,
        n_jobs=model.n_jobs,
        n_columns=n_subspaces * (subspace_dim + affine),
        # Each refilling of empty subspaces evaluates its new start once more.
        max_steps=(model.anneal_steps if annealed else 0) + rules.max_iter + 1 + n_subspaces,
    )


def check_plan(plan: Plan, data: Data) -> None:
    """Raise an error where sizes do not fit the data, or a solver lacks what it needs."""
    s, n = plan.subspace_dim, data.n_learned
    check_subspace_dim(s, data.n_features)
    if s == 0 and not plan.affine:
        raise ValueError(
            "subspace_dim=0 is a point, which needs affine=True: use subspace_dim=1 or more"
        )
    if n < plan.n_columns:
        size = "(subspace_dim + 1)" if plan.affine else "subspace_dim"
        raise ValueError(
            f"n_samples={n} is fewer than n_subspaces * {size} = {plan.n_subspaces} * "
            f"{s + plan.affine} = {plan.n_columns}: every sample could have a direction of its "
            "own; lower n_subspaces or subspace_dim, or give more samples"
        )
    if data.source is not None or NEEDS[plan.rules.solver].linear_only:
        where = None if data.source is None else "dask" if data.source.lazy else "file"
        check_needs(plan.rules, plan.affine, where, data.n_features)


def check_needs(rules: Rules, affine: bool, where: str | None, n_features: int) -> None:
    """Raise the one error for options that cannot work together.

    `where` tells where the rows are: None for an array in memory, or "file", "dask", "stream".
    """
    what, needs = f"solver={rules.solver!r}", NEEDS[rules.solver]
    kind = {"file": "a file that is read in slices", "dask": "a dask array", "stream": "batches"}
    lacking = None
    if where and (needs.all_samples or (where == "stream" and not needs.streams)):
        lacking = f"all samples in memory, not {kind[where]}"
    elif where and n_features > needs.max_features_out_of_core:
        lacking = (
            f"all samples in memory, or at most {needs.max_features_out_of_core} features (X has "
            f"{n_features}) in {kind[where]}"
        )
    elif where == "stream" and rules.leave_one_out:
        what, lacking = "residual='loo'", f"all samples in memory, not {kind[where]}"
    elif needs.linear_only and affine:
        lacking = "affine=False"
    elif needs.linear_only and rules.leave_one_out:
        lacking = "residual='plain'"
    if lacking:
        raise ValueError(f"{what} needs {lacking}: leave it at its default, or change the other")


def given_start(init: Any, data: Data, plan: Plan) -> Array | None:
    """Check an init array; orthonormalise its bases where needed, and say so.

    For affine subspaces the last column is a point, in the coordinates of the data.
    """
    if isinstance(init, str):
        return None
    require_dispatch(init=init)
    like = data.X
    if data.source is not None:
        like = np.empty((0, data.n_features), dtype=data.source.working_type)
    start, shape = to_numpy(init), (plan.n_subspaces, data.n_features, plan.subspace_dim)
    return checked_start(start, (*shape[:2], shape[2] + plan.affine), like, affine=plan.affine)


def checked_start(start: np.ndarray, shape: tuple[int, ...], like: Array, *, affine: bool) -> Array:
    """Return given frames of the shape asked for, beside `like`, with orthonormal bases."""
    names = "n_problems, n_subspaces" if len(shape) == 4 else "n_subspaces"
    columns = "subspace_dim + 1" if affine else "subspace_dim"
    if start.dtype.kind not in "fiu":
        raise ValueError(f"init has the type {start.dtype}: give real orthonormal bases")
    if start.shape != shape:
        raise ValueError(
            f"init has the shape {start.shape}, but ({names}, n_features, {columns}) is {shape}"
        )
    if not np.isfinite(start).all():
        raise ValueError("init contains NaN or infinity: give finite orthonormal bases")
    frames = moved_to(start, like, like.dtype)
    bases, points = (frames[..., :-1], frames[..., -1]) if affine else (frames, None)
    if bases.shape[-1]:
        if not is_orthonormal(bases):
            warn_user(
                "the bases in init are not orthonormal: the nearest orthonormal ones are used"
            )
        flat = namespace(bases).reshape(bases, (-1, *bases.shape[-2:]))
        bases = namespace(bases).reshape(orthonormalise(flat), bases.shape)
    return join(bases, points)


def relative_to_mean(frames: Array, mean: Array, affine: bool) -> Array:
    """Return frames whose points are relative to the mean."""
    if not affine:
        return frames
    xp = namespace(frames)
    points = xp.astype(frames[..., -1], xp.float64) - xp.astype(mean, xp.float64)
    return join(frames[..., :-1], xp.astype(points, frames.dtype))
